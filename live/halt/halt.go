// Package halt stops child processes where they stand and lets them go on.
package halt

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Stop stops every thread of a child of this process and returns when the kernel
// has said that they stand still. What others send to it meanwhile is kept by the
// kernel: a stopped server executes it when it goes on.
func Stop(p *os.Process) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop process %d: %w", p.Pid, err)
	}
	for {
		// WNOWAIT leaves the news to be found again, so this does not take the
		// exit status away from Wait.
		err := unix.Waitid(unix.P_PID, p.Pid, nil, unix.WSTOPPED|unix.WNOWAIT, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return fmt.Errorf("wait until process %d stands still: %w", p.Pid, err)
		}
		return nil
	}
}

// Continue lets a stopped process go on.
func Continue(p *os.Process) error {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		return fmt.Errorf("continue process %d: %w", p.Pid, err)
	}
	return nil
}

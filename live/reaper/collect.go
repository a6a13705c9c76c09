package reaper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"stockproof/live/role"
)

const (
	roleName       = "reaper"
	exitLeftBehind = 9
	dirLimit       = 10 * time.Second // how long to try to remove a folder somebody still writes to
	dirEvery       = 50 * time.Millisecond
)

func init() { role.Register(roleName, run) }

// run is the whole life of the child.
func run() int {
	// SIGPIPE too: a complaint must not end it when the terminal is gone.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGPIPE, syscall.SIGTSTP)
	fmt.Println(readyLine)
	_ = os.Stdout.Close() // the parent reads one line; holding on would keep a pipe open
	return collect(os.Stdin, os.Stderr)
}

// collect reads registrations to the end and ends what is left.
func collect(in io.Reader, stderr io.Writer) int {
	left := false
	complain := func(err error) {
		left = true
		fmt.Fprintf(stderr, "stockproof reaper: %v\n", err)
	}
	records := readRecords(in, complain)

	// The daemon and the kernel are asked at the same time.
	var wg sync.WaitGroup
	errs := make(chan error, len(records)+1)
	for _, rec := range records {
		if rec.Kind == kindContainers {
			wg.Go(func() { errs <- endContainers(rec.Host, rec.Label) })
		}
	}
	errs <- endProcesses(records)
	for _, rec := range records {
		switch rec.Kind {
		case kindMemory:
			if err := RemoveSharedMemory(rec.Segment, rec.PID); err != nil {
				complain(err)
			}
		case kindDir: // after the processes that write there
			if err := RemoveDir(rec.Path); err != nil {
				complain(err)
			}
		}
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			complain(err)
		}
	}
	if left {
		return exitLeftBehind
	}
	return 0
}

// RemoveDir removes a folder of ours (see [Reaper.Dir]), trying again for a while
// when a dying process still adds files.
func RemoveDir(path string) error {
	if err := checkDir(path); err != nil {
		return err
	}
	return retry(dirLimit, func() (bool, error) {
		err := os.RemoveAll(path)
		return err == nil, err
	})
}

// ErrStillAttached says that a shared memory segment has users left.
var ErrStillAttached = errors.New("shared memory is still in use")

// RemoveSharedMemory removes the System V segment id that process creator made, and
// waits a while for its last user. A PostgreSQL server that is killed outright
// leaves one. A segment that is gone, or belongs to another by now, is no error.
func RemoveSharedMemory(id, creator int) error {
	err := retry(dirLimit, func() (bool, error) {
		var d unix.SysvShmDesc
		_, err := unix.SysvShmCtl(id, unix.IPC_STAT, &d)
		switch {
		case errors.Is(err, unix.EINVAL) || errors.Is(err, unix.EIDRM):
			return true, nil
		case err != nil:
			return true, err
		case int(d.Cpid) != creator:
			return true, nil
		case d.Nattch != 0:
			return false, ErrStillAttached
		}
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return true, err
	})
	if err != nil {
		return fmt.Errorf("remove shared memory segment %d: %w", id, err)
	}
	return nil
}

// retry calls try until it says it is done or limit has passed.
func retry(limit time.Duration, try func() (done bool, err error)) error {
	ticker := time.NewTicker(dirEvery)
	defer ticker.Stop()
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		done, err := try()
		if done {
			return err
		}
		select {
		case <-ticker.C:
		case <-over.C:
			return err
		}
	}
}

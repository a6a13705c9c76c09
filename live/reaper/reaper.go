// Package reaper guarantees that nothing a live run started outlives it. A second
// process, the same binary in a session of its own and deaf to Ctrl-C, is told over
// a pipe what exists. When the pipe closes, for whatever reason the parent is gone
// (end of work, panic, SIGINT, SIGKILL), it ends or removes everything that is still
// registered and exits.
//
// main and TestMain must call role.RunIfAsked first, or Start fails.
package reaper

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"stockproof/live/role"
)

// DirPrefix begins the name of every folder the reaper may be told to remove. A
// slip in a path must not be able to delete anything else.
const DirPrefix = "stockproof-"

// readyLine is the child's first output: from here on it reads registrations and
// ignores signals.
const readyLine = "ready"

// startLimit bounds the start of the child; it only has to re-execute and write a line.
const startLimit = 30 * time.Second

var (
	// ErrBadDir says that a folder is not one the reaper may remove.
	ErrBadDir = errors.New("reaper: not a folder of ours")
	// ErrClosed says that the reaper was closed, so nothing can be registered any more.
	ErrClosed = errors.New("reaper: closed")
	// ErrLeftBehind says that the reaper could not remove everything; details are on standard error.
	ErrLeftBehind = errors.New("reaper: something was left behind")
)

// Reaper is the parent's end of the pipe. It is safe for concurrent use.
type Reaper struct {
	cmd *exec.Cmd

	mu     sync.Mutex
	pipe   io.WriteCloser
	next   int
	closed bool

	closeOnce sync.Once
	closeErr  error
}

// Start starts the child and waits until it listens. The error wraps
// [role.ErrNotHooked] when this program's main lacks the hook.
func Start() (*Reaper, error) {
	cmd, err := role.Command(roleName)
	if err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	// A session of its own: Ctrl-C goes to the terminal's foreground group only.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Dir = "/"
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start reaper: %w", err)
	}
	giveUp := time.AfterFunc(startLimit, func() { _ = cmd.Process.Kill() })
	line, err := bufio.NewReader(out).ReadString('\n')
	giveUp.Stop()
	if err != nil || strings.TrimSpace(line) != readyLine {
		_ = pipe.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("start reaper: it said %q instead of %q (does main call role.RunIfAsked first?): %w",
			strings.TrimSpace(line), readyLine, errors.Join(err, role.ErrNotHooked))
	}
	return &Reaper{cmd: cmd, pipe: pipe}, nil
}

// PID is the process id of the child.
func (r *Reaper) PID() int { return r.cmd.Process.Pid }

// Process registers a process to be ended with SIGKILL, its descendants with it.
// It must be called before the process is waited for, so that the id is certainly
// still its own; the start time is noted and a recycled id is left alone. The
// returned function takes it off the list; calling it again does nothing.
func (r *Reaper) Process(pid int) (done func(), err error) {
	return r.ProcessWith(pid, syscall.SIGKILL, 0)
}

// ProcessWith is Process for a program that has something of its own to clean up:
// it gets signal first, and SIGKILL when it is still there after grace.
func (r *Reaper) ProcessWith(pid int, signal syscall.Signal, grace time.Duration) (done func(), err error) {
	st, err := readStat(pid)
	if err != nil {
		return nil, fmt.Errorf("register process %d: %w", pid, err)
	}
	return r.add(record{Kind: kindProcess, PID: pid, Start: st.start, Signal: int(signal), Grace: grace})
}

// Group registers a process group by its leader: every member is ended with SIGKILL.
func (r *Reaper) Group(leader int) (done func(), err error) {
	st, err := readStat(leader)
	if err != nil {
		return nil, fmt.Errorf("register process group %d: %w", leader, err)
	}
	if st.group != leader {
		return nil, fmt.Errorf("register process group %d: that process is in group %d", leader, st.group)
	}
	return r.add(record{Kind: kindGroup, PID: leader, Start: st.start, Session: st.session})
}

// Dir registers a folder to be removed with all it holds. The path must be
// absolute and its last element must begin with [DirPrefix].
func (r *Reaper) Dir(path string) (done func(), err error) {
	if err := checkDir(path); err != nil {
		return nil, err
	}
	return r.add(record{Kind: kindDir, Path: path})
}

// Containers registers all containers and volumes that carry label ("key=value")
// on the docker daemon at host (empty: what the environment says). Register before
// the first one is created: one that is being created while the parent dies is
// found as well, because the daemon is asked again for a while.
func (r *Reaper) Containers(host, label string) (done func(), err error) {
	if key, value, ok := strings.Cut(label, "="); !ok || key == "" || value == "" {
		return nil, fmt.Errorf("register containers: label %q is not key=value", label)
	}
	return r.add(record{Kind: kindContainers, Host: host, Label: label})
}

// SharedMemory registers a System V segment created by process creator. It is
// removed only when nothing is attached and the creator matches.
func (r *Reaper) SharedMemory(id, creator int) (done func(), err error) {
	return r.add(record{Kind: kindMemory, PID: creator, Segment: id})
}

func (r *Reaper) add(rec record) (func(), error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, ErrClosed
	}
	r.next++
	rec.ID = r.next
	if err := r.send(rec); err != nil {
		return nil, fmt.Errorf("register %s: the reaper does not listen: %w", rec.Kind, err)
	}
	var once sync.Once
	return func() {
		once.Do(func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !r.closed {
				// A reaper that is gone cannot do harm; Close reports it.
				_ = r.send(record{ID: rec.ID, Kind: kindDone})
			}
		})
	}, nil
}

// send writes one line in one write, so that a parent that is killed leaves either
// a whole record or none (a pipe takes up to 4096 bytes at once).
func (r *Reaper) send(rec record) error {
	line, err := json.Marshal(rec)
	if err != nil {
		return err
	}
	if len(line) >= maxLine {
		return fmt.Errorf("record of %d bytes is too long", len(line))
	}
	_, err = r.pipe.Write(append(line, '\n'))
	return err
}

// Close makes the reaper end whatever is still registered, and waits for it. It
// returns [ErrLeftBehind] when something could not be removed. It is idempotent.
func (r *Reaper) Close() error {
	r.closeOnce.Do(func() {
		r.mu.Lock()
		r.closed = true
		closeErr := r.pipe.Close()
		r.mu.Unlock()
		err := r.cmd.Wait()
		var exit *exec.ExitError
		switch {
		case errors.As(err, &exit) && exit.ExitCode() == exitLeftBehind:
			r.closeErr = ErrLeftBehind
		case err != nil:
			r.closeErr = fmt.Errorf("reaper: %w", err)
		case closeErr != nil:
			r.closeErr = fmt.Errorf("reaper: %w", closeErr)
		}
	})
	return r.closeErr
}

func checkDir(path string) error {
	if !filepath.IsAbs(path) || filepath.Clean(path) != path || !strings.HasPrefix(filepath.Base(path), DirPrefix) {
		return fmt.Errorf("%w: %q (it must be absolute and named %s…)", ErrBadDir, path, DirPrefix)
	}
	return nil
}

package reaper

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Family is a foreign program with all that it started: the members of its process
// group, and whoever inherited its mark, a variable in its environment that nobody
// else has. So a child that left the group is found as well; one that left the
// group and was started with another environment is not.
type Family struct {
	rec record
}

// minMark is the least length of a mark, in bytes: it has to be unique.
const minMark = 16

func validMark(mark string) bool {
	name, value, ok := bytes.Cut([]byte(mark), []byte("="))
	return ok && len(name) > 0 && len(value) >= minMark && !bytes.ContainsRune(value, 0)
}

// Family registers a program that leads a process group of its own and was started
// with mark ("NAME=value") in its environment: every member is ended with SIGKILL.
// The returned function takes it off the list.
func (r *Reaper) Family(leader int, mark string) (f *Family, done func(), err error) {
	st, err := readStat(leader)
	if err != nil {
		return nil, nil, fmt.Errorf("register family of process %d: %w", leader, err)
	}
	if st.group != leader || !validMark(mark) {
		return nil, nil, fmt.Errorf("register family of process %d: it is in group %d, marked %q", leader, st.group, mark)
	}
	f = &Family{record{Kind: kindFamily, PID: leader, Start: st.start, Session: st.session, Label: mark}}
	done, err = r.add(f.rec)
	return f, done, err
}

// relatives are the processes of a registered group or family.
func relatives(all map[int]stat, rec record) map[int]stat {
	found := members(all, rec)
	if rec.Kind != kindFamily {
		return found
	}
	marked := map[int]stat{}
	for pid, st := range all {
		if st.start >= rec.Start && hasMark(pid, rec.Label) {
			marked[pid] = st
		}
	}
	maps.Copy(marked, found)
	return marked
}

// hasMark says whether a process was started with the mark, or forked by one that
// was. A process of somebody else cannot be looked into, and is none of ours.
func hasMark(pid int, mark string) bool {
	env, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return err == nil && bytes.Contains(append([]byte{0}, env...), append([]byte("\x00"+mark), 0))
}

// each calls do for every member that has not ended, and answers how many it took
// for unfinished.
func (f *Family) each(do func(pid int, st stat) (finished bool, err error)) (unfinished int, err error) {
	all, err := allStats()
	if err != nil {
		return 0, err
	}
	var errs []error
	for pid, st := range relatives(all, f.rec) {
		if st.state == 'Z' || st.state == 'X' {
			continue
		}
		finished, err := do(pid, st)
		if err != nil {
			errs = append(errs, err)
		}
		if !finished {
			unfinished++
		}
	}
	return unfinished, errors.Join(errs...)
}

// familyEvery is how long to leave the kernel, or a member that is being started,
// before looking again.
const familyEvery = time.Millisecond

// until repeats a look at the family until there is nothing to do in it.
func (f *Family) until(what string, do func(pid int, st stat) (finished bool, err error)) error {
	over := time.Now().Add(killLimit)
	for {
		left, err := f.each(do)
		if err != nil || left == 0 {
			return err
		}
		if time.Now().After(over) {
			return fmt.Errorf("%d processes of family %d are still not %s after %s", left, f.rec.PID, what, killLimit)
		}
		time.Sleep(familyEvery)
	}
}

// send sends a signal to the very process that was looked at.
func send(pid int, st stat, sig syscall.Signal) error {
	v, ok, err := catch(pid, st.start)
	if err != nil || !ok {
		return err
	}
	defer unix.Close(v.fd)
	if err := unix.PidfdSendSignal(v.fd, sig, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("signal process %d: %w", pid, err)
	}
	return nil
}

// Kill ends every member with SIGKILL and returns when all of them are gone.
func (f *Family) Kill() error {
	return f.until("gone", func(pid int, st stat) (bool, error) { return false, send(pid, st, syscall.SIGKILL) })
}

// Stop stops every thread of every member and returns when all of them stand still.
func (f *Family) Stop() error {
	return f.until("standing still", func(pid int, st stat) (bool, error) {
		if standsStill(pid) {
			return true, nil
		}
		return false, send(pid, st, syscall.SIGSTOP)
	})
}

// Continue lets every stopped member go on.
func (f *Family) Continue() error {
	_, err := f.each(func(pid int, st stat) (bool, error) { return true, send(pid, st, syscall.SIGCONT) })
	return err
}

// Members are the ids of the members that have not ended.
func (f *Family) Members() ([]int, error) {
	var found []int
	_, err := f.each(func(pid int, _ stat) (bool, error) {
		found = append(found, pid)
		return true, nil
	})
	return found, err
}

// standsStill says whether every thread of a process is stopped.
func standsStill(pid int) bool {
	tasks, err := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/[0-9]*/stat")
	if err != nil || len(tasks) == 0 {
		return true // it has ended
	}
	for _, path := range tasks {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // that thread has ended
		}
		if st, err := parseStat(string(raw)); err != nil || st.state != 'T' && st.state != 'Z' && st.state != 'X' {
			return false
		}
	}
	return true
}

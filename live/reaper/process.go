package reaper

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// stat is what identifies a process: an id alone may have been given to another.
type stat struct {
	parent, group, session int
	state                  byte
	start                  uint64 // clock ticks since boot
}

// readStat reads /proc/<pid>/stat. The error wraps os.ErrNotExist or
// syscall.ESRCH when there is no such process.
func readStat(pid int) (stat, error) {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, err
	}
	return parseStat(string(raw))
}

// parseStat takes a line of /proc/<pid>/stat apart. The second field is the
// program's name in parentheses, and a name may itself hold spaces and
// parentheses, so the fields are counted from the last closing one.
func parseStat(line string) (stat, error) {
	end := strings.LastIndexByte(line, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("process status %.60q: no name", line)
	}
	f := strings.Fields(line[end+1:])
	const wanted = 20 // fields 3 (state) to 22 (start time)
	if len(f) < wanted || len(f[0]) != 1 {
		return stat{}, fmt.Errorf("process status %.60q: %d fields after the name", line, len(f))
	}
	s := stat{state: f[0][0]}
	var err error
	for i, into := range []*int{&s.parent, &s.group, &s.session} {
		if *into, err = strconv.Atoi(f[1+i]); err != nil {
			return stat{}, fmt.Errorf("process status: %w", err)
		}
	}
	if s.start, err = strconv.ParseUint(f[19], 10, 64); err != nil {
		return stat{}, fmt.Errorf("process status: %w", err)
	}
	return s, nil
}

// allStats lists every process there is now.
func allStats() (map[int]stat, error) {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	all := make(map[int]stat, len(names))
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if st, err := readStat(pid); err == nil { // it may have ended meanwhile
			all[pid] = st
		}
	}
	return all, nil
}

// victim is a process to end, held by a file descriptor so that signals cannot
// reach another process that was given the same id.
type victim struct {
	pid    int
	fd     int
	signal syscall.Signal
	grace  time.Duration
}

// catch opens the process with this id and start time; ok is false when it is gone.
func catch(pid int, start uint64) (v victim, ok bool, err error) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return victim{}, false, nil
	}
	if err != nil {
		return victim{}, false, fmt.Errorf("process %d: %w", pid, err)
	}
	// Opened first, compared second: the descriptor cannot change its mind.
	st, err := readStat(pid)
	if err != nil || st.start != start || st.state == 'Z' {
		_ = unix.Close(fd)
		return victim{}, false, nil
	}
	return victim{pid: pid, fd: fd, signal: syscall.SIGKILL}, true, nil
}

// gone waits up to limit until the process has ended.
func (v victim) gone(limit time.Duration) bool {
	until := time.Now().Add(limit)
	for {
		left := max(time.Until(until), 0)
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(v.fd), Events: unix.POLLIN}}, int(left.Milliseconds()))
		if errors.Is(err, unix.EINTR) {
			continue
		}
		return n > 0
	}
}

// killLimit bounds the wait for a process after SIGKILL: it ends as soon as the
// kernel lets it, which a stuck disk can delay.
const killLimit = 10 * time.Second

// endProcesses ends the registered processes with their descendants, and the
// registered groups.
func endProcesses(records []record) error {
	all, err := allStats()
	if err != nil {
		return err
	}
	var errs []error
	caught := map[int]victim{}
	take := func(pid int, start uint64) {
		if _, twice := caught[pid]; twice {
			return
		}
		v, ok, err := catch(pid, start)
		if err != nil {
			errs = append(errs, err)
		}
		if ok {
			caught[pid] = v
		}
	}
	defer func() {
		for _, v := range caught {
			_ = unix.Close(v.fd)
		}
	}()
	for _, rec := range records {
		switch rec.Kind {
		case kindProcess:
			if st, ok := all[rec.PID]; !ok || st.start != rec.Start {
				continue
			}
			take(rec.PID, rec.Start)
			if v, ok := caught[rec.PID]; ok && rec.Signal != 0 {
				v.signal, v.grace = syscall.Signal(rec.Signal), rec.Grace
				caught[rec.PID] = v
			}
			for pid := range descendants(all, rec.PID) {
				take(pid, all[pid].start)
			}
		case kindGroup, kindFamily:
			for pid, st := range relatives(all, rec) {
				take(pid, st.start)
			}
		}
	}
	// Those that clean up after themselves go first, while their helpers live.
	for _, v := range caught {
		if v.signal != syscall.SIGKILL {
			_ = unix.PidfdSendSignal(v.fd, v.signal, nil, 0)
			_ = unix.PidfdSendSignal(v.fd, unix.SIGCONT, nil, 0) // a stopped process cannot obey
		}
	}
	for _, v := range caught {
		if v.signal != syscall.SIGKILL {
			v.gone(v.grace)
		}
	}
	for _, v := range caught {
		if err := unix.PidfdSendSignal(v.fd, unix.SIGKILL, nil, 0); err != nil && !errors.Is(err, unix.ESRCH) {
			errs = append(errs, fmt.Errorf("kill process %d: %w", v.pid, err))
		}
	}
	for _, v := range caught {
		if !v.gone(killLimit) {
			errs = append(errs, fmt.Errorf("process %d is still there after SIGKILL", v.pid))
		}
	}
	return errors.Join(errs...)
}

// descendants collects the children of root, their children, and so on.
func descendants(all map[int]stat, root int) map[int]bool {
	found := map[int]bool{}
	for grew := true; grew; {
		grew = false
		for pid, st := range all {
			if (st.parent == root || found[st.parent]) && !found[pid] && pid != root {
				found[pid] = true
				grew = true
			}
		}
	}
	return found
}

// members collects the processes of a registered group. The kernel does not give
// out the number of a group again while it has a member, so when the leader is
// gone the remaining members are ours if their session is; when another process
// holds the number, the group ended long ago.
func members(all map[int]stat, rec record) map[int]stat {
	if leader, ok := all[rec.PID]; ok && leader.start != rec.Start {
		return nil
	}
	found := map[int]stat{}
	for pid, st := range all {
		if st.group == rec.PID && st.session == rec.Session && st.start >= rec.Start {
			found[pid] = st
		}
	}
	return found
}

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
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"stockproof/live/role"
)

// limit is for things that take milliseconds, on a machine that is busy.
const limit = 60 * time.Second

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(m.Run())
}

func init() { role.Register("parent", parent) }

// belongings is what a parent reports to have started.
type belongings struct {
	Reaper  int
	Pids    []int // a plain process, its child, and the members of a group and of a family
	Dirs    []string
	Segment int
}

// parent is a program that starts things, registers them, says so, and then ends in
// the way it is told.
func parent() int {
	end, dir := os.Args[1], os.Args[2]
	check := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	r, err := Start()
	check(err)
	var b belongings
	b.Reaper = r.PID()

	shell := func(script string, attr *syscall.SysProcAttr) (pid int, first string) {
		cmd := exec.Command("sh", "-c", script)
		cmd.SysProcAttr = attr
		out, err := cmd.StdoutPipe()
		check(err)
		check(cmd.Start())
		line, err := bufio.NewReader(out).ReadString('\n')
		check(err)
		return cmd.Process.Pid, strings.TrimSpace(line)
	}
	var child int
	pid, line := shell("sleep 1000 & echo $!; wait", nil)
	_, err = fmt.Sscan(line, &child)
	check(err)
	_, err = r.Process(pid)
	check(err)
	b.Pids = append(b.Pids, pid, child)

	leader, line := shell("sleep 1000 & echo $!; wait", &syscall.SysProcAttr{Setpgid: true})
	_, err = fmt.Sscan(line, &child)
	check(err)
	_, err = r.Group(leader)
	check(err)
	b.Pids = append(b.Pids, leader, child)

	// A family whose child has left the group, and whose leader is stopped.
	const mark = "STOCKPROOF_TEST_MARK=0123456789abcdef"
	check(os.Setenv("STOCKPROOF_TEST_MARK", "0123456789abcdef"))
	leader, line = shell("setsid sleep 1000 & echo $!; wait", &syscall.SysProcAttr{Setpgid: true})
	check(os.Unsetenv("STOCKPROOF_TEST_MARK"))
	_, err = fmt.Sscan(line, &child)
	check(err)
	family, _, err := r.Family(leader, mark)
	check(err)
	check(family.Stop())
	if end == "orphan" {
		// The kernel hangs up a group that stands still and loses its parent.
		check(family.Continue())
	}
	b.Pids = append(b.Pids, leader, child)

	stopped, _ := shell("echo; exec sleep 1000", nil)
	check(syscall.Kill(stopped, syscall.SIGSTOP))
	_, err = r.ProcessWith(stopped, syscall.SIGTERM, limit)
	check(err)
	b.Pids = append(b.Pids, stopped)

	folder := filepath.Join(dir, DirPrefix+"data")
	check(os.MkdirAll(filepath.Join(folder, "deep", "er"), 0o700))
	check(os.WriteFile(filepath.Join(folder, "deep", "file"), []byte("x"), 0o400))
	_, err = r.Dir(folder)
	check(err)
	b.Dirs = append(b.Dirs, folder)

	b.Segment, err = unix.SysvShmGet(unix.IPC_PRIVATE, 4096, unix.IPC_CREAT|0o600)
	check(err)
	_, err = r.SharedMemory(b.Segment, os.Getpid())
	check(err)

	check(json.NewEncoder(os.Stdout).Encode(b))
	switch end {
	case "close":
		check(r.Close())
		return 0
	case "exit":
		return 0
	case "panic":
		done := make(chan struct{})
		go func() { defer close(done); panic("on purpose") }()
		<-done
	case "orphan": // the mutant: no reaper any more
		check(syscall.Kill(b.Reaper, syscall.SIGKILL))
		return 0
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until a signal comes
	return 0
}

// left names what is still there of b.
func (b belongings) left() []string {
	var found []string
	for _, pid := range b.Pids {
		if st, err := readStat(pid); err == nil && st.state != 'Z' {
			found = append(found, fmt.Sprintf("process %d", pid))
		}
	}
	for _, dir := range b.Dirs {
		if _, err := os.Lstat(dir); !errors.Is(err, os.ErrNotExist) {
			found = append(found, "folder "+dir)
		}
	}
	var d unix.SysvShmDesc
	if _, err := unix.SysvShmCtl(b.Segment, unix.IPC_STAT, &d); err == nil {
		found = append(found, fmt.Sprintf("segment %d", b.Segment))
	}
	if st, err := readStat(b.Reaper); err == nil && st.state != 'Z' {
		found = append(found, "the reaper")
	}
	return found
}

// startParent runs a parent until it has started everything.
func startParent(t *testing.T, end string) (belongings, *exec.Cmd) {
	t.Helper()
	cmd, err := role.Command("parent", end, t.TempDir())
	require.NoError(t, err)
	_, err = cmd.StdinPipe() // open as long as this test
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	var b belongings
	require.NoError(t, json.NewDecoder(out).Decode(&b))
	return b, cmd
}

func TestNothingIsLeftHoweverTheParentEnds(t *testing.T) {
	for _, end := range []string{"close", "exit", "panic"} {
		t.Run(end, func(t *testing.T) {
			b, cmd := startParent(t, end)
			_ = cmd.Wait()
			require.Eventually(t, func() bool { return len(b.left()) == 0 }, limit, 10*time.Millisecond, "something was left")
		})
	}
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL, syscall.SIGQUIT} {
		t.Run(sig.String(), func(t *testing.T) {
			b, cmd := startParent(t, "wait")
			require.Len(t, b.left(), len(b.Pids)+3, "all of it is there before the signal")
			require.NoError(t, cmd.Process.Signal(sig))
			require.Error(t, cmd.Wait())
			require.Eventually(t, func() bool { return len(b.left()) == 0 }, limit, 10*time.Millisecond, "something was left")
		})
	}
}

func TestTheReaperIsDeafToTheSignalsOfATerminal(t *testing.T) {
	b, cmd := startParent(t, "wait")
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		require.NoError(t, syscall.Kill(b.Reaper, sig))
	}
	st, err := readStat(b.Reaper)
	require.NoError(t, err)
	require.Equal(t, b.Reaper, st.session, "it has a session of its own")
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	require.Eventually(t, func() bool { return len(b.left()) == 0 }, limit, 10*time.Millisecond, "something was left")
}

// A mutant: with the reaper out of the way things must be found left behind, or the
// tests above prove nothing.
func TestWithoutAReaperThingsAreLeftAndAreSeen(t *testing.T) {
	b, cmd := startParent(t, "orphan")
	_ = cmd.Wait()
	t.Cleanup(func() {
		for _, pid := range b.Pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		_, _ = unix.SysvShmCtl(b.Segment, unix.IPC_RMID, nil)
	})
	require.Eventually(t, func() bool { return len(b.left()) == len(b.Pids)+2 }, limit, 10*time.Millisecond,
		"processes, folder and segment stay; the reaper is gone")
}

// sleeper starts a process of this test.
func sleeper(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	_, err = bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	return cmd
}

func TestARecycledProcessIDIsLeftAlone(t *testing.T) {
	cmd := sleeper(t, "echo; exec sleep 1000")
	pid := cmd.Process.Pid
	st, err := readStat(pid)
	require.NoError(t, err)
	for _, kind := range []string{kindProcess, kindGroup} {
		require.NoError(t, endProcesses([]record{{Kind: kind, PID: pid, Start: st.start - 1, Session: st.session}}))
	}
	v, alive, err := catch(pid, st.start)
	require.NoError(t, err)
	require.True(t, alive, "a process that started at another time is another process")
	require.NoError(t, unix.Close(v.fd))

	require.NoError(t, endProcesses([]record{{Kind: kindProcess, PID: pid, Start: st.start}}))
	require.Error(t, cmd.Wait(), "with the right start time it is killed")
}

func TestADeadLeadersGroupIsStillEnded(t *testing.T) {
	cmd := exec.Command("sh", "-c", "sleep 1000 >/dev/null & echo $!")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	st, err := readStat(cmd.Process.Pid)
	require.NoError(t, err)
	var member int
	_, err = fmt.Fscan(in, &member)
	require.NoError(t, err)
	require.NoError(t, cmd.Wait())

	require.NoError(t, endProcesses([]record{{Kind: kindGroup, PID: cmd.Process.Pid, Start: st.start, Session: st.session}}))
	require.Eventually(t, func() bool {
		st, err := readStat(member)
		return err != nil || st.state == 'Z'
	}, limit, 10*time.Millisecond)
}

func TestAPoliteSignalComesFirstAndSIGKILLAfterTheGrace(t *testing.T) {
	mark := filepath.Join(t.TempDir(), "mark")
	polite := sleeper(t, "trap 'echo bye > "+mark+"; exit 0' TERM; echo; while :; do sleep 0.01; done")
	st, err := readStat(polite.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, endProcesses([]record{{Kind: kindProcess, PID: polite.Process.Pid, Start: st.start, Signal: int(syscall.SIGTERM), Grace: limit}}))
	require.FileExists(t, mark)

	stubborn := sleeper(t, "trap '' TERM; echo; while :; do sleep 0.01; done")
	st, err = readStat(stubborn.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, endProcesses([]record{{Kind: kindProcess, PID: stubborn.Process.Pid, Start: st.start, Signal: int(syscall.SIGTERM), Grace: time.Millisecond}}))
	err = stubborn.Wait()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit))
	require.Equal(t, syscall.SIGKILL, exit.Sys().(syscall.WaitStatus).Signal())
}

func TestWhatIsDoneSurvivesTheReaper(t *testing.T) {
	cmd := sleeper(t, "echo; exec sleep 1000")
	dir := filepath.Join(t.TempDir(), DirPrefix+"kept")
	require.NoError(t, os.Mkdir(dir, 0o700))
	r, err := Start()
	require.NoError(t, err)
	doneProcess, err := r.Process(cmd.Process.Pid)
	require.NoError(t, err)
	doneDir, err := r.Dir(dir)
	require.NoError(t, err)
	doneProcess()
	doneDir()
	doneDir()
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "closing twice is closing once")
	require.DirExists(t, dir)
	st, err := readStat(cmd.Process.Pid)
	require.NoError(t, err)
	require.NotEqual(t, byte('Z'), st.state)

	_, err = r.Dir(dir)
	require.ErrorIs(t, err, ErrClosed)
}

func TestWhatCannotBeRegistered(t *testing.T) {
	r, err := Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	for _, path := range []string{"", "/", "/tmp", "stockproof-x", "/tmp/stockproof-x/", "/tmp/x/../stockproof-x", "/stockproof-x/data"} {
		_, err := r.Dir(path)
		require.ErrorIs(t, err, ErrBadDir, path)
	}
	for _, label := range []string{"", "k", "k=", "=v"} {
		_, err := r.Containers("", label)
		require.Error(t, err, label)
	}
	ended := exec.Command("true")
	require.NoError(t, ended.Run())
	_, err = r.Process(ended.Process.Pid)
	require.Error(t, err, "a process that has been waited for")
	_, err = r.Group(os.Getpid())
	if syscall.Getpgrp() != os.Getpid() {
		require.Error(t, err, "a process that leads no group")
	}
}

func TestADeadReaperIsNoticed(t *testing.T) {
	r, err := Start()
	require.NoError(t, err)
	require.NoError(t, syscall.Kill(r.PID(), syscall.SIGKILL))
	require.Eventually(t, func() bool {
		_, err := r.Dir("/tmp/stockproof-none")
		return err != nil
	}, limit, time.Millisecond, "registering with a dead reaper must fail")
	require.Error(t, r.Close())
}

func TestAFolderThatCannotBeRemovedIsReported(t *testing.T) {
	var said strings.Builder
	require.Equal(t, exitLeftBehind, collect(strings.NewReader(`{"id":1,"kind":"dir","path":"/proc"}`+"\n"), &said))
	require.Contains(t, said.String(), "/proc")
}

func TestAProgramWithoutTheHookCannotStartAReaper(t *testing.T) {
	t.Setenv(role.Env, roleName)
	_, err := Start()
	require.ErrorIs(t, err, role.ErrNotHooked)
}

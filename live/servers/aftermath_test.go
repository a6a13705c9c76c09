package servers_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/live/reaper"
	"stockproof/live/role"
	"stockproof/live/servers"
)

// limit is for things that take seconds at most, on a machine that is busy.
const limit = 90 * time.Second

func init() { role.Register("run", run) }

// run is a program that starts servers and then ends in the way it is told.
// Arguments: the end, the backend, the session.
func run() int {
	end, backend, session := os.Args[1], servers.Backend(os.Args[2]), os.Args[3]
	opt := servers.Options{Session: session}
	if end == "bad-postgres" {
		opt.PostgresSettings = map[string]string{"shared_buffers": "a lot"}
	}
	if end == "bad-redis" {
		opt.RedisSettings = map[string]string{"no-such-setting": "1"}
	}
	fmt.Println("starting")
	s, err := servers.StartWith(context.Background(), backend, opt)
	if err != nil {
		fmt.Println(strings.ReplaceAll(err.Error(), "\n", " "))
		return 1
	}
	fmt.Println("up", s.Reaper.PID())
	switch end {
	case "close":
		if err := s.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return 0
	case "exit":
		return 0
	case "panic":
		panic("on purpose")
	case "orphan": // the mutant: no reaper any more
		_ = syscall.Kill(s.Reaper.PID(), syscall.SIGKILL)
		return 0
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // until a signal comes
	return 0
}

// program is a running "run".
type program struct {
	*exec.Cmd
	session string
	backend servers.Backend
	lines   *bufio.Scanner
	reaper  int
}

func startProgram(t *testing.T, end string, b servers.Backend) *program {
	t.Helper()
	p := &program{backend: b, session: fmt.Sprintf("test-%d-%d", os.Getpid(), time.Now().UnixNano())}
	cmd, err := role.Command("run", end, string(b), p.session)
	require.NoError(t, err)
	p.Cmd = cmd
	_, err = cmd.StdinPipe() // open as long as this test
	require.NoError(t, err)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	p.lines = bufio.NewScanner(out)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Equal(t, "starting", p.line(t))
	return p
}

func (p *program) line(t *testing.T) string {
	t.Helper()
	require.True(t, p.lines.Scan(), "the program said nothing: %v", p.lines.Err())
	return p.lines.Text()
}

func (p *program) awaitUp(t *testing.T) {
	t.Helper()
	_, err := fmt.Sscanf(p.line(t), "up %d", &p.reaper)
	require.NoError(t, err)
}

// left names what is still there of the program's session.
func (p *program) left(t *testing.T) []string {
	found := leftOf(t, p.backend, p.session)
	if p.reaper != 0 && exists(p.reaper) {
		found = append(found, "the reaper")
	}
	return found
}

// exists reports whether a process is running; one that only waits to be collected
// by its parent is not.
func exists(pid int) bool {
	_, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe")
	return err == nil
}

// reaperOf finds the child of parent that plays the reaper.
func reaperOf(t *testing.T, parent int) int {
	t.Helper()
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	require.NoError(t, err)
	for _, environ := range environs {
		raw, err := os.ReadFile(environ)
		if err != nil || !strings.Contains("\x00"+string(raw), "\x00"+role.Env+"=reaper\x00") {
			continue
		}
		status, err := os.ReadFile(filepath.Join(filepath.Dir(environ), "status"))
		if err == nil && strings.Contains(string(status), fmt.Sprintf("\nPPid:\t%d\n", parent)) {
			pid, err := strconv.Atoi(filepath.Base(filepath.Dir(environ)))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("the program has no reaper")
	return 0
}

// leftOf names processes that work in the session's folder, the folder, shared
// memory made by those processes, and containers and volumes with the session's label.
func leftOf(t *testing.T, b servers.Backend, session string) []string {
	folder := filepath.Join(os.TempDir(), reaper.DirPrefix+session)
	var found []string
	for _, pid := range processesIn(folder) {
		found = append(found, fmt.Sprintf("process %d", pid))
	}
	if _, err := os.Lstat(folder); !errors.Is(err, os.ErrNotExist) {
		found = append(found, "folder "+folder)
	}
	if b == servers.Container {
		containers, volumes, err := reaper.ContainersLeft(t.Context(), "", servers.Label+"="+session)
		if err != nil {
			return append(found, err.Error())
		}
		for _, id := range containers {
			found = append(found, "container "+id)
		}
		for _, name := range volumes {
			found = append(found, "volume "+name)
		}
	}
	return found
}

// processesIn lists the processes whose working folder is folder or below it, also
// when the folder is gone.
func processesIn(folder string) []int {
	var pids []int
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		at, err := os.Readlink(link)
		if err == nil && (at == folder || strings.HasPrefix(at, folder+"/")) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// segmentsOf counts System V segments created by any of pids.
func segmentsOf(t *testing.T, pids []int) int {
	t.Helper()
	raw, err := os.ReadFile("/proc/sysvipc/shm")
	require.NoError(t, err)
	n := 0
	for line := range strings.Lines(string(raw)) {
		f := strings.Fields(line) // key shmid perms size cpid …
		for _, pid := range pids {
			if len(f) > 4 && f[4] == strconv.Itoa(pid) {
				n++
			}
		}
	}
	return n
}

func (p *program) requireNothingLeft(t *testing.T) {
	t.Helper()
	var found []string
	gone := func() bool { found = p.left(t); return len(found) == 0 }
	if !gone() {
		require.Eventually(t, gone, limit, 50*time.Millisecond)
	}
	require.Empty(t, found)
}

func TestNothingIsLeftHoweverTheProgramEnds(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		t.Run("close", func(t *testing.T) {
			t.Parallel()
			p := startProgram(t, "close", b)
			p.awaitUp(t)
			require.NoError(t, p.Wait())
			require.Empty(t, p.left(t), "after a proper end nothing needs to be waited for")
		})
		for _, end := range []string{"exit", "panic"} {
			t.Run(end, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, end, b)
				p.awaitUp(t)
				_ = p.Wait()
				p.requireNothingLeft(t)
			})
		}
		for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGKILL} {
			t.Run(sig.String(), func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, "wait", b)
				p.awaitUp(t)
				require.NotEmpty(t, p.left(t), "the servers are there before the signal")
				pids := processesIn(filepath.Join(os.TempDir(), reaper.DirPrefix+p.session))
				if b == servers.Process {
					require.Equal(t, 1, segmentsOf(t, pids), "PostgreSQL holds shared memory")
				}
				require.NoError(t, p.Process.Signal(sig))
				require.Error(t, p.Wait())
				p.requireNothingLeft(t)
				require.Zero(t, segmentsOf(t, pids))
			})
		}
	})
}

func TestNothingIsLeftWhenTheProgramIsKilledWhileItStartsServers(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		p := startProgram(t, "wait", b)
		// It has only begun when there is a first trace of it.
		require.Eventually(t, func() bool { return len(p.left(t)) > 0 }, limit, time.Millisecond)
		p.reaper = reaperOf(t, p.Process.Pid)
		require.NoError(t, p.Process.Kill())
		require.False(t, p.lines.Scan(), "it was killed before it was up")
		_ = p.Wait()
		// The daemon may still be creating something. The reaper looks for a while, and
		// when it has ended there must be nothing more to come.
		require.Eventually(t, func() bool { return !exists(p.reaper) }, limit, 50*time.Millisecond)
		require.Empty(t, p.left(t))
	})
}

func TestNothingIsLeftWhenOneServerCannotStart(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		for end, says := range map[string][]string{
			"bad-postgres": {"run postgres: ", "shared_buffers"},
			"bad-redis":    {"run redis: ", "no-such-setting"},
		} {
			t.Run(end, func(t *testing.T) {
				t.Parallel()
				p := startProgram(t, end, b)
				line := p.line(t)
				for _, want := range says {
					require.Contains(t, line, want)
				}
				require.Error(t, p.Wait())
				require.Empty(t, p.left(t), "Start itself cleans up")
			})
		}
	})
}

// A mutant: with the reaper out of the way something must be found left behind, or
// the tests above prove nothing.
func TestWithoutAReaperSomethingIsLeftAndIsSeen(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		p := startProgram(t, "orphan", b)
		p.awaitUp(t)
		require.NoError(t, p.Wait())
		label := servers.Label + "=" + p.session
		folder := filepath.Join(os.TempDir(), reaper.DirPrefix+p.session)
		t.Cleanup(func() {
			if b == servers.Container {
				_, err := reaper.RemoveContainers(context.Background(), "", label)
				require.NoError(t, err)
			}
			require.NoError(t, reaper.RemoveDir(folder))
		})
		require.NotEmpty(t, p.left(t))
	})
}

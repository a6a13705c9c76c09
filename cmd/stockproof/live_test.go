package main

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults/schedule"
	"stockproof/live/role"
	"stockproof/live/servers"
)

// needLive leaves a test out only on explicit request.
func needLive(t *testing.T) {
	t.Helper()
	if _, err := servers.Choose(t.Context(), os.Getenv); errors.Is(err, servers.ErrLiveOff) {
		t.Skip(err)
	} else {
		require.NoError(t, err)
	}
}

func TestVerifyWritesEvidenceHistoriesAndPictures(t *testing.T) {
	needLive(t)
	out := t.TempDir()
	args := []string{"verify", "--world", "live", "--out", out, "--scheme", "naive,lua-hash", "--fault", "none,reply-lost", "--workload", "unit", "--retries", "off"}
	status, stdout, stderr := command(t, args...)
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	require.Contains(t, stdout, "every verdict is as the scheme declares it")

	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	require.NoError(t, err)
	var report evidence.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	require.Equal(t, evidence.Schema, report.Schema)
	require.NotEmpty(t, report.Bounds.Live.Versions)
	for _, c := range report.Cells {
		require.Equal(t, c.Placements.Enumerated, c.Placements.Fired, "%+v", c)
		if c.Verdict == evidence.Violated {
			require.FileExists(t, filepath.Join(out, c.Witness))
			run := strings.TrimSuffix(filepath.Join(out, c.Witness), ".jsonl")
			seen, err := schedule.ReadFile(run + ".schedule")
			require.NoError(t, err)
			small, err := schedule.ReadFile(fmt.Sprintf("%s.%s.smallest.schedule", run, c.Property))
			require.NoError(t, err)
			require.True(t, seen.Shows(c.Property) && small.Shows(c.Property), c.Witness)
			require.LessOrEqual(t, len(small.Steps), len(seen.Steps))
		}
	}
	pictures, err := filepath.Glob(filepath.Join(out, "pictures", "naive.*.html"))
	require.NoError(t, err)
	require.NotEmpty(t, pictures)

	status, stdout, _ = command(t, append(args, "--format", "junit")...)
	require.Equal(t, evidence.ExitOK, status)
	var suites struct {
		Suites []struct {
			Tests int `xml:"tests,attr"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal([]byte(stdout), &suites))
	require.Len(t, suites.Suites, 5, "four groups of cells, and the claims")
}

// The roles below let a test end the whole program from outside.
func init() {
	role.Register("test-verify", func() int {
		return run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	})
	role.Register("test-main", func() int { main(); return 0 })
	role.Register("test-panic", func() int {
		go func() {
			// The bystander of a run that is under way.
			for range time.Tick(time.Millisecond) {
				if len(clientsOf(os.Getpid())) > 3 {
					panic("on purpose")
				}
			}
		}()
		return run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)
	})
}

// family lists a process's descendants with their start times, so that a
// recycled process id is not taken for one of them.
func family(pid int) map[int]string {
	children := map[int][]int{}
	started := map[int]string{}
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
		p, _ := strconv.Atoi(strings.Split(path, "/")[2])
		parent, _ := strconv.Atoi(fields[1])
		if fields[0] != "Z" {
			children[parent] = append(children[parent], p)
			started[p] = fields[19]
		}
	}
	found := map[int]string{}
	var walk func(int)
	walk = func(p int) {
		for _, c := range children[p] {
			found[c] = started[c]
			walk(c)
		}
	}
	walk(pid)
	return found
}

// clientsOf lists the client processes among a process's descendants.
func clientsOf(pid int) []int {
	var found []int
	for p := range family(pid) {
		env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", p))
		if err == nil && bytes.Contains(env, []byte(role.Env+"=client\x00")) {
			found = append(found, p)
		}
	}
	return found
}

func alive(pid int, started string) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	fields := strings.Fields(string(raw[bytes.LastIndexByte(raw, ')')+1:]))
	return fields[0] != "Z" && fields[19] == started
}

func TestNothingIsLeftBehindHoweverTheProgramEnds(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		name   string
		role   string
		end    func(*testing.T, *exec.Cmd)
		status int // -1: any
	}{
		{"success", "test-verify", func(*testing.T, *exec.Cmd) {}, evidence.ExitOK},
		{"Ctrl-C", "test-main", send(syscall.SIGINT), evidence.ExitInconclusive},
		{"SIGTERM", "test-main", send(syscall.SIGTERM), evidence.ExitInconclusive},
		{"SIGKILL of the parent", "test-verify", send(syscall.SIGKILL), -1},
		{"panic", "test-panic", func(*testing.T, *exec.Cmd) {}, -1},
	} {
		t.Run(c.name, func(t *testing.T) {
			tmp, out := t.TempDir(), t.TempDir()
			// Servers running as another user must get through to their folder.
			require.NoError(t, os.Chmod(tmp, 0o755))
			require.NoError(t, os.Chmod(filepath.Dir(tmp), 0o755))
			// Long enough to be ended in the middle, except where it shall end well.
			args := []string{"verify", "--world", "live", "--out", out, "--scheme", "lock", "--fault", "client-crash,client-pause,none"}
			if c.name == "success" {
				args = append(args, "--fault", "none", "--workload", "unit", "--retries", "off")
			}
			cmd, err := role.Command(c.role, args...)
			require.NoError(t, err)
			cmd.Env = append(cmd.Env, "TMPDIR="+tmp)
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			require.NoError(t, cmd.Start())
			ended := make(chan struct{})
			go func() {
				_ = cmd.Wait() // the exit status is looked at below
				close(ended)
			}()
			// Everybody who was ever there has to be gone afterwards.
			relatives := map[int]string{}
			signalled := false
			deadline := time.After(2 * time.Minute)
		watch:
			for {
				maps.Copy(relatives, family(cmd.Process.Pid))
				if c.name != "success" && !signalled && len(clientsOf(cmd.Process.Pid)) >= 3 {
					signalled = true
					c.end(t, cmd)
				}
				select {
				case <-ended:
					break watch
				case <-deadline:
					_ = cmd.Process.Kill()
					t.Fatalf("it does not end:\n%s", output.String())
				default:
				}
			}
			require.NotEmpty(t, relatives)
			if c.name == "panic" {
				// It sees by itself that a run is under way; it may be over before we do.
				require.Contains(t, output.String(), "panic: on purpose")
			} else {
				require.Equal(t, c.name != "success", signalled, "a run was under way\n%s", output.String())
			}
			if c.status >= 0 {
				require.Equal(t, c.status, cmd.ProcessState.ExitCode(), output.String())
			}
			require.Eventually(t, func() bool {
				for pid, started := range relatives {
					if alive(pid, started) {
						return false
					}
				}
				left, err := os.ReadDir(tmp)
				return err == nil && len(left) == 0
			}, time.Minute, 10*time.Millisecond, "something is left")
		})
	}
}

func send(sig syscall.Signal) func(*testing.T, *exec.Cmd) {
	return func(t *testing.T, cmd *exec.Cmd) { require.NoError(t, cmd.Process.Signal(sig)) }
}

func TestAServerThatDiesDuringARunIsNamedAndNothingRecordedIsLost(t *testing.T) {
	needLive(t)
	// A container's server is not a descendant that can be killed from here; its
	// death is tested in package servers.
	t.Setenv(servers.EnvBackend, "process")
	out := t.TempDir()
	cmd, err := role.Command("test-main", "verify", "--world", "live", "--out", out, "--scheme", "hincrby,lock")
	require.NoError(t, err)
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	defer cmd.Process.Kill()
	require.Eventually(t, func() bool {
		written, _ := filepath.Glob(filepath.Join(out, "histories", "hincrby.client-pause.*"))
		return len(written) > 0
	}, time.Minute, time.Millisecond)
	for pid := range family(cmd.Process.Pid) {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.TrimSpace(string(comm)) == "redis-server" {
			require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		}
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatalf("it does not end:\n%s", output.String())
	}
	require.Equal(t, evidence.ExitInconclusive, cmd.ProcessState.ExitCode(), output.String())
	require.Contains(t, output.String(), "redis")
	require.Contains(t, output.String(), "INCOMPLETE")
	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	require.NoError(t, err)
	var report evidence.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	require.NotEmpty(t, report.Cells, "what was found before is kept")
	require.NotEmpty(t, report.Bounds.Incomplete)
}

// What shards saw on servers of their own is, merged, the verdicts of one run, with
// every history beside it.
func TestTwoShardsOfLiveRunsMergedHaveTheVerdictsOfTheWhole(t *testing.T) {
	needLive(t)
	args := []string{"verify", "--world", "live", "--scheme", "hincrby,lua-string", "--fault", "none,client-crash", "--workload", "unit", "--retries", "off"}
	files := shards(t, 2, args...)
	got, dir := merged(t, files...)
	out := t.TempDir()
	status, _, stderr := command(t, append(args, "--out", out)...)
	require.Equal(t, evidence.ExitOK, status, stderr)
	verdicts := func(r evidence.Report) map[string]evidence.Verdict {
		list := map[string]evidence.Verdict{}
		for _, c := range r.Cells {
			require.Equal(t, "live", c.World)
			list[fmt.Sprint(c.Scheme, c.Fault, c.Property)] = c.Verdict
		}
		return list
	}
	whole := report(t, filepath.Join(out, "evidence.json"))
	require.NotEmpty(t, whole.Cells)
	require.Equal(t, verdicts(whole), verdicts(got))
	require.Equal(t, len(whole.Cells), len(got.Cells))
	shown := 0
	for _, c := range got.Cells {
		if c.Witness != "" {
			shown++
			require.FileExists(t, filepath.Join(dir, c.Witness))
		}
	}
	require.NotZero(t, shown)
}

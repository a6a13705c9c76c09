//go:build !nolive

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/histories"
	"stockproof/live/role"
	"stockproof/model"
)

func TestASoakWithBadFlagsIsRefused(t *testing.T) {
	for _, args := range [][]string{
		{},
		{"--scheme", "magic"},
		{"--scheme", "lock", "--faults", "magic"},
		{"--scheme", "lock", "--faults", "store-loses"},
		{"--scheme", "lock", "--faults", "none,reply-lost"},
		{"--scheme", "lock", "--clients", "0"},
		{"--scheme", "lock", "--clients", "65"},
		{"--scheme", "lock", "--fault-rate", "1.5"},
		{"--scheme", "lock", "--duration", "0s"},
		{"--scheme", "lock", "--retries", "some"},
		{"--scheme", "lock", "--format", "xml"},
		{"--scheme", "lock", "more"},
	} {
		status, _, stderr := command(t, append([]string{"soak"}, args...)...)
		require.Equal(t, evidence.ExitUsage, status, "%v", args)
		require.NotEmpty(t, stderr)
	}
}

// longSoak is a soak that nobody waits for the end of: naive, which oversells
// in nearly every sale.
func longSoak(t *testing.T) (cmd *exec.Cmd, output *bytes.Buffer, ended chan struct{}, dir string, relatives map[int]string) {
	t.Helper()
	needLive(t)
	out := t.TempDir()
	cmd, err := role.Command("test-main", "soak", "--scheme", "naive", "--faults", "none", "--retries", "off", "--duration", "10m", "--seed", "3", "--out", out, "--format", "json")
	require.NoError(t, err)
	output = new(bytes.Buffer)
	cmd.Stdout, cmd.Stderr = output, os.Stderr
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ended = make(chan struct{})
	go func() {
		_ = cmd.Wait() // the exit status is looked at by the test
		close(ended)
	}()
	dir = filepath.Join(out, "soak", "naive-3")
	require.Eventually(t, func() bool {
		h, err := histories.ReadFile(filepath.Join(dir, "000002.jsonl"))
		return err == nil && len(h.Ops) > 0
	}, time.Minute, 5*time.Millisecond)
	return cmd, output, ended, dir, family(cmd.Process.Pid)
}

func requireGone(t *testing.T, relatives map[int]string) {
	t.Helper()
	require.NotEmpty(t, relatives)
	require.Eventually(t, func() bool {
		for pid, started := range relatives {
			if alive(pid, started) {
				return false
			}
		}
		return true
	}, time.Minute, 10*time.Millisecond, "something is left")
}

func TestCtrlCEndsASoakWithAVerdictOnWhatWasRecorded(t *testing.T) {
	cmd, output, ended, dir, relatives := longSoak(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGINT))
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	require.Equal(t, evidence.ExitBroken, cmd.ProcessState.ExitCode(), output.String())
	var report soakReport
	require.NoError(t, json.Unmarshal(output.Bytes(), &report), output.String())
	require.True(t, report.Stopped)
	require.GreaterOrEqual(t, report.Sales, 2, "the sale under way is judged too")
	for _, v := range report.Verdicts {
		if v.Property == model.Oversell {
			require.Equal(t, evidence.Violated, v.Verdict)
			require.Positive(t, v.Amount)
		}
		require.NotEqual(t, evidence.Inconclusive, v.Verdict, "%+v", v)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.Len(t, files, report.Sales+report.SlowSales, "each sale has its history")
	operations := 0
	for _, f := range files {
		h, err := histories.ReadFile(f)
		require.NoError(t, err)
		for _, op := range h.Ops {
			if op.Op != model.Read { // the one at rest is ours, no client's
				operations++
			}
		}
	}
	require.Equal(t, operations, report.Operations)
	requireGone(t, relatives)
}

func TestASoakThatIsKilledLeavesReadableHistoriesAndNothingElse(t *testing.T) {
	cmd, _, ended, dir, relatives := longSoak(t)
	require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
	<-ended
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 2)
	for _, f := range files {
		h, err := histories.ReadFile(f)
		require.NoError(t, err)
		require.Equal(t, int64(10), h.Initial)
		status, _, _ := command(t, "check", f)
		require.NotEqual(t, evidence.ExitUsage, status, "it can be checked")
	}
	requireGone(t, relatives)
}

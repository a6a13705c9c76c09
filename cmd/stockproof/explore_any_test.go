package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/explore"
)

func TestExploreProvesALockForAnyNumberOfClients(t *testing.T) {
	status, stdout, stderr := command(t, "explore", "--scheme", "lock", "--clients", "any", "--faults", "any", "--kind", "client-crash")
	require.Equal(t, evidence.ExitOK, status, stderr)
	require.Contains(t, stdout, "oversell            holds for any number of clients")
	require.Contains(t, stdout, "covered: any number of clients, 1 units, any faults")
	require.NotContains(t, stdout, "violated")
}

func TestExploreConvictsWithTheSmallestNumberOfClients(t *testing.T) {
	out := t.TempDir()
	status, stdout, stderr := command(t, "explore", "--scheme", "lock", "--clients", "any", "--kind", "client-pause", "--out", out)
	require.Equal(t, evidence.ExitBroken, status, stderr)
	require.Contains(t, stdout, "oversell            violated with 2 clients (1 units sold too many), not with fewer")
	require.Contains(t, stdout, "! pause")
	status, stdout, stderr = command(t, "replay", filepath.Join(out, "witnesses", "lock.unit.any.oversell.schedule"))
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	require.Contains(t, stdout, "as recorded")
}

func TestWhatCannotBeDecidedForAnyNumberOfClientsExitsWith4(t *testing.T) {
	status, stdout, _ := command(t, "explore", "--scheme", "lua-hash", "--clients", "any", "--kind", "duplicate-request")
	require.Equal(t, evidence.ExitInconclusive, status)
	require.Contains(t, stdout, "double-deduct       inconclusive")
}

func TestExploreTellsAnyNumberOfClientsInJSON(t *testing.T) {
	status, stdout, _ := command(t, "explore", "--scheme", "naive-set", "--clients", "any", "--faults", "0", "--format", "json")
	require.Equal(t, evidence.ExitBroken, status)
	require.Contains(t, stdout, `"Clients": "any"`)
	var r exploredAnyJSON
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.Equal(t, evidence.AnyNumber, r.Clients)
	require.True(t, r.Finite)
	require.Len(t, r.Verdicts, len(explore.AnyProperties()))
	for _, v := range r.Verdicts {
		require.Equal(t, v.Status == explore.Violated, v.Witness != "", v.Property)
		require.Equal(t, v.Status == explore.Violated, v.Clients == 2, v.Property)
	}
}

func TestVerifyShowsAnyNumberOfClientsApart(t *testing.T) {
	out := t.TempDir()
	status, stdout, stderr := command(t, "verify", "--confirm", "off", "--clients", "any", "--out", out, "--scheme", "lock,lua-string", "--workload", "unit",
		"--fault", "none,client-crash,client-pause", "--retries", "off")
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	require.Contains(t, stdout, "explore, any number of clients")
	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	require.NoError(t, err)
	var report evidence.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	require.Equal(t, evidence.AnyNumber, report.Bounds.Explore.Clients)
	holds, violated := 0, 0
	for _, c := range report.Cells {
		require.Equal(t, evidence.AnyNumber, c.Clients)
		switch c.Verdict {
		case evidence.Holds:
			holds++
		case evidence.Violated:
			violated++
			require.FileExists(t, filepath.Join(out, c.Witness))
		}
	}
	require.Greater(t, holds, 15)
	require.Equal(t, 3, violated, "what a pause does to a lock")
}

func TestBadUsesOfAnyAreRefused(t *testing.T) {
	for _, args := range [][]string{
		{"explore", "--scheme", "lock", "--faults", "any"},
		{"explore", "--scheme", "lock", "--clients", "some"},
		{"explore", "--scheme", "lock", "--clients", "any", "--no-symmetry"},
		{"verify", "--clients", "any", "--world", "all"},
	} {
		status, _, stderr := command(t, args...)
		require.Equal(t, evidence.ExitUsage, status, "%v: %s", args, stderr)
	}
}

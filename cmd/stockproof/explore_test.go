package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/model"
)

func TestExploreShowsTheShortestWitnessAndExitsWith1(t *testing.T) {
	status, stdout, stderr := command(t, "explore", "--scheme", "lock", "--clients", "3", "--faults", "1", "--kind", "client-pause")
	require.Equal(t, evidence.ExitBroken, status, stderr)
	require.Contains(t, stdout, "oversell            violated (1 units sold too many)")
	require.Contains(t, stdout, "! pause")
	require.Contains(t, stdout, "everything within 3 clients, 1 units, 1 faults")
	require.Contains(t, stdout, "violates oversell=1")
	require.Regexp(t, `first witness of oversell after [0-9.]+(µs|ms|s): 2 clients, \d+ lines`, stdout)
}

func TestExploreExitsWith0WhenEverythingHolds(t *testing.T) {
	status, stdout, _ := command(t, "explore", "--scheme", "lua-hash", "--faults", "0")
	require.Equal(t, evidence.ExitOK, status)
	require.NotContains(t, stdout, "violated")
	require.Contains(t, stdout, "covered: ")
}

func TestASearchThatDoesNotEndIsInconclusiveAndExitsWith4(t *testing.T) {
	for name, limit := range map[string][]string{"memory": {"--memory", "1"}, "time": {"--timeout", "1ns"}} {
		t.Run(name, func(t *testing.T) {
			args := append([]string{"explore", "--scheme", "lock", "--clients", "5", "--faults", "2", "--kind", "script-flush"}, limit...)
			status, stdout, stderr := command(t, args...)
			require.Equal(t, evidence.ExitInconclusive, status, stdout+stderr)
			require.Contains(t, stdout, "NOT covered: ")
			require.Contains(t, stdout, "inconclusive")
			require.NotContains(t, stdout, " holds")
		})
	}
}

func TestExploreTellsItsResultInJSON(t *testing.T) {
	status, stdout, _ := command(t, "explore", "--scheme", "naive", "--clients", "2", "--faults", "0", "--format", "json")
	require.Equal(t, evidence.ExitBroken, status)
	var r exploredJSON
	require.NoError(t, json.Unmarshal([]byte(stdout), &r))
	require.True(t, r.Exhaustive)
	require.NotEmpty(t, r.Executions)
	require.Len(t, r.Verdicts, len(model.Properties()))
	for _, v := range r.Verdicts {
		require.Equal(t, v.Status == explore.Violated, v.Witness != "", v.Property)
		require.Equal(t, v.Status == explore.Violated, v.First != nil, v.Property)
	}
}

func TestVerifyExploresByDefaultAndWritesAWitnessForEachViolation(t *testing.T) {
	out := t.TempDir()
	status, stdout, stderr := command(t, "verify", "--confirm", "off", "--out", out, "--scheme", "hincrby,lua-string", "--workload", "unit,mixed")
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	require.NoError(t, err)
	var report evidence.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	require.Equal(t, []string{"explore"}, report.Bounds.Worlds)
	require.EqualValues(t, 3, report.Bounds.Explore.Clients)
	violated, witnesses := 0, []string{"replay"}
	for _, c := range report.Cells {
		require.True(t, c.Exhaustive, "%+v", c)
		require.EqualValues(t, 3, c.Clients)
		require.NotEmpty(t, c.Executions)
		if c.Verdict == evidence.Violated {
			violated++
			witness, err := os.ReadFile(filepath.Join(out, c.Witness))
			require.NoError(t, err)
			require.Contains(t, string(witness), string(c.Property)+"=")
			witnesses = append(witnesses, filepath.Join(out, c.Witness))
		}
	}
	require.Greater(t, violated, 10)
	status, stdout, stderr = command(t, witnesses...)
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	require.Equal(t, violated, strings.Count(stdout, ": as recorded in explore"))
}

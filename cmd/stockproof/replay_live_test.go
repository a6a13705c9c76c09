package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
)

const losesOversells = "../../testdata/schedules/lua-string-store-loses-oversell.schedule"

// Two of three clients wait for a row, and the one that came last goes first.
const lastGoesFirst = `schedule v1
scheme   db-version
config   retries=off
stock    goods:1001 1
client   a deduct 1
client   b deduct 1
client   c deduct 1
---
a  SQL UPDATE goods SET stock = 0 WHERE sku = 1001 => 1 row
b  SQL UPDATE goods SET stock = 0 WHERE sku = 1001 => blocked
c  SQL UPDATE goods SET stock = 0 WHERE sku = 1001 => blocked
a  SQL commit                                       => COMMIT  ; a=sold
c  SQL goes on                                      => 1 row
---
outcome  a=sold b=unfinished c=unfinished
stock    0
violates nothing
`

func TestASchedulesReplayOnRealServersHasTheSameExitStatus(t *testing.T) {
	needLive(t)
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	raw, err := os.ReadFile(losesOversells)
	require.NoError(t, err)
	altered := write("altered", strings.Replace(string(raw), "lua-string stock:1001 1                  => 1 ", "lua-string stock:1001 1                  => 0 ", 1))
	cannot := write("cannot", lastGoesFirst)

	status, stdout, stderr := command(t, "replay", "--world", "live", losesOversells, cannot)
	require.Equal(t, evidence.ExitInconclusive, status, stdout+stderr)
	require.Contains(t, stdout, losesOversells+": as recorded in live, 4 steps, violates oversell=1 phantom-units=1 non-linearizable=1\n")
	require.Contains(t, stdout, cannot+": inconclusive in live: real servers cannot replay it: line 13: of several statements")

	status, stdout, _ = command(t, "replay", "--world", "live", cannot, altered)
	require.Equal(t, evidence.ExitBroken, status, stdout, "a divergence weighs more than what is not known")
	require.Contains(t, stdout, altered+":12: not as recorded in live\n")
	require.Contains(t, stdout, "  expected  0\n  seen      1\n")

	status, _, stderr = command(t, "replay", "--world", "live", "--loss", "fire", losesOversells)
	require.Equal(t, evidence.ExitUsage, status)
	require.Contains(t, stderr, "aof-tail")
}

func TestVerifyConfirmsTheWitnessesOfExploreOnRealServers(t *testing.T) {
	needLive(t)
	out := t.TempDir()
	status, stdout, stderr := command(t, "verify", "--out", out, "--scheme", "lua-string", "--fault", "store-loses,client-crash",
		"--workload", "unit", "--retries", "off", "--clients", "2")
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	require.NoError(t, err)
	var report evidence.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	violated := 0
	for _, c := range report.Cells {
		if c.World != "explore" || c.Verdict != evidence.Violated {
			continue
		}
		violated++
		require.NotNil(t, c.ConfirmedLive, "%s %s: %s", c.Fault, c.Property, c.NotConfirmed)
		require.True(t, *c.ConfirmedLive, "%s %s: %s", c.Fault, c.Property, c.NotConfirmed)
	}
	require.Greater(t, violated, 2)
	confirmed := report.Bounds.Confirmed
	require.NotNil(t, confirmed)
	require.Equal(t, confirmed.Witnesses, confirmed.AsFound)
	require.Less(t, confirmed.Witnesses, violated, "cells share a witness")
	require.Contains(t, stdout, "witnesses of explore came out the same on real servers")
}

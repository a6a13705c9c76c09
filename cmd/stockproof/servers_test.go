package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
)

func TestASettingOfTheServerIsPartOfTheCellAndOfTheRow(t *testing.T) {
	out := t.TempDir()
	status, stdout, stderr := command(t, "verify", "--scheme", "lua-string", "--fault", "redis-restart,redis-failover", "--workload", "unit", "--out", out)
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	require.Contains(t, stdout, "redis-restart(aof-everysec)")
	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	require.NoError(t, err)
	var report evidence.Report
	require.NoError(t, json.Unmarshal(raw, &report))
	clients := map[faults.Setting]evidence.Clients{}
	for _, c := range report.Cells {
		clients[c.Setting] = c.Clients
		require.Equal(t, "off", c.ClientRetries)
	}
	require.Equal(t, map[faults.Setting]evidence.Clients{faults.NoPersistence: 3, faults.Snapshot: 3, faults.AOFEverySec: 2, faults.AOFAlways: 3,
		faults.Async: 2, faults.Wait: 2, faults.MinReplicas: 2}, clients, "the bound of each is stated")
	require.FileExists(t, filepath.Join(out, "witnesses", "lua-string.redis-restart-rdb.unit.retries-off.oversell.schedule"))
}

func TestExploreTakesTheSettingsItIsGiven(t *testing.T) {
	args := []string{"explore", "--scheme", "lua-string", "--clients", "2", "--kind", "redis-failover"}
	status, stdout, stderr := command(t, append(args, "--setting", "wait")...)
	require.Equal(t, evidence.ExitBroken, status, stderr)
	require.Contains(t, stdout, "replicas=1")
	require.NotContains(t, stdout, "violates oversell")
	status, stdout, _ = command(t, args...)
	require.Equal(t, evidence.ExitBroken, status)
	require.Contains(t, stdout, "violates oversell=1")
}

func TestWhatCannotBeAskedOfServersIsRefusedInWords(t *testing.T) {
	for _, c := range []struct {
		args   []string
		reason string
	}{
		{[]string{"explore", "--scheme", "lock", "--setting", "raid"}, "aof-always of redis-restart"},
		{[]string{"explore", "--scheme", "lock", "--kind", "redis-failover", "--setting", "wait"}, "does not wait for replicas"},
		{[]string{"explore", "--scheme", "lock", "--clients", "any", "--kind", "redis-freeze"}, "any number of commands"},
		{[]string{"verify", "--scheme", "lua-lock", "--clients", "any", "--fault", "stock-reloaded"}, "a job is no buyer"},
	} {
		status, _, stderr := command(t, c.args...)
		require.Equal(t, evidence.ExitUsage, status, stderr)
		require.Contains(t, stderr, c.reason)
	}
}

func TestListFaultsNamesTheSettings(t *testing.T) {
	_, stdout, _ := command(t, "list", "faults")
	require.Contains(t, stdout, "settings async, wait, min-replicas")
}

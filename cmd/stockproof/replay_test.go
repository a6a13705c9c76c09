package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
)

const pauseOversells = "../../testdata/schedules/lock-pause-oversell.schedule"

func TestAReplayOfAKnownWeaknessExitsWith0(t *testing.T) {
	status, stdout, stderr := command(t, "replay", pauseOversells)
	require.Equal(t, evidence.ExitOK, status, stderr)
	require.Equal(t, pauseOversells+": as recorded in explore, 10 steps, violates oversell=1 negative-transient=-1 negative-permanent=-1 non-linearizable=1\n", stdout)
}

func TestADivergenceExitsWith1AndTellsLineExpectedAndSeen(t *testing.T) {
	raw, err := os.ReadFile(pauseOversells)
	require.NoError(t, err)
	altered := strings.Replace(string(raw), `=> "1"  ! pause`, `=> "2"  ! pause`, 1)
	path := filepath.Join(t.TempDir(), "altered.schedule")
	require.NoError(t, os.WriteFile(path, []byte(altered), 0o600))
	for _, format := range []string{"text", "ascii", "mermaid"} { // what did not happen is not drawn
		status, stdout, stderr := command(t, "replay", pauseOversells, path, "--format", format)
		require.Equal(t, evidence.ExitBroken, status, stderr)
		require.Contains(t, stdout, path+":13: not as recorded in explore\n"+
			"  line      a HGET goods:1001 stock => \"2\" ! pause\n  expected  \"2\"\n  seen      \"1\"\n")
		require.Equal(t, 1, strings.Count(stdout, "\n a  ")+strings.Count(stdout, "sequenceDiagram")+strings.Count(stdout, "as recorded in explore, "))
	}
}

func TestAReplayDrawsWhatItRan(t *testing.T) {
	for format, part := range map[string]string{"ascii": "|-- HGET goods:1001 stock -", "mermaid": "a->>Redis: HGET goods:1001 stock\n"} {
		status, stdout, stderr := command(t, "replay", pauseOversells, "--format", format)
		require.Equal(t, evidence.ExitOK, status, stderr)
		require.Contains(t, stdout, part)
	}
}

func TestExploreKeepsItsWitnessesWhereItIsTold(t *testing.T) {
	out := t.TempDir()
	status, _, stderr := command(t, "explore", "--scheme", "lock", "--kind", "client-pause", "--clients", "2", "--out", out)
	require.Equal(t, evidence.ExitBroken, status, stderr)
	kept, err := filepath.Glob(filepath.Join(out, "witnesses", "*.schedule"))
	require.NoError(t, err)
	require.Contains(t, kept, filepath.Join(out, "witnesses", "lock.unit.retries-off.oversell.schedule"))
	status, stdout, stderr := command(t, append([]string{"replay"}, kept...)...)
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
}

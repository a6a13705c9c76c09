package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live/subject"
	"stockproof/live/subject/subjecttest"
	"stockproof/model"
)

// judge runs verify on the test subject in a mode.
func judge(t *testing.T, mode string, args ...string) (status int, report evidence.Report, stderr string) {
	t.Helper()
	out := t.TempDir()
	args = append([]string{"verify", "--subject", subjecttest.Command(mode), "--workload", "unit", "--out", out}, args...)
	status, stdout, stderr := command(t, args...)
	raw, err := os.ReadFile(filepath.Join(out, "evidence.json"))
	if err == nil {
		require.NoError(t, json.Unmarshal(raw, &report))
	}
	for _, c := range report.Cells {
		if c.Verdict == evidence.Violated {
			require.FileExists(t, filepath.Join(out, c.Witness))
			require.FileExists(t, filepath.Join(out, strings.TrimSuffix(c.Witness, ".jsonl")+".steps.txt"))
		}
	}
	return status, report, stdout + stderr
}

func declaration(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "declared.json")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func TestASubjectIsJudgedAtEveryStepAndComparedWithWhatIsDeclared(t *testing.T) {
	needLive(t)
	declared := declaration(t, `{"subject":"test","weaknesses":[
		{"fault":"none","breaks":["oversell","negative-transient","negative-permanent","non-linearizable","order-mismatch"],"why":"two buyers act on the same number"}]}`)
	status, report, said := judge(t, "keeps every rule", "--fault", "none", "--declare", declared)
	broken := map[model.Property]bool{}
	for _, c := range report.Cells {
		require.Equal(t, "test@1", c.Scheme)
		require.Equal(t, "default", c.ClientRetries)
		require.Equal(t, c.Placements.Enumerated, c.Placements.Fired)
		// In turn, at a barrier, and after each step of the buyer who gets the unit but
		// her last (read, decrement, order); the others only read.
		require.Equal(t, evidence.Placements{Enumerated: 4, Fired: 4}, c.Placements)
		broken[c.Property] = c.Verdict == evidence.Violated
	}
	require.True(t, broken[model.Oversell], said)
	require.Equal(t, broken[model.OrderMismatch], false, "every sale has its order")
	require.Equal(t, evidence.ExitBroken, status, "a declared weakness does not show: order-mismatch")

	declared = declaration(t, strings.Replace(mustRead(t, declared), `,"order-mismatch"`, "", 1))
	status, _, said = judge(t, "keeps every rule", "--fault", "none", "--declare", declared)
	require.Equal(t, evidence.ExitOK, status, said)
	status, _, said = judge(t, "keeps every rule", "--fault", "none")
	require.Equal(t, evidence.ExitBroken, status, "nothing declared, so every law is promised")
	require.Contains(t, said, "nothing declared")
}

func mustRead(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(raw)
}

func TestASubjectThatMisbehavesIsToldSoAndNothingIsLeft(t *testing.T) {
	needLive(t)
	for _, c := range []struct {
		mode   string
		args   []string
		status int
		says   string
	}{
		{"never says hello", []string{"--subject-start", "200ms"}, evidence.ExitUsage, "no hello after 200ms"},
		{"answers with another id", nil, evidence.ExitUsage, "is answered with id"},
		{"dies at a deduct", nil, evidence.ExitInconclusive, "out of luck"},
		{"keeps every rule", []string{"--declare", "nowhere.json"}, evidence.ExitUsage, "nowhere.json: no such file"},
	} {
		t.Run(c.mode+strings.Join(c.args, " "), func(t *testing.T) {
			status, _, said := judge(t, c.mode, append(c.args, "--fault", string(faults.ReplyLost))...)
			require.Equal(t, c.status, status, said)
			require.Contains(t, said, c.says)
			require.NotContains(t, said, "goroutine", "no stack trace")
			for pid := range family(os.Getpid()) {
				env, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "environ"))
				require.NotContains(t, string(env), "STOCKPROOF_SUBJECT=", "a subject is left")
			}
		})
	}
}

func TestSubjectCheckTellsRuleByRule(t *testing.T) {
	needLive(t)
	status, stdout, stderr := command(t, "subject", "check", subjecttest.Command("keeps every rule"))
	require.Equal(t, evidence.ExitOK, status, stdout+stderr)
	require.Equal(t, len(subject.Rules()), strings.Count(stdout, "pass "), stdout)

	status, stdout, _ = command(t, "subject", "check", "--format", "json", subjecttest.Command("takes any quantity"))
	require.Equal(t, evidence.ExitBroken, status)
	var results []subject.Result
	require.NoError(t, json.Unmarshal([]byte(stdout), &results))
	for _, r := range results {
		want := subject.Pass
		if r.Rule == "quantity" {
			want = subject.Fail
		}
		require.Equal(t, want, r.Status, "%+v", r)
	}
}

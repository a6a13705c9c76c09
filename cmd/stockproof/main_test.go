package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/live/role"
	"stockproof/live/servers"
)

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(m.Run())
}

const corpus = "../../testdata/histories/"

// command runs the program in this process.
func command(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestBadUsageAndBadInputExitWith2AndSayWhatIsWrong(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.jsonl")
	require.NoError(t, os.WriteFile(bad, []byte(`{"sku":"s","initial":1}`+"\n"+`{"client":0}`+"\n"), 0o600))
	badSchedule, strangeSchedule, otherSchedule := filepath.Join(t.TempDir(), "bad.schedule"), filepath.Join(t.TempDir(), "strange.schedule"), filepath.Join(t.TempDir(), "other.schedule")
	require.NoError(t, os.WriteFile(badSchedule, []byte("schedule v1\nclient a\n"), 0o600))
	const empty = "# \nschedule v1\nscheme %s\nconfig retries=off\nstock goods:%s 1\nclient a deduct 1\n---\n---\noutcome\nstock 1\nviolates nothing\n"
	require.NoError(t, os.WriteFile(strangeSchedule, fmt.Appendf(nil, empty, "magic", "1001"), 0o600))
	require.NoError(t, os.WriteFile(otherSchedule, fmt.Appendf(nil, empty, "lock", "7"), 0o600))
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"an unknown command", []string{"prove"}, `unknown command "prove"`},
		{"a misspelt command", []string{"verfy"}, "did you mean verify?"},
		{"an argument too many", []string{"verify", "lock"}, `unknown command "lock"`},
		{"an unknown flag", []string{"verify", "--speed", "9"}, "unknown flag: --speed"},
		{"a value that is no duration", []string{"check", "--timeout", "soon", "x"}, "invalid argument"},
		{"an unknown scheme", []string{"verify", "--scheme", "magic"}, `unknown scheme "magic"; there are db-version, db-version-retry, degrade, hincrby`},
		{"an unknown fault", []string{"verify", "--fault", "meteor"}, `unknown fault "meteor"; there are none, client-crash`},
		{"a fault that explore does not place", []string{"verify", "--fault", "none,client-pause-short"}, "--world explore does not place it"},
		{"a fault that live does not place", []string{"verify", "--world", "live", "--fault", "none,store-loses"}, "--world live does not place it"},
		{"a short pause of schemes without a lease", []string{"verify", "--world", "live", "--scheme", "hincrby,naive", "--fault", "client-pause-short"}, "none of these schemes has a lease"},
		{"an unknown workload", []string{"verify", "--workload", "huge"}, `unknown workload "huge"; there are unit`},
		{"an unknown retry setting", []string{"verify", "--retries", "some"}, `--retries "some": there are off, default`},
		{"an unknown world", []string{"verify", "--world", "second"}, `--world "second"`},
		{"an unknown format", []string{"verify", "--format", "poem"}, `--format "poem"`},
		{"a subject in explore", []string{"verify", "--subject", "x", "--world", "all"}, "explore runs Go code only"},
		{"a subject and a scheme", []string{"verify", "--subject", "x", "--scheme", "lock"}, "--scheme does not go with --subject"},
		{"a subject and retries", []string{"verify", "--subject", "x", "--retries", "off"}, "the subject's own setting"},
		{"a declaration of nobody", []string{"verify", "--declare", "x"}, "go with --subject"},
		{"no subject to check", []string{"subject", "check"}, "the command in quotes"},
		{"a subject that is not quoted", []string{"subject", "check", "python3", "x.py"}, "the command in quotes"},
		{"a subject command that does not exist", []string{"subject", "chekc"}, `unknown command "chekc"`},
		{"an unknown list", []string{"list", "prices"}, `there are schemes, faults`},
		{"explore without a scheme", []string{"explore"}, "--scheme is missing"},
		{"explore an unknown scheme", []string{"explore", "--scheme", "magic"}, `unknown scheme "magic"`},
		{"explore with no client", []string{"explore", "--scheme", "lock", "--clients", "0"}, "want a number from 1 on, or any"},
		{"explore with more clients than fit", []string{"explore", "--scheme", "lock", "--clients", "50"}, "the most is 6"},
		{"explore a fault it does not place", []string{"explore", "--scheme", "lock", "--kind", "client-pause-short"}, "client-pause-short is not placed in explore"},
		{"an engine that does not exist", []string{"explore", "--scheme", "lock", "--engine", "valkey"}, `--engine "valkey"`},
		{"no schedule", []string{"replay"}, "replay needs at least one schedule file"},
		{"a schedule that is not there", []string{"replay", "nowhere.schedule"}, "nowhere.schedule: no such file"},
		{"a malformed schedule", []string{"replay", badSchedule}, badSchedule + `:2: "client" where "scheme" was due`},
		{"a schedule of an unknown scheme", []string{"replay", strangeSchedule}, strangeSchedule + `:3: unknown scheme "magic"; there are db-version`},
		{"a schedule of another article", []string{"replay", otherSchedule}, `article 7, explore knows only 1001`},
		{"a schedule in an unknown world", []string{"replay", "--world", "second", "x"}, `--world "second"`},
		{"a schedule in an unknown format", []string{"replay", "--format", "poem", "x"}, `--format "poem"`},
		{"no list", []string{"list"}, "list needs one of"},
		{"no history", []string{"check"}, "check needs at least one history file"},
		{"one picture for two histories", []string{"check", "--picture", "p.html", "a", "b"}, "--picture draws a single history"},
		{"a history that is not there", []string{"check", "nowhere.jsonl"}, "nowhere.jsonl: no such file"},
		{"a malformed history", []string{"check", bad}, bad + `:2: "call" is missing`},
		{"a malformed history behind a good one", []string{"check", corpus + "002_one_sold.jsonl", bad}, `:2: "call"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, c.args...)
			require.Equal(t, evidence.ExitUsage, status)
			require.Contains(t, stderr, c.want)
			require.NotContains(t, stderr, "goroutine", "no stack trace")
			require.Empty(t, stdout)
		})
	}
}

func TestABadBackendSettingIsBadUsage(t *testing.T) {
	t.Setenv(servers.EnvBackend, "cloud")
	status, _, stderr := command(t, "verify", "--world", "live", "--out", t.TempDir())
	require.Equal(t, evidence.ExitUsage, status)
	require.Contains(t, stderr, `STOCKPROOF_BACKEND="cloud"`)
}

func TestNoBackendExitsWith3AndSaysHowToGetOne(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("DOCKER_HOST", "unix:///nowhere.sock")
	t.Setenv(servers.EnvLive, "")
	t.Setenv(servers.EnvBackend, "process")
	status, _, stderr := command(t, "verify", "--world", "live", "--out", t.TempDir())
	require.Equal(t, evidence.ExitNoBackend, status)
	require.Contains(t, stderr, "apt-get install redis-server postgresql")
	require.Contains(t, stderr, "scripts/build-image.sh")
}

func TestLiveOffExitsWith3BecauseNothingWasVerified(t *testing.T) {
	t.Setenv(servers.EnvLive, "off")
	status, _, stderr := command(t, "verify", "--world", "live", "--out", t.TempDir())
	require.Equal(t, evidence.ExitNoBackend, status)
	require.Contains(t, stderr, "STOCKPROOF_LIVE=off")
}

func TestCheckTellsLinearizableFromNot(t *testing.T) {
	status, stdout, _ := command(t, "check", corpus+"002_one_sold.jsonl")
	require.Equal(t, evidence.ExitOK, status)
	require.Contains(t, stdout, "linearizable, 1 operations")

	status, stdout, _ = command(t, "check", corpus+"002_one_sold.jsonl", corpus+"004_oversell_by_one_sequential.jsonl")
	require.Equal(t, evidence.ExitBroken, status)
	require.Contains(t, stdout, "non-linearizable")
	require.Contains(t, stdout, "oversell = 1: sold 3 of 2")
}

func TestCheckDrawsThePicture(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "p.html")
	status, _, _ := command(t, "check", "--picture", picture, corpus+"005_oversell_by_one_concurrent.jsonl")
	require.Equal(t, evidence.ExitBroken, status)
	require.FileExists(t, picture)
}

// A history that is too long for porcupine is drawn by a window; one that is
// linearizable has none.
func TestCheckDrawsAWindowOfALongHistory(t *testing.T) {
	long := func(last string) string {
		var b strings.Builder
		b.WriteString(`{"sku":"s","initial":3000}` + "\n")
		for i := range 2000 {
			fmt.Fprintf(&b, `{"client":%d,"op":"deduct","qty":1,"call":%d,"return":%d,"outcome":"sold"}`+"\n", i%4, 10*i, 10*i+25)
		}
		b.WriteString(`{"client":9,"op":"deduct","qty":1,"call":20100,"return":20200,"outcome":"` + last + `"}` + "\n")
		path := filepath.Join(t.TempDir(), "long.jsonl")
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
		return path
	}
	picture := filepath.Join(t.TempDir(), "p.html")
	status, stdout, stderr := command(t, "check", "--picture", picture, long("sold_out"))
	require.Equal(t, evidence.ExitBroken, status, stdout+stderr)
	require.Contains(t, stderr, "picture: "+picture+": operations 1994 to 2001 of 2001")
	require.Contains(t, stderr, "from 1009 units on")
	page, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.True(t, strings.Contains(string(page), "deduct(1) → sold-out"), "the answer that is false")
	require.Less(t, len(page), 100_000)

	status, _, stderr = command(t, "check", "--picture", picture, long("sold"))
	require.Equal(t, evidence.ExitUsage, status)
	require.Contains(t, stderr, "no window of it that is impossible by itself")
}

func TestConfirmingIsSwitchedOnAndOff(t *testing.T) {
	t.Setenv(servers.EnvLive, "off")
	args := []string{"verify", "--scheme", "naive", "--fault", "none", "--workload", "unit", "--retries", "off", "--out", t.TempDir()}
	status, stdout, _ := command(t, args...)
	require.Equal(t, evidence.ExitOK, status, stdout)
	require.Contains(t, stdout, "nothing that explore found was replayed on real servers: ")
	require.Contains(t, stdout, "STOCKPROOF_LIVE=off")
	status, stdout, _ = command(t, append(args, "--confirm", "off")...)
	require.Equal(t, evidence.ExitOK, status, stdout)
	require.Contains(t, stdout, "on real servers: --confirm off")
	status, stdout, stderr := command(t, append(args, "--confirm", "require")...)
	require.Equal(t, evidence.ExitNoBackend, status, stdout+stderr)
	require.Contains(t, stderr, "STOCKPROOF_LIVE=off")
	for _, bad := range [][]string{{"--confirm", "perhaps"}, {"--confirm", "require", "--world", "live"}, {"--confirm-time", "-1s"}} {
		status, _, stderr = command(t, append(args, bad...)...)
		require.Equal(t, evidence.ExitUsage, status, stderr)
	}
}

func TestListShowsEverythingInTextAndJSON(t *testing.T) {
	for what, want := range map[string]string{
		"schemes": "lua-lock", "faults": "client-pause", "properties": "oversell", "workloads": "restock",
	} {
		status, stdout, _ := command(t, "list", what)
		require.Equal(t, evidence.ExitOK, status)
		require.Contains(t, stdout, want)
		status, stdout, _ = command(t, "list", what, "--format", "json")
		require.Equal(t, evidence.ExitOK, status)
		var all []listed
		require.NoError(t, json.Unmarshal([]byte(stdout), &all))
		require.Greater(t, len(all), 2)
	}
}

func TestHelpNamesEveryCommand(t *testing.T) {
	status, stdout, _ := command(t)
	require.Equal(t, evidence.ExitOK, status)
	for _, c := range []string{"verify", "explore", "check", "list"} {
		require.True(t, strings.Contains(stdout, "\n  "+c), c)
	}
}

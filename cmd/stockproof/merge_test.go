package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/evidence/claims"
)

// shards runs a command once for each of n shards and answers their files.
func shards(t *testing.T, n int, args ...string) (files []string) {
	t.Helper()
	for i := 1; i <= n; i++ {
		out := filepath.Join(t.TempDir(), fmt.Sprint(i))
		status, _, stderr := command(t, append(args, "--shard", fmt.Sprintf("%d/%d", i, n), "--out", out)...)
		require.Contains(t, []int{evidence.ExitOK, evidence.ExitBroken}, status, stderr)
		files = append(files, filepath.Join(out, "evidence.json"))
	}
	return files
}

// merged is the report that merge makes of files.
func merged(t *testing.T, files ...string) (evidence.Report, string) {
	t.Helper()
	out := t.TempDir()
	status, _, stderr := command(t, append([]string{"merge", "--out", out}, files...)...)
	require.Equal(t, evidence.ExitOK, status, stderr)
	return report(t, filepath.Join(out, "evidence.json")), out
}

func report(t *testing.T, path string) evidence.Report {
	t.Helper()
	r, err := evidence.ReadFile(path)
	require.NoError(t, err)
	return r
}

var shardedVerify = []string{"verify", "--scheme", "hincrby,lua-lock", "--fault", "none,client-crash,reply-lost", "--workload", "unit,restock", "--confirm", "off"}

func TestThreeShardsOfVerifyMergedAreTheWhole(t *testing.T) {
	files := shards(t, 3, shardedVerify...)
	got, dir := merged(t, files[2], files[0], files[1])
	out := t.TempDir()
	status, _, stderr := command(t, append(shardedVerify, "--out", out)...)
	require.Equal(t, evidence.ExitOK, status, stderr)
	whole := report(t, filepath.Join(out, "evidence.json"))
	require.NotEmpty(t, whole.Cells)
	require.Equal(t, whole.Cells, got.Cells)
	require.Equal(t, whole.Claims, got.Claims)
	require.Equal(t, whole.Bounds, got.Bounds)
	shown := 0
	for _, c := range got.Cells {
		if c.Witness != "" {
			shown++
			a, err := os.ReadFile(filepath.Join(out, c.Witness))
			require.NoError(t, err)
			b, err := os.ReadFile(filepath.Join(dir, c.Witness))
			require.NoError(t, err)
			require.Equal(t, string(a), string(b))
		}
	}
	require.NotZero(t, shown)
	require.FileExists(t, filepath.Join(dir, "report.html"))
	for _, file := range files {
		part := report(t, file)
		require.NotEmpty(t, part.Cells)
		require.Less(t, len(part.Cells), len(whole.Cells))
	}
}

var shardedExplore = []string{"explore", "--scheme", "hincrby", "--clients", "2", "--faults", "2", "--kind", "client-crash,reply-lost,redis-restart", "--setting", "rdb,aof-always"}

func TestThreeShardsOfExploreMergedAreTheWholeAndAgreeWithOneSearch(t *testing.T) {
	files := shards(t, 3, shardedExplore...)
	got, _ := merged(t, files...)
	whole, _ := merged(t, shards(t, 1, shardedExplore...)...)
	require.NotEmpty(t, whole.Cells)
	require.Equal(t, whole.Cells, got.Cells)
	parts := map[string]bool{}
	for _, c := range got.Cells {
		parts[string(c.Fault)] = true
	}
	require.Len(t, parts, 6, "pairs of four kinds and settings")
	// One search of everything says the same.
	_, stdout, stderr := command(t, append(shardedExplore, "--format", "json")...)
	var one exploredJSON
	require.NoError(t, json.Unmarshal([]byte(stdout), &one), stderr)
	for _, v := range one.Verdicts {
		broken, amount := false, int64(0)
		for _, c := range got.Cells {
			if c.Property == v.Property && c.Verdict == evidence.Violated {
				broken = true
				if max(c.Amount, -c.Amount) > max(amount, -amount) {
					amount = c.Amount
				}
			}
		}
		require.Equal(t, string(v.Status) == "violated", broken, v.Property)
		if broken {
			require.Equal(t, v.Amount, amount, v.Property)
		}
	}
}

func TestReportsThatAreNotPartsOfOneAreRefused(t *testing.T) {
	few := []string{"verify", "--scheme", "lua-string", "--fault", "none,client-crash,reply-lost", "--workload", "unit", "--confirm", "off"}
	files := shards(t, 3, few...)
	changed := func(change func(*evidence.Report)) string {
		r := report(t, files[1])
		change(&r)
		path, err := r.WriteFile(t.TempDir())
		require.NoError(t, err)
		return path
	}
	whole := changed(func(r *evidence.Report) { r.Bounds.Shard = nil })
	ledger := changed(func(r *evidence.Report) {
		*r = evidence.Report{Schema: evidence.Schema, Cost: []evidence.Cost{{Scheme: "lock", Experiment: "closed-loop", SKUs: 1, Connections: 1, Repetitions: 5}}}
	})
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"a shard is missing":                 {files[:2], "missing: shard 3/3"},
		"a shard is there twice":             {append([]string{files[0]}, files...), "shard 1/3 is also in"},
		"other bounds":                       {[]string{files[0], changed(func(r *evidence.Report) { r.Bounds.Explore.MaxFaults = 2 }), files[2]}, "other bounds"},
		"another number of shards":           {[]string{files[0], changed(func(r *evidence.Report) { r.Bounds.Shard.Of = 4 }), files[2]}, "one of 4 shards"},
		"another question":                   {[]string{files[0], changed(func(r *evidence.Report) { r.Bounds.Shard.Asked += " more" }), files[2]}, "answers"},
		"another version":                    {[]string{files[0], changed(func(r *evidence.Report) { r.Bounds.Shard.Version = "1" }), files[2]}, "of version 1"},
		"other facts":                        {[]string{files[0], changed(func(r *evidence.Report) { r.Facts = nil }), files[2]}, "other facts"},
		"a shard of nothing":                 {[]string{changed(func(r *evidence.Report) { r.Bounds.Shard.Index = 9 })}, "shard 9/3"},
		"a whole report among shards":        {[]string{files[0], whole, files[2]}, "not a shard"},
		"two whole reports":                  {[]string{whole, whole}, "not a shard"},
		"the verdicts of another shard":      {[]string{files[0], changed(func(r *evidence.Report) { r.Cells = report(t, files[0]).Cells }), files[2]}, "also has a verdict"},
		"the same costs twice":               {[]string{ledger, ledger}, "also has the cost of lock, closed-loop"},
		"no evidence":                        {[]string{"nowhere.json"}, "nowhere.json"},
		"a witness that is somewhere else":   {[]string{changed(func(r *evidence.Report) { r.Bounds.Shard, r.Cells[0].Witness = nil, "../../x" })}, "not below its folder"},
		"nothing":                            {nil, "merge needs at least one"},
		"a file that is no evidence but Go":  {[]string{"merge_test.go"}, "invalid character"},
		"a part that was asked in a strange": {[]string{"--format=poem", files[0]}, "--format"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "out")
			status, stdout, stderr := command(t, append([]string{"merge", "--out", out}, c.files...)...)
			require.Equal(t, evidence.ExitUsage, status, stderr)
			require.Contains(t, stderr, c.want)
			require.NotContains(t, stderr, "goroutine")
			require.Empty(t, stdout)
			require.NoFileExists(t, filepath.Join(out, "evidence.json"))
		})
	}
	for args, want := range map[string]string{
		"verify --shard 0/3":                              "want i/n",
		"verify --shard 4/3":                              "want i/n",
		"verify --shard 1":                                "want i/n",
		"verify --shard a/b":                              "want i/n",
		"verify --shard 1/9999":                           "only",
		"verify --subject x --shard 1/2":                  "--shard does not go with --subject",
		"explore --scheme lock --shard 1/99":              "only",
		"explore --scheme lock --clients any --shard 1/2": "--clients any",
		"explore --scheme lua-string --kind redis-failover --setting wait --shard 1/1": "--setting wait",
	} {
		status, _, stderr := command(t, strings.Fields(args)...)
		require.Equal(t, evidence.ExitUsage, status, args+": "+stderr)
		require.Contains(t, stderr, want)
	}
}

// Costs that were measured elsewhere join the verdicts, and the claims that waited
// for them are settled.
func TestCostsMergeWithVerdictsAndSettleClaims(t *testing.T) {
	out := t.TempDir()
	status, _, stderr := command(t, "verify", "--scheme", "hincrby", "--fault", "none", "--workload", "unit", "--confirm", "off", "--out", out)
	require.Equal(t, evidence.ExitOK, status, stderr)
	verdicts := filepath.Join(out, "evidence.json")
	line := func(futile float64) evidence.Cost {
		return evidence.Cost{Scheme: "hincrby", Experiment: "closed-loop", Futile: futile, SKUs: 1, Connections: 32, Repetitions: 5, RoundTrips: 1 + futile, Commands: 1 + futile}
	}
	cost := evidence.Report{Schema: evidence.Schema, Cost: []evidence.Cost{line(0), line(0.99)}}
	cost.Bounds.Assumptions = []string{"cost: here"}
	prices, err := cost.WriteFile(t.TempDir())
	require.NoError(t, err)
	verdict := func(r evidence.Report, id string) evidence.ClaimVerdict {
		for _, c := range claims.Judge(r) {
			if c.ID == id {
				return c.Verdict
			}
		}
		return ""
	}
	for _, order := range [][]string{{verdicts, prices}, {prices, verdicts}} {
		got, _ := merged(t, order...)
		require.Equal(t, report(t, verdicts).Cells, got.Cells)
		require.Len(t, got.Cost, 2)
		require.Contains(t, got.Bounds.Assumptions, "cost: here")
		require.Equal(t, evidence.ClaimOpen, verdict(report(t, verdicts), "A5"))
		require.Equal(t, evidence.ClaimConfirmed, verdict(got, "A5"))
	}
	got, _ := merged(t, prices)
	require.Len(t, got.Cost, 2)
}

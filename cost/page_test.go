package cost

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/evidence/claims"
)

// measuredRun is what docs/cost.md shows: the evidence.json of the bench that it names.
const (
	measuredRun = "../docs/cost.json"
	costPage    = "../docs/cost.md"
)

func measuredCosts(t *testing.T) []evidence.Cost {
	r, err := evidence.ReadFile(measuredRun)
	require.NoError(t, err)
	return r.Cost
}

// No claim of the ledger may be contradicted by what was measured.
func TestTheMeasuredCostsContradictNoClaim(t *testing.T) {
	r := evidence.Report{Cost: measuredCosts(t)}
	settled := 0
	for _, c := range claims.Judge(r) {
		for _, s := range c.Evidence {
			if s.Kind != "cost" {
				continue
			}
			require.NotEqual(t, evidence.Contradicts, s.State, "%s: %s: %s", c.ID, s.Wants.EN, s.Found.EN)
			require.NotEqual(t, evidence.Missing, s.State, "%s: %s: %s", c.ID, s.Wants.EN, s.Found.EN)
			settled++
		}
	}
	require.Greater(t, settled, 10)
}

// The tables of the page are made of the run. UPDATE_COST=1 writes them.
func TestTheCostPageShowsTheRun(t *testing.T) {
	const begin, end = "<!-- cost -->\n", "<!-- /cost -->"
	page, err := os.ReadFile(costPage)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	old, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	tables := costTables(t, measuredCosts(t))
	if os.Getenv("UPDATE_COST") != "" {
		require.NoError(t, os.WriteFile(costPage, []byte(head+begin+tables+end+tail), 0o644))
		return
	}
	require.Equal(t, tables, old, "UPDATE_COST=1 go test ./cost writes it")
}

type tables struct {
	t     *testing.T
	costs []evidence.Cost
	strings.Builder
}

func (x *tables) head(title string, columns ...string) {
	fmt.Fprintf(x, "### %s\n\n| %s |\n|%s\n", title, strings.Join(columns, " | "), strings.Repeat(" --- |", len(columns)))
}

func (x *tables) row(cells ...string) { fmt.Fprintf(x, "| %s |\n", strings.Join(cells, " | ")) }

// of are the costs of a scheme, or of all, in an experiment.
func (x *tables) of(scheme, experiment string, also ...func(evidence.Cost) bool) (list []evidence.Cost) {
	for _, c := range x.costs {
		if (scheme == "" || c.Scheme == scheme) && c.Experiment == experiment && !slices.ContainsFunc(also, func(f func(evidence.Cost) bool) bool { return !f(c) }) {
			list = append(list, c)
		}
	}
	return list
}

func (x *tables) one(scheme string, connections int, futile float64) evidence.Cost {
	list := x.of(scheme, "closed-loop", func(c evidence.Cost) bool { return c.Connections == connections && c.Futile == futile })
	require.Len(x.t, list, 1, "%s %d %v", scheme, connections, futile)
	return list[0]
}

func rate(c evidence.Cost) string {
	return fmt.Sprintf("%.0f (%.0f–%.0f)", c.Throughput.Median, c.Throughput.Low, c.Throughput.High)
}

func whole(v float64) string { return fmt.Sprintf("%.0f", v) }
func share(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func costTables(t *testing.T, costs []evidence.Cost) string {
	x := &tables{t: t, costs: costs}
	var names []string
	for _, c := range x.of("", "closed-loop") {
		if !slices.Contains(names, c.Scheme) {
			names = append(names, c.Scheme)
		}
	}
	shares := []float64{0, 0.5, 0.99}
	x.head("Messages a request, counted, by the share of requests that find nothing", "scheme", "round trips: 0 %", "50 %", "99 %", "Redis commands: 0 %", "50 %", "99 %")
	for _, s := range names {
		row := []string{s}
		for _, f := range shares {
			row = append(row, fmt.Sprintf("%.2f", x.one(s, 1, f).RoundTrips))
		}
		for _, f := range shares {
			row = append(row, fmt.Sprintf("%.2f", x.one(s, 1, f).Commands))
		}
		x.row(row...)
	}
	x.WriteString("\n")
	x.head("Requests answered per second, closed loop, one hot article", "scheme", "1 connection", "8", "32", "128", "32, 99 % futile", "32, 1,000 articles")
	for _, s := range names {
		row := []string{s}
		for _, n := range []int{1, 8, 32, 128} {
			row = append(row, rate(x.one(s, n, 0)))
		}
		x.row(append(row, rate(x.one(s, 32, 0.99)), rate(x.of(s, "skus")[0]))...)
	}
	x.WriteString("\n")
	x.head("Latency in µs, answers that decide nothing, and processor time of the servers, at 32 connections", "scheme", "p50", "p99", "p99.9", "busy", "conflicts", "failed or unknown", "Redis, of one core", "PostgreSQL")
	for _, s := range names {
		c := x.one(s, 32, 0)
		x.row(s, whole(c.Latency.P50), whole(c.Latency.P99), whole(c.Latency.P999), share(c.Busy), share(c.Conflicts), share(c.Errors), whole(100*c.ServerCPU)+" %", whole(100*c.PostgresCPU)+" %")
	}
	x.WriteString("\n")
	x.head("Open loop, 32 connections: latency in µs from the moment a request was due", "scheme", "offered/s", "answered/s", "p50", "p99", "p99.9")
	for _, c := range x.of("", "open-loop") {
		x.row(c.Scheme, whole(*c.OfferedRate), rate(c), whole(c.Latency.P50), whole(c.Latency.P99), whole(c.Latency.P999))
	}
	x.WriteString("\n")
	x.head("What Redis writes to disk: answered per second at 32 connections", "scheme", "nothing", "synced once a second", "synced at every write")
	for _, s := range names {
		if list := x.of(s, "aof"); len(list) == 2 {
			x.row(s, rate(x.one(s, 32, 0)), rate(list[0]), rate(list[1]))
		}
	}
	x.WriteString("\n")
	x.head("A lock with the published settings: lease 10 s, patience 500 ms, retry 100 ms", "scheme", "connections", "answered/s", "p50 µs", "p99 µs", "busy", "failed or unknown")
	for _, c := range x.of("", "settings") {
		x.row(c.Scheme, fmt.Sprint(c.Connections), rate(c), whole(c.Latency.P50), whole(c.Latency.P99), share(c.Busy), share(c.Errors))
	}
	x.WriteString("\n")
	x.head("A longer script, 8 connections, and somebody else who reads a key of the same Redis", "script", "answered/s", "p50 µs", "p99 µs", "who reads: p50 µs", "p99 µs")
	for _, c := range x.of("", "script-length") {
		x.row(c.Settings["script_ms"]+" ms", rate(c), whole(c.Latency.P50), whole(c.Latency.P99), whole(c.Bystander.P50), whole(c.Bystander.P99))
	}
	x.WriteString("\n")
	x.head("The load driver beside redis-benchmark: the same EVALSHA, the same connections, in turn", "connections", "redis-benchmark", "this driver without a client library", "of redis-benchmark", "with go-redis, as all of the above", "of redis-benchmark")
	by := map[string]map[int]evidence.Cost{}
	for _, c := range x.of("", "driver") {
		who := c.Settings["by"]
		if by[who] == nil {
			by[who] = map[int]evidence.Cost{}
		}
		by[who][c.Connections] = c
	}
	for _, n := range []int{1, 8, 32, 128} {
		ratio := func(who string) string {
			return fmt.Sprintf("%.2f", by[who][n].Throughput.Median/by["redis-benchmark"][n].Throughput.Median)
		}
		x.row(fmt.Sprint(n), rate(by["redis-benchmark"][n]), rate(by["no library"][n]), ratio("no library"), rate(by["go-redis"][n]), ratio("go-redis"))
	}
	return x.String()
}

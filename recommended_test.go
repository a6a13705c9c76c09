package stockproof_test

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

const recommendedDoc = "docs/recommended.md"

// recommended are the schemes that docs/recommended.md is about.
var recommended = []string{"journal-first", "sql-first"}

// TestTheTablesOfWhatWeRecommendAreTrue compares the tables of docs/recommended.md
// with what explore finds and with commands counted; UPDATE_RECOMMENDED=1 writes
// them.
func TestTheTablesOfWhatWeRecommendAreTrue(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	raw, err := os.ReadFile(recommendedDoc)
	require.NoError(t, err)
	text := string(raw)
	compare := func(name, want string) {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, ok := strings.Cut(text, begin)
		require.True(t, ok, name)
		shown, after, ok := strings.Cut(rest, end)
		require.True(t, ok, name)
		if os.Getenv("UPDATE_RECOMMENDED") != "" {
			text = before + begin + want + end + after
			return
		}
		require.Equal(t, want, shown, "UPDATE_RECOMMENDED=1 go test -run Recommend . writes it")
	}
	for _, scheme := range recommended {
		compare(scheme, cellTable(t, lab, entry(t, scheme)))
	}
	compare("price", priceTable(t))
	if os.Getenv("UPDATE_RECOMMENDED") != "" {
		require.NoError(t, os.WriteFile(recommendedDoc, []byte(text), 0o644))
	}
}

// cellTable has a row for each fault: which laws are broken in any workload and
// with either setting of go-redis, and how much was covered.
func cellTable(t *testing.T, lab *explore.Lab, e schemes.Entry) string {
	var b strings.Builder
	b.WriteString("| fault | laws broken | places | states |\n| --- | --- | --- | --- |\n")
	for _, kind := range evidence.ExploreKinds() {
		var broken []string
		var states uint64
		places := 0
		for _, load := range faults.Workloads() {
			for _, retries := range faults.Retries() {
				group := evidence.ExploreGroup{Entry: e, Fault: kind, Workload: load, Retries: retries}
				cells, err := evidence.FromExplore(t.Context(), lab, []evidence.ExploreGroup{group}, evidence.DefaultExploreBounds(), "", nil)
				require.NoError(t, err)
				for _, c := range cells {
					require.NotEqual(t, evidence.Inconclusive, c.Verdict, "%s %s %s", kind, load.Name, c.Property)
					require.True(t, c.Exhaustive)
					if c.Verdict == evidence.Violated && !slices.Contains(broken, string(c.Property)) {
						broken = append(broken, string(c.Property))
					}
				}
				states += cells[0].States
				places += cells[0].Placements.Fired
			}
		}
		says := "none"
		switch {
		case len(broken) > 0:
			says = strings.Join(broken, ", ")
		case places == 0 && kind != faults.None:
			says = "no place"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %d | %d |\n", kind, says, places, states)
	}
	return b.String()
}

// counted counts what goes over the wire.
type counted struct {
	alone
	n *int
}

func (c counted) Exec(ctx context.Context, conn int, st *sqlsubset.Statement, text string, args []any) (sqlsubset.Reply, error) {
	*c.n++
	return c.alone.Exec(ctx, conn, st, text, args)
}

type commandHook struct{ n *int }

func (h commandHook) DialHook(next redis.DialHook) redis.DialHook {
	return func(ctx context.Context, network, addr string) (net.Conn, error) { return next(ctx, network, addr) }
}

func (h commandHook) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if name := cmd.Name(); name != "hello" && name != "client" {
			*h.n++
		}
		return next(ctx, cmd)
	}
}

func (h commandHook) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func priceTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| scheme | sold | sold out | put back |\n| --- | --- | --- | --- |\n")
	for _, name := range recommended {
		n := 0
		env := schemes.Env{Client: "a", Redis: redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), MaxRetries: -1}),
			DB: sql.OpenDB(sqlsubset.NewConnector(counted{alone{sqlsubset.NewDB()}, &n}))}
		t.Cleanup(func() { clients.Disconnect(env) })
		env.Redis.AddHook(commandHook{&n})
		_, err := env.DB.ExecContext(t.Context(), schemes.Schema())
		require.NoError(t, err)
		s := entry(t, name).Scheme
		require.NoError(t, s.(schemes.Loader).Load(t.Context(), env, "1", 1))
		var trips []int
		for i, want := range []model.Outcome{model.Sold, model.SoldOut, model.OK} {
			n = 0
			req := schemes.Request{SKU: "1", Qty: 1, ID: fmt.Sprint(i), Buyer: "b"}
			do := s.Deduct
			if want == model.OK {
				do = s.(schemes.Restocker).Restock
			}
			got, err := do(t.Context(), env, req)
			require.NoError(t, err)
			require.Equal(t, want, got)
			trips = append(trips, n)
		}
		fmt.Fprintf(&b, "| `%s` | %d | %d | %d |\n", name, trips[0], trips[1], trips[2])
	}
	return b.String()
}

// Two faults of any client and wire kind in one execution break no law of
// journal-first either.
func TestJournalFirstKeepsEveryLawUnderTwoFaults(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	for _, load := range []string{"unit", "restock"} {
		r, err := lab.Run(t.Context(), explore.Config{Entry: entry(t, "journal-first"), Workload: workload(t, load), MaxFaults: 2,
			Faults: []faults.Kind{faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost, faults.RequestDelayed, faults.ScriptFlush}})
		require.NoError(t, err)
		require.True(t, r.Exhaustive, r.Why)
		for p, v := range r.Verdicts {
			require.Equal(t, explore.Holds, v.Status, "%s: %s: %s", load, p, v.Detail)
		}
		t.Logf("%s: %d states, %v executions, %d places", load, r.States, r.Executions, r.PlacementsFired)
	}
}

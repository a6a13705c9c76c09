package explore

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/engines/sqlsubset/fidelity"
	"stockproof/faults"
	liverole "stockproof/live/role"
	"stockproof/live/servers"
	"stockproof/schemes"
)

func TestMain(m *testing.M) {
	liverole.RunIfAsked()
	debug.SetGCPercent(400) // as the commands do
	os.Exit(m.Run())
}

// openPostgres starts a real server for this test.
func openPostgres(t *testing.T) *fidelity.Server {
	needRealServers(t)
	ctx := context.Background()
	set, err := servers.StartWith(ctx, servers.Process, servers.Options{PostgresSettings: map[string]string{"deadlock_timeout": "20ms"}})
	require.NoError(t, err, "install PostgreSQL, or set STOCKPROOF_LIVE=off to leave out what needs it")
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	s, err := fidelity.Open(ctx, func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, set.PostgresDSN("")) })
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

// databaseSchedule is what an execution does to the database.
func databaseSchedule(t *testing.T, e schemes.Entry, w *Witness, engine redisstore.Engine) fidelity.Schedule {
	sched := fidelity.Schedule{DDL: schemes.Schema()}
	// A scheme that keeps nothing there does not notice.
	sched.Setup = []string{fmt.Sprintf("INSERT INTO goods (sku, stock, version) VALUES ('%s', %d, 0)", sku, w.Stock)}
	begun := map[int]bool{}
	require.NoError(t, replay(e, w.Schedule(), engine, func(ev sqlEvent) {
		out := fidelity.Event{Session: ev.session, Blocked: ev.blocked}
		if !ev.blocked && ev.what != "" {
			out.Reply = decodeReply(ev.reply)
		}
		switch ev.what {
		case StepCommand:
			begun[ev.session] = true
			out.SQL = ev.words[0]
			for _, word := range ev.words[1:] {
				out.Args = append(out.Args, sqlValue(word))
			}
		case StepGranted:
			out.Op = fidelity.Resume
		case StepDeadlock:
			out.Op = fidelity.Kill
		default:
			if !begun[ev.session] {
				return
			}
			begun[ev.session] = false
			out.Op = fidelity.Cut
		}
		sched.Events = append(sched.Events, out)
	}), "\n%s", w.Timeline())
	return sched
}

// everyWay calls f with every execution of a search.
func (s *searcher) everyWay(f func(*Witness)) {
	var walk func(x state, c *casting, w *Witness)
	walk = func(x state, c *casting, w *Witness) {
		if s.atRest(&x) {
			end := *w
			s.conclude(&end, c, x)
			f(&end)
		}
		for _, n := range s.successors(&x, nil) {
			cc := &casting{s: s, names: append([]string(nil), c.names...)}
			next := *w
			next.Steps = append(append([]WitnessStep(nil), w.Steps...), s.say(cc, &x, &n))
			walk(n.state, cc, &next)
		}
	}
	walk(s.initial, s.newCasting(), s.newWitness())
}

// What explore does to its database is done to a real PostgreSQL: every
// interleaving of two clients without a fault, and random executions of three
// with every fault a client or the wire can have.
func TestSQLSchedulesAreThoseOfARealServer(t *testing.T) {
	server := openPostgres(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	lab := newLab(t)
	const seed, random, some = 11, 60, 6
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 3))
	verdicts := map[fidelity.Verdict]int{}
	done := map[string]bool{}
	play := func(e schemes.Entry, w *Witness) {
		sched := databaseSchedule(t, e, w, engine)
		key := fmt.Sprint(sched)
		if done[key] {
			return
		}
		done[key] = true
		v, err := fidelity.Replay(t.Context(), server, sched)
		require.NoError(t, err, "\n%s", w.Timeline())
		verdicts[v]++
	}
	for _, scheme := range []struct {
		name   string
		all    bool // interleavings are few enough to be all played
		random int
	}{
		{"db-version", true, random}, {"lua-lock", true, random}, {"sql-conditional", true, some}, {"sql-for-update", true, some},
		{"db-version-retry", false, some}, {"outbox", false, some}, {"degrade", false, some}, {"stream-order", false, some},
		{"stream-order-blind", false, some}, {"reconcile-naive", false, some}, {"reserve-confirm-once", false, some},
	} {
		e := entry(t, scheme.name)
		if scheme.all {
			cfg := Config{Entry: e, Workload: workload(t, "unit"), Clients: 2}
			require.NoError(t, cfg.complete())
			s, err := lab.prepare(cfg, false)
			require.NoError(t, err)
			s.everyWay(func(w *Witness) { play(e, w) })
		}

		cfg := Config{Entry: e, Workload: workload(t, "restock"), MaxFaults: 1,
			Faults: []faults.Kind{faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost, faults.CommitReplyLost}}
		require.NoError(t, cfg.complete())
		s, err := lab.prepare(cfg, false)
		require.NoError(t, err)
		for range scheme.random {
			play(e, s.walk(rnd))
		}
	}
	t.Logf("%d schedules: %v", len(done), verdicts)
	require.Greater(t, verdicts[fidelity.Same], 100)
	require.Less(t, verdicts[fidelity.OtherChoice], verdicts[fidelity.Same], "too many undecided")
}

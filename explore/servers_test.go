package explore

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// serverKinds are the faults of servers and jobs.
var serverKinds = []faults.Kind{faults.RedisRestart, faults.RedisFailover, faults.RedisFreeze, faults.KeyEvicted, faults.KeyExpired,
	faults.PostgresRestart, faults.StockReloaded, faults.ReconcileOverlap}

// two is a sale of two clients with one fault, under one setting of the server.
func two(t testing.TB, scheme string, kind faults.Kind, setting faults.Setting) Config {
	cfg := one(t, scheme, kind, "unit", "off")
	cfg.Clients, cfg.Settings = 2, []faults.Setting{setting}
	return cfg
}

// under is the check that a sale of two clients breaks just these properties.
func under(scheme string, kind faults.Kind, setting faults.Setting, want string) check {
	return func(t *testing.T, m mutant) string {
		r, err := mutated(t, m, two(t, scheme, kind, setting))
		if err != nil {
			return err.Error()
		}
		if got := letters(r); got != want {
			return fmt.Sprintf("%s %s breaks %s, by hand %s", scheme, faults.Row(kind, setting), got, want)
		}
		if r.PlacementsEnumerated == 0 || r.PlacementsFired != r.PlacementsEnumerated {
			return fmt.Sprintf("%s %s: %d of %d placements fired", scheme, faults.Row(kind, setting), r.PlacementsFired, r.PlacementsEnumerated)
		}
		return ""
	}
}

// restocked is under for a sale of three clients in which one puts a unit back.
func restocked(scheme string, kind faults.Kind, want string) check {
	return func(t *testing.T, m mutant) string {
		r, err := mutated(t, m, one(t, scheme, kind, "restock", "off"))
		if err != nil {
			return err.Error()
		}
		if got := letters(r); got != want {
			return fmt.Sprintf("%s %s breaks %s, by hand %s", scheme, kind, got, want)
		}
		return ""
	}
}

// What each fault does to one script, or to SQL, can be worked out by hand; a
// fault that has no effect, or another one, comes out differently.
func TestAFaultOfAServerBrokenOnPurposeIsConvicted(t *testing.T) {
	for _, c := range []struct {
		mutant mutant
		check  check
	}{
		// Nothing is left: every answer is an error, the probe's too.
		{restartKept, under("lua-string", faults.RedisRestart, faults.NoPersistence, "K")},
		// The unit that was sold is sold again.
		{restartKept, under("lua-string", faults.RedisRestart, faults.Snapshot, "OPX")},
		{lossKept, under("lua-string", faults.RedisRestart, faults.AOFEverySec, "OPX")},
		{evictionForgotten, under("lua-string", faults.KeyEvicted, faults.NoSetting, "K")},
		// The lock stays when the stock expires: nobody comes in while its holder has
		// read the stock and a cancel makes it anew.
		{expiryOfAll, restocked("lock-set", faults.KeyExpired, "K")},
		{replicaCaughtUp, under("lua-string", faults.RedisFailover, faults.Async, "OPX")},
		// What WAIT did not acknowledge is not promised: a unit may be lost, none is
		// sold twice. Who was told sold out before the replica took over sees the unit
		// come back.
		{waitBlind, under("lua-string", faults.RedisFailover, faults.Wait, "LX")},
		{replicaCaughtUp, under("lua-string", faults.RedisFailover, faults.MinReplicas, "OPX")},
		// A command of somebody who has given up takes the unit all the same.
		{bufferDropped, under("lua-string", faults.RedisFreeze, faults.NoSetting, "L")},
		{commitsKept, under("lua-lock", faults.PostgresRestart, faults.SyncCommitOff, "M")},
		{sessionsKept, under("db-version", faults.PostgresRestart, faults.SyncCommitOn, "")},
		{jobLost, under("lua-string", faults.StockReloaded, faults.NoSetting, "OPX")},
		{jobLost, under("lua-lock", faults.ReconcileOverlap, faults.NoSetting, "OPX")},
	} {
		t.Run(fmt.Sprint(c.mutant), func(t *testing.T) {
			require.Empty(t, c.check(t, sound), "the sound search")
			verdict := c.check(t, c.mutant)
			require.NotEmpty(t, verdict, "the broken search was not convicted")
			t.Log(verdict)
		})
	}
}

// An append-only file that is synced always, and synchronous commits, lose nothing
// that was acknowledged.
func TestARestartThatLosesNothingBreaksNothing(t *testing.T) {
	require.Empty(t, under("lua-string", faults.RedisRestart, faults.AOFAlways, "")(t, sound))
	require.Empty(t, under("lock", faults.RedisRestart, faults.AOFAlways, "")(t, sound))
	require.Empty(t, under("lua-lock", faults.PostgresRestart, faults.SyncCommitOn, "")(t, sound))
}

// Every client that has given up has a command in the buffer, not one alone; and
// with the library's retries each of its attempts takes a unit.
func TestAFreezeKeepsTheCommandsOfEverybody(t *testing.T) {
	lab := newLab(t)
	cfg := two(t, "lua-string", faults.RedisFreeze, faults.NoSetting)
	cfg.Stock = 2
	require.EqualValues(t, 2, search(t, lab, cfg).Verdicts[model.LostUnits].Amount)
	cfg.Retries = "default"
	require.Equal(t, Violated, search(t, lab, cfg).Verdicts[model.DoubleDeduct].Status)
}

// Where a fault breaks no connection to Redis, retries make no difference, which is
// why the matrix has such faults with one setting of them only.
func TestRetriesMakeNoDifferenceWhereNoConnectionBreaks(t *testing.T) {
	lab := newLab(t)
	for _, kind := range without(serverKinds, faults.RedisFailover, faults.RedisFreeze) {
		for _, scheme := range []string{"hincrby", "lua-string", "lua-lock"} {
			cfg := one(t, scheme, kind, "unit", "off")
			off := search(t, lab, cfg)
			cfg.Retries = "default"
			require.Empty(t, agree(off, search(t, lab, cfg)), "%s %s", scheme, kind)
		}
	}
}

func TestSymmetryChangesNothingUnderFaultsOfServers(t *testing.T) {
	lab := newLab(t)
	for _, kind := range serverKinds {
		for _, setting := range kind.Settings() {
			if setting == faults.Wait {
				continue // the lock does not wait
			}
			cfg := two(t, "lock", kind, setting)
			with := search(t, lab, cfg)
			cfg.NoSymmetry = true
			require.Empty(t, agree(with, search(t, lab, cfg)), faults.Row(kind, setting))
		}
	}
}

// Random executions, every kind of fault mixed and two of them in each, are those
// of the scheme's code run afresh, and their schedules say all of it.
func TestRandomExecutionsUnderFaultsOfServersAreThoseOfFreshlyRunCode(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	t.Cleanup(func() { engine.Close() })
	const perCell, seed = 40, 20261201
	t.Logf("seed %d", seed)
	met := map[schedule.Kind]int{}
	for _, e := range schemes.All() {
		for _, also := range [][]faults.Setting{nil, {faults.Wait}, {faults.MinReplicas}} {
			if slices.Contains(also, faults.Wait) && !e.Waits {
				continue
			}
			digest := fnv.New64a()
			fmt.Fprint(digest, e.Scheme.Name(), also)
			rnd := rand.New(rand.NewPCG(seed, digest.Sum64()))
			cfg := Config{Entry: e, Workload: workload(t, "restock"), Retries: "default", Settings: also, MaxFaults: 2,
				Faults: append(slices.Clone(serverKinds), faults.ClientCrash, faults.ReplyLost, faults.RequestDelayed, faults.ClientPause)}
			require.NoError(t, cfg.complete())
			s, err := lab.prepare(cfg, symmetric(cfg))
			require.NoError(t, err)
			for range perCell {
				w := s.walk(rnd)
				schedule := reread(t, w)
				require.NoError(t, Replay(e, schedule, engine), "\n%s", w.Timeline())
				for _, st := range schedule.Steps {
					met[st.Kind]++
				}
			}
		}
	}
	for _, kind := range []schedule.Kind{schedule.Restarts, schedule.FallsBehind, schedule.Refuses, schedule.TakesOver, schedule.Freezes, schedule.Thaws,
		schedule.Evicts, schedule.Expires, schedule.Loads, schedule.Reconciles} {
		require.NotZero(t, met[kind], kind)
	}
}

// What a replay compares of a server's fault it notices when it is another.
func TestAReplayNoticesAnotherFaultOfAServer(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	for _, c := range []struct {
		cfg    Config
		kind   schedule.Kind
		change func(*schedule.Step)
	}{
		{two(t, "lua-string", faults.RedisRestart, faults.Snapshot), schedule.Restarts, func(st *schedule.Step) { st.Setting = faults.AOFAlways }},
		{two(t, "lua-string", faults.RedisRestart, faults.AOFEverySec), schedule.Restarts, func(st *schedule.Step) { st.Lost = 9 }},
		{two(t, "lua-string", faults.RedisFailover, faults.Async), schedule.TakesOver, func(st *schedule.Step) { st.Lost++ }},
		{two(t, "lua-string", faults.KeyEvicted, faults.NoSetting), schedule.Evicts, func(st *schedule.Step) { st.Key = "another" }},
		{two(t, "lua-lock", faults.PostgresRestart, faults.SyncCommitOff), schedule.Restarts, func(st *schedule.Step) { st.Lost = 9 }},
		{two(t, "lua-string", faults.StockReloaded, faults.NoSetting), schedule.Loads, func(st *schedule.Step) { st.Kind = schedule.Reconciles }},
	} {
		changed := false
		for _, v := range search(t, lab, c.cfg).Verdicts {
			if v.Witness == nil {
				continue
			}
			s := v.Witness.Schedule()
			i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Kind == c.kind })
			if i < 0 {
				continue
			}
			require.NoError(t, Replay(c.cfg.Entry, s, engine))
			c.change(&s.Steps[i])
			var diverged *schedule.DivergenceError
			require.ErrorAs(t, Replay(c.cfg.Entry, s, engine), &diverged)
			require.Equal(t, s.Steps[i].Note.Line, diverged.Line)
			changed = true
		}
		require.True(t, changed, c.kind)
	}
}

// wandering has a transaction open while it asks Redis.
type wandering struct{ schemes.Scheme }

func (wandering) Name() string { return "wandering" }

func (w wandering) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return w.Scheme.(schemes.Loader).Load(ctx, env, sku, units)
}

func (wandering) Deduct(ctx context.Context, env schemes.Env, _ schemes.Request) (model.Outcome, error) {
	tx, err := env.DB.BeginTx(ctx, nil)
	if err != nil {
		return model.Failed, err
	}
	defer tx.Rollback()
	if err := env.Redis.Get(ctx, "permission").Err(); err != nil {
		return model.Busy, tx.Commit()
	}
	return model.Failed, nil
}

func TestWhatServersDoBeyondWhatIsExploredIsRefusedInWords(t *testing.T) {
	unit := workload(t, "unit")
	both := schemes.Entry{Scheme: wandering{entry(t, "lua-lock").Scheme}, Stores: schemes.Stores{Redis: true, SQL: true}}
	_, err := Run(t.Context(), Config{Entry: both, Workload: unit, Clients: 2, Faults: []faults.Kind{faults.PostgresRestart}, MaxFaults: 1})
	require.ErrorIs(t, err, ErrScheme)
	require.ErrorContains(t, err, "holds a transaction open")
	_, err = Run(t.Context(), two(t, "hincrby", faults.RedisFailover, faults.Wait))
	require.ErrorIs(t, err, ErrConfig)
	require.ErrorContains(t, err, "does not wait for replicas")
	lab := newLab(t)
	for _, kind := range serverKinds {
		_, err := lab.RunAny(t.Context(), AnyConfig{Config: one(t, "lua-string", kind, "unit", "off"), MostStates: 5000})
		if why := NotCounted(kind); why != "" {
			require.ErrorIs(t, err, ErrConfig)
			require.ErrorContains(t, err, why)
			continue
		}
		require.NoError(t, err, kind)
	}
}

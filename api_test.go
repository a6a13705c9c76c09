package stockproof_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof"
)

// guarded is a scheme of somebody's own: one script.
type guarded struct{}

var guardedTake = redis.NewScript(`
	if tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[1]) then return 0 end
	redis.call('DECRBY', KEYS[1], ARGV[1])
	return 1`)

func (guarded) Name() string { return "guarded" }

func (guarded) Load(ctx context.Context, env stockproof.Env, sku string, units int64) error {
	return env.Redis.Set(ctx, "units:"+sku, units, 0).Err()
}

func (guarded) Read(ctx context.Context, env stockproof.Env, sku string) (int64, error) {
	return env.Redis.Get(ctx, "units:"+sku).Int64()
}

func (guarded) Deduct(ctx context.Context, env stockproof.Env, r stockproof.Request) (stockproof.Outcome, error) {
	switch taken, err := guardedTake.Run(ctx, env.Redis, []string{"units:" + r.SKU}, r.Qty).Int(); {
	case err != nil:
		return stockproof.Unknown, err
	case taken == 0:
		return stockproof.SoldOut, nil
	}
	return stockproof.Sold, nil
}

// unguarded is its mutant: the stock is looked at before it is taken.
type unguarded struct{ guarded }

func (unguarded) Name() string { return "unguarded" }

func (s unguarded) Deduct(ctx context.Context, env stockproof.Env, r stockproof.Request) (stockproof.Outcome, error) {
	switch left, err := s.Read(ctx, env, r.SKU); {
	case err != nil:
		return stockproof.Failed, err
	case left < r.Qty:
		return stockproof.SoldOut, nil
	}
	if err := env.Redis.DecrBy(ctx, "units:"+r.SKU, r.Qty).Err(); err != nil {
		return stockproof.Unknown, err
	}
	return stockproof.Sold, nil
}

// toss answers by chance.
type toss struct{ guarded }

var tosses int

func (toss) Name() string { return "toss" }

func (s toss) Deduct(ctx context.Context, env stockproof.Env, r stockproof.Request) (stockproof.Outcome, error) {
	if tosses++; tosses%2 == 0 {
		env.Redis.Exists(ctx, "units:"+r.SKU)
	}
	return s.guarded.Deduct(ctx, env, r)
}

// watched is a test that is allowed to fail.
type watched struct {
	testing.TB
	said   []string
	failed bool
	after  []func()
}

type stopped struct{}

func (w *watched) Helper()           {}
func (w *watched) Failed() bool      { return w.failed }
func (w *watched) Cleanup(f func())  { w.after = append(w.after, f) }
func (w *watched) Log(args ...any)   { w.said = append(w.said, fmt.Sprint(args...)) }
func (w *watched) Error(args ...any) { w.failed = true; w.Log(args...) }
func (w *watched) Fatal(args ...any) { w.Error(args...); panic(stopped{}) }
func (w *watched) Errorf(format string, args ...any) {
	w.Error(fmt.Sprintf(format, args...))
}
func (w *watched) Fatalf(format string, args ...any) {
	w.Fatal(fmt.Sprintf(format, args...))
}

// watch runs what may fail, and what it has to clean up.
func watch(t *testing.T, f func(testing.TB)) *watched {
	w := &watched{TB: t}
	func() {
		defer func() {
			if r := recover(); r != nil && r != (stopped{}) {
				panic(r)
			}
		}()
		f(w)
	}()
	for _, after := range w.after {
		after()
	}
	return w
}

func (w *watched) text() string { return strings.Join(w.said, "\n") }

var withoutRetries = stockproof.WithRetries("off")

func TestAPromiseThatBreaksFailsTheTestAndShowsHow(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := watch(t, func(t testing.TB) {
		stockproof.Verify(t, unguarded{}, withoutRetries, stockproof.UnderFaults(stockproof.None), stockproof.WithWorkloads("unit"))
	})
	require.True(t, w.failed)
	require.Contains(t, w.text(), "oversell: broken, and promised to hold")
	require.Contains(t, w.text(), "b  DECRBY units:1001 1")
	kept, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "stockproof-*", "witnesses", "unguarded.none.unit.retries-off.oversell.schedule"))
	require.NoError(t, err)
	require.Len(t, kept, 1)
	require.Contains(t, w.text(), kept[0])
	require.FileExists(t, filepath.Join(kept[0], "..", "..", "evidence.json"))
	require.FileExists(t, filepath.Join(kept[0], "..", "..", "report.html"))

	t.Run("and its schedule is replayed", func(t *testing.T) { stockproof.Replay(t, unguarded{}, kept[0]) })
	t.Run("and of another scheme it is not", func(t *testing.T) {
		w := watch(t, func(t testing.TB) { stockproof.Replay(t, guarded{}, kept[0]) })
		require.True(t, w.failed)
		require.Contains(t, w.text(), "a schedule of scheme unguarded, not of guarded")
	})
	t.Run("and when the code has changed it says at which line", func(t *testing.T) {
		w := watch(t, func(t testing.TB) { stockproof.Replay(t, mended{}, kept[0]) })
		require.True(t, w.failed)
		require.Contains(t, w.text(), "line 9: a  GET units:1001")
	})
}

// mended is called like the mutant and is not.
type mended struct{ guarded }

func (mended) Name() string { return "unguarded" }

func TestADeclaredWeaknessThatDoesNotShowFailsTheTest(t *testing.T) {
	w := watch(t, func(t testing.TB) {
		stockproof.Verify(t, guarded{}, withoutRetries, stockproof.UnderFaults(stockproof.None),
			stockproof.Breaks(stockproof.None, "so we were told", stockproof.Oversell))
	})
	require.True(t, w.failed)
	require.Contains(t, w.text(), "oversell: declared broken, and not seen to break")
	require.Contains(t, w.text(), "non-linearizable: declared broken", "what is oversold is not linearizable")
}

func TestAnInconclusiveVerdictIsNoPass(t *testing.T) {
	w := watch(t, func(t testing.TB) {
		stockproof.Verify(t, guarded{}, withoutRetries, stockproof.UnderFaults(stockproof.None), stockproof.WithMemory(1))
	})
	require.True(t, w.failed)
	require.Contains(t, w.text(), "not decided, which is no pass")
	require.Contains(t, w.text(), "0 hold")
}

func TestASchemeThatIsAsDeclaredPassesAndLeavesNothing(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	w := watch(t, func(t testing.TB) {
		stockproof.Verify(t, guarded{}, withoutRetries, stockproof.UnderFaults(stockproof.None, stockproof.ClientCrash),
			stockproof.Breaks(stockproof.ClientCrash, "nobody hears of the sale", stockproof.LostUnits))
	})
	require.False(t, w.failed, w.text())
	require.Contains(t, w.text(), "explore:")
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestASchemeThatIsNotDeterministicIsReported(t *testing.T) {
	w := watch(t, func(t testing.TB) { stockproof.Verify(t, toss{}, withoutRetries) })
	require.True(t, w.failed)
	require.Contains(t, w.text(), "deterministic")
}

func TestWhatCannotBeAskedForIsSaid(t *testing.T) {
	for want, options := range map[string][]stockproof.Option{
		"unknown fault":                 {stockproof.UnderFaults("meteor")},
		"unknown workload":              {stockproof.WithWorkloads("big")},
		"has no Restock":                {stockproof.WithWorkloads("restock")},
		"want off or default":           {stockproof.WithRetries("on")},
		"unknown world":                 {stockproof.In("third")},
		"want 1 or more":                {stockproof.WithClients(0)},
		"want 0 or more":                {stockproof.WithFaultsAtOnce(-1)},
		"numbers from 0":                {stockproof.WithStock(-1)},
		"needs UsesSQL":                 {stockproof.WithoutRedis()},
		"unknown property":              {stockproof.Breaks(stockproof.None, "why", "overdose")},
		"no property is named":          {stockproof.Breaks(stockproof.None, "why")},
		"why is missing":                {stockproof.Breaks(stockproof.None, "", stockproof.Oversell)},
		"nothing is left":               {stockproof.UnderFaults()},
		"none of these faults":          {stockproof.UnderFaults(stockproof.ClientPauseShort)},
		"nothing was judged":            {stockproof.UnderFaults(stockproof.ScriptFlush, stockproof.ClientCrash), stockproof.WithFaultsAtOnce(0), withoutRetries},
		"bogus":                         {stockproof.Breaks("redis-restart(bogus)", "why", stockproof.Oversell)},
		"needs func TestMain":           {stockproof.In(stockproof.Live)},
		"unknown fault \"powercut\"":    {stockproof.Breaks("powercut", "why", stockproof.Oversell)},
		"unknown workload \"enormous\"": {stockproof.Declare(stockproof.Weakness{Fault: "none", Workloads: []string{"enormous"}, Breaks: []stockproof.Property{stockproof.Oversell}, Why: "y"})},
	} {
		v, err := stockproof.Judge(t.Context(), guarded{}, append(options, stockproof.KeepIn(t.TempDir()))...)
		require.ErrorIs(t, err, stockproof.ErrUsage, want)
		require.ErrorContains(t, err, want)
		if v != nil {
			require.Empty(t, v.Unexpected())
		}
	}
	_, err := stockproof.Judge(t.Context(), named{})
	require.ErrorContains(t, err, "one that comes with stockproof is called that")
}

func TestAPassNamesWhatItDoesNotSpeakAbout(t *testing.T) {
	w := watch(t, func(t testing.TB) {
		stockproof.Verify(t, guarded{}, withoutRetries, stockproof.WithWorkloads("unit"),
			stockproof.UnderFaults(stockproof.None, stockproof.ClientPauseShort),
			stockproof.Breaks(stockproof.ClientCrash, "nobody hears of the sale", stockproof.LostUnits))
	})
	require.False(t, w.failed, w.text())
	require.Contains(t, w.text(), "not judged: client-pause-short has no place in these worlds")
	require.Contains(t, w.text(), "not judged: the weakness declared under client-crash")
}

type named struct{ guarded }

func (named) Name() string { return "lua-string" }

// The example is a module of its own, which sees only what is public.
func TestTheExampleOfASchemeOfOnesOwn(t *testing.T) {
	liveWorld(t) // its live test needs the same servers; leaves it out only on request
	source, err := os.ReadFile("examples/go-own-scheme/scheme.go")
	require.NoError(t, err)
	_, body, found := strings.Cut(string(source), "type Scheme struct{}\n")
	require.True(t, found)
	lines := 0
	for line := range strings.Lines(body) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	require.LessOrEqual(t, lines, 30)

	cmd := exec.Command("go", "test", "-count=1", "-v", "./...")
	cmd.Dir = "examples/go-own-scheme"
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Contains(t, string(out), "--- PASS: TestRealServersAreAsDeclared")
	require.Contains(t, string(out), "--- PASS: TestReadThenWriteIsConvicted")
	require.NotContains(t, string(out), "SKIP")
}

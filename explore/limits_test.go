package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// dicey sends a different command in every run.
type dicey struct{ schemes.Scheme }

func (dicey) Name() string { return "dicey" }

func (d dicey) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return d.Scheme.(schemes.Loader).Load(ctx, env, sku, units)
}

func (dicey) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	if err := env.Redis.Get(ctx, "stock").Err(); err != nil {
		_ = err
	}
	env.Redis.Set(ctx, "token", fmt.Sprint(rand.Uint64()), 0)
	env.Redis.Get(ctx, "after")
	return model.Sold, nil
}

// shuffled writes in the order in which a map is walked.
type shuffled struct{ schemes.Scheme }

func (shuffled) Name() string { return "shuffled" }

func (d shuffled) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return d.Scheme.(schemes.Loader).Load(ctx, env, sku, units)
}

func (shuffled) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	for key := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8} {
		env.Redis.Set(ctx, key, 1, 0)
	}
	return model.Sold, nil
}

func TestASchemeThatIsNotDeterministicIsReportedWithBothSteps(t *testing.T) {
	base := entry(t, "lua-string").Scheme
	for _, s := range []schemes.Scheme{dicey{base}, shuffled{base}} {
		_, err := Run(t.Context(), Config{Entry: schemes.Entry{Scheme: s, Stores: schemes.Stores{Redis: true}}, Workload: workload(t, "unit")})
		var e *NonDeterminismError
		require.ErrorAs(t, err, &e, s.Name())
		require.NotEqual(t, e.Recorded, e.Seen)
		require.Contains(t, e.Recorded, "set ")
		require.Contains(t, e.Seen, "set ")
		t.Log(e)
	}
}

// broken schemes that must be refused by name, never searched halfway.
type misbehaved struct {
	schemes.Scheme
	what string
}

func (m misbehaved) Name() string { return m.what }

func (m misbehaved) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return m.Scheme.(schemes.Loader).Load(ctx, env, sku, units)
}

func (m misbehaved) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	switch m.what {
	case "uses a command that cannot be modelled":
		env.Redis.Time(ctx)
	case "panics":
		panic("oops")
	case "waits for ever":
		<-ctx.Done()
	case "goes on after its answer":
		go func() {
			time.Sleep(time.Second)
			env.Redis.Incr(ctx, "late")
		}()
	case "uses another type":
		env.Redis.ZAdd(ctx, "z")
	}
	return model.Sold, nil
}

func TestASchemeThatCannotBeExploredIsRefused(t *testing.T) {
	for _, what := range []string{"uses a command that cannot be modelled", "panics", "waits for ever", "goes on after its answer", "uses another type"} {
		e := schemes.Entry{Scheme: misbehaved{entry(t, "lua-string").Scheme, what}, Stores: schemes.Stores{Redis: true}}
		_, err := Run(t.Context(), Config{Entry: e, Workload: workload(t, "unit")})
		require.ErrorIs(t, err, ErrScheme, what)
		t.Log(err)
	}
}

func TestRunningOutIsInconclusiveAndNeverAPass(t *testing.T) {
	lab := newLab(t)
	cfg := Config{Entry: entry(t, "lock"), Workload: workload(t, "unit"), Clients: 4, MaxFaults: 1, Faults: []faults.Kind{faults.StoreLoses}}
	stopped, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user wants to go home")
	cancel(reason)
	little := cfg
	little.MemoryLimit = 4 << 20
	for name, search := range map[string]func() (*Result, error){
		"out of memory": func() (*Result, error) { return lab.Run(t.Context(), little) },
		reason.Error():  func() (*Result, error) { return lab.Run(stopped, cfg) },
	} {
		r, err := search()
		require.NoError(t, err, name)
		require.False(t, r.Exhaustive, name)
		require.Nil(t, r.Executions, name)
		require.Contains(t, r.Why, name)
		for p, v := range r.Verdicts {
			require.NotEqual(t, Holds, v.Status, "%s: %s", name, p)
			if v.Status == Inconclusive {
				require.Equal(t, r.Why, v.Detail)
			}
		}
	}
}

func TestSearchesThatMakeNoSenseAreRefused(t *testing.T) {
	good := Config{Entry: entry(t, "lock"), Workload: workload(t, "unit")}
	for name, change := range map[string]func(*Config){
		"no scheme":        func(c *Config) { c.Entry = schemes.Entry{} },
		"no workload":      func(c *Config) { c.Workload = faults.Workload{} },
		"too many clients": func(c *Config) { c.Clients = maxLocals + 1 },
		"resubmissions": func(c *Config) {
			c.Clients, c.MaxFaults, c.Faults = maxLocals, 1, []faults.Kind{faults.DuplicateRequest}
		},
		"retries":      func(c *Config) { c.Retries = "sometimes" },
		"engine":       func(c *Config) { c.Engine = "memcached" },
		"a live fault": func(c *Config) { c.Faults = []faults.Kind{faults.ClientPauseShort} },
		"faults":       func(c *Config) { c.MaxFaults = -1 },
	} {
		cfg := good
		change(&cfg)
		_, err := Run(t.Context(), cfg)
		require.ErrorIs(t, err, ErrConfig, name)
	}
}

// explore runs in an ordinary program too, although synctest asks for a test.
func TestBubbleWorksOutsideOfATest(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "ordinary")
	build := exec.Command("go", "build", "-o", binary, "./testdata/ordinary")
	build.Stderr = os.Stderr
	require.NoError(t, build.Run())
	var out bytes.Buffer
	cmd := exec.Command(binary, "--not-a-test-flag")
	cmd.Stdout, cmd.Stderr = &out, os.Stderr
	require.NoError(t, cmd.Run())
	require.Equal(t, "hincrby negative-transient violated\n", out.String())
}

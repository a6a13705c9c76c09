package explore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// patient is a scheme that asks some times for the lock and then goes on
// without it: what it does wrong shows only after that many refusals.
type patient struct {
	schemes.Scheme
	attempts int
}

func (p patient) Name() string { return "patient" }

func (p patient) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return p.Scheme.(schemes.Loader).Load(ctx, env, sku, units)
}

func (p patient) Read(ctx context.Context, env schemes.Env, sku string) (int64, error) {
	return p.Scheme.(schemes.Reader).Read(ctx, env, sku)
}

func (p patient) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	for range p.attempts {
		taken, err := env.Redis.SetNX(ctx, "lock:"+req.SKU, env.Client, 0).Result()
		if err != nil {
			return model.Failed, err
		}
		if taken {
			defer env.Redis.Del(ctx, "lock:"+req.SKU)
			break
		}
	}
	return p.Scheme.Deduct(ctx, env, req)
}

func impatient(t *testing.T, attempts int) Config {
	cfg := one(t, "naive", faults.None, "unit", "off")
	cfg.Entry.Scheme = patient{cfg.Entry.Scheme, attempts}
	return cfg
}

func TestCodeThatGivesUpAfterSomeAttemptsIsNotTakenForCodeThatNeverDoes(t *testing.T) {
	for _, attempts := range []int{2, 6} {
		r, err := newLab(t).RunAny(t.Context(), AnyConfig{Config: impatient(t, attempts), MostClients: 2})
		require.NoError(t, err)
		require.Equal(t, Violated, r.Verdicts[model.Oversell].Status, "%d attempts: %s", attempts, r.Verdicts[model.Oversell].Detail)
	}
}

// Without repeating loops the same code would be taken for one that waits for
// ever, and be said to hold.
func TestTestsThatRepeatNothingTakeOneForTheOther(t *testing.T) {
	states := func(repeats int) int {
		lab := newLab(t)
		cfg := AnyConfig{Config: impatient(t, 5), MostStates: anyStates}
		cfg.Clients = 1
		require.NoError(t, cfg.complete())
		x := newAlike()
		x.repeats = repeats
		s, start, err := lab.anySystem(cfg, 0, x)
		require.NoError(t, err)
		_, err = s.search(t.Context(), start, 0, cfg.MostStates)
		require.NoError(t, err)
		if s.found[model.Oversell] {
			return 1
		}
		return 0
	}
	require.Equal(t, 0, states(0))
	require.Equal(t, 1, states(testRepeats))
}

func TestAClientThatMayBeSentBackToItsQueueHasFewStates(t *testing.T) {
	lab := newLab(t)
	cfg := AnyConfig{Config: one(t, "lock", faults.None, "unit", "off"), MostStates: anyStates}
	require.NoError(t, cfg.complete())
	s, start, err := lab.anySystem(cfg, 0, newAlike())
	require.NoError(t, err)
	st, err := s.search(t.Context(), start, 0, cfg.MostStates)
	require.NoError(t, err)
	require.Empty(t, st.Why)
	require.Less(t, len(s.locals), 40)
	same, err := s.alike.confirm()
	require.NoError(t, err)
	require.True(t, same)
	require.NotEmpty(t, s.alike.merged)
}

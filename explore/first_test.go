package explore

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// A first witness is told only when the code does the same again: neither of
// code that does otherwise each time, nor of a search that is broken.
func TestAFirstWitnessThatIsOtherwiseWhenRunAgainIsAnError(t *testing.T) {
	e := schemes.Entry{Scheme: dicey{entry(t, "lua-string").Scheme}, Stores: schemes.Stores{Redis: true}}
	first, _, err := newLab(t).FirstWitness(t.Context(), model.Oversell, Config{Entry: e, Workload: workload(t, "unit")})
	require.Nil(t, first)
	var differs *NonDeterminismError
	require.ErrorAs(t, err, &differs)

	cfg := one(t, "lock", faults.None, "unit", "off")
	cfg.Stock, cfg.mutant = 3, messagesLost
	first, _, err = newLab(t).FirstWitness(t.Context(), model.Unsold, cfg)
	require.Nil(t, first)
	var diverged *schedule.DivergenceError
	require.ErrorAs(t, err, &diverged)
	t.Log(err)
}

// What is found first is found by the search of everything as well, and a
// search in the order of preemptions comes to every state when it is let.
func TestFirstWitnessesAreOfPropertiesThatAreBroken(t *testing.T) {
	for _, c := range []struct {
		scheme string
		fault  faults.Kind
	}{{"lock", faults.ClientPause}, {"hincrby", faults.RequestDelayed}, {"lua-hash", faults.DuplicateRequest}, {"lua-hash", faults.None}} {
		lab := newLab(t)
		cfg := one(t, c.scheme, c.fault, "unit", "off")
		var all []model.Property
		for _, p := range model.Properties() {
			all = append(all, p.ID)
		}
		found := map[model.Property]bool{}
		require.NoError(t, lab.FirstWitnesses(t.Context(), all, func(f First) { found[f.Property] = true }, cfg))
		whole := search(t, lab, cfg)
		for _, p := range all {
			require.Equal(t, whole.Verdicts[p].Status == Violated, found[p], "%s %s %s", c.scheme, c.fault, p)
		}

		require.NoError(t, cfg.complete())
		s, err := lab.prepare(cfg, symmetric(cfg))
		require.NoError(t, err)
		more, why := (&guided{searcher: s}).run(t.Context(), 1<<40, func(model.Property, uint32) bool { return false })
		require.False(t, more)
		require.Empty(t, why)
		require.Equal(t, whole.States, uint64(s.seen.n))
	}
}

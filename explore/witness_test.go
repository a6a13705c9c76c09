package explore

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func TestWitnessTellsTheStory(t *testing.T) {
	lab := NewLab()
	defer lab.Close()
	for _, c := range []struct {
		scheme string
		fault  faults.Kind
		p      model.Property
	}{{"lock", faults.ClientPause, model.Oversell}, {"lock", faults.RequestDelayed, model.NegativePermanent}, {"hincrby", faults.ReplyLost, model.Oversell}, {"lua-hash", faults.StoreLoses, model.Oversell}, {"lock", faults.ClientCrash, model.LostUnits}} {
		entry, err := schemes.ByName(c.scheme)
		require.NoError(t, err)
		w, _ := faults.WorkloadByName("unit")
		r, err := lab.Run(context.Background(), Config{Entry: entry, Workload: w, Retries: "default", Faults: []faults.Kind{c.fault}, MaxFaults: 1})
		require.NoError(t, err)
		v := r.Verdicts[c.p]
		require.Equal(t, Violated, v.Status)
		t.Logf("\n%s", v.Witness.Timeline())
	}
}

// A search that stops at the first witness finds the one a search of
// everything finds, and says of what it did not find only that it stopped.
func TestTheFirstWitnessIsThatOfTheWholeSearch(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	for _, c := range []struct {
		scheme string
		fault  faults.Kind
		p      model.Property
	}{{"lock", faults.ClientPause, model.Oversell}, {"hincrby", faults.ReplyLost, model.Oversell}, {"naive", faults.None, model.NonLinearizable}} {
		cfg := one(t, c.scheme, c.fault, "unit", "default")
		whole := search(t, lab, cfg)
		cfg.Until = c.p
		first := search(t, lab, cfg)
		require.Equal(t, Violated, first.Verdicts[c.p].Status)
		require.Equal(t, whole.Verdicts[c.p].Witness.Timeline(), first.Verdicts[c.p].Witness.Timeline())
		require.False(t, first.Exhaustive)
		require.Less(t, first.States, whole.States)
		for p, v := range first.Verdicts {
			require.NotEqual(t, Holds, v.Status, p)
		}
		// In depth and smallest first: another witness, the same in each run.
		small, _, err := lab.FirstWitness(t.Context(), c.p, cfg)
		require.NoError(t, err)
		require.NoError(t, Replay(cfg.Entry, reread(t, small.Witness), engine))
		require.Contains(t, fmt.Sprint(small.Witness.Broken), c.p)
		again, _, err := newLab(t).FirstWitness(t.Context(), c.p, cfg)
		require.NoError(t, err)
		require.Equal(t, small.Witness.Timeline(), again.Witness.Timeline())
		require.LessOrEqual(t, len(small.Witness.Clients), len(first.Verdicts[c.p].Witness.Clients))
	}
	// What holds is searched to the end.
	none, r, err := lab.FirstWitness(t.Context(), model.Oversell, one(t, "lua-hash", faults.None, "unit", "off"))
	require.NoError(t, err)
	require.Nil(t, none)
	require.True(t, r.Exhaustive)
	require.Equal(t, Holds, r.Verdicts[model.Oversell].Status)
}

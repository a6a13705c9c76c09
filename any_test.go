package stockproof_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
)

// What a bounded search convicts, a verdict for any number of clients convicts
// too, with a witness; and nothing that a scheme broken on purpose breaks is
// ever said to hold.
func TestABrokenSchemeIsConvictedForAnyNumberOfClients(t *testing.T) {
	lab := explore.NewLab()
	defer lab.Close()
	convicted := 0
	for _, m := range convictions {
		t.Run(m.scheme.Name(), func(t *testing.T) {
			cfg := explore.Config{Entry: entry(t, m.scheme.Name()), Workload: workload(t, m.workload)}
			if m.placement.Kind != faults.None {
				cfg.Faults, cfg.MaxFaults = []faults.Kind{m.placement.Kind}, 1
			}
			bounded, err := lab.Run(t.Context(), cfg)
			require.NoError(t, err)
			all, err := lab.RunAny(t.Context(), explore.AnyConfig{Config: cfg, MostStates: 20_000})
			require.NoError(t, err)
			for _, p := range explore.AnyProperties() {
				v := all.Verdicts[p]
				if slices.Contains(m.breaks, p) {
					require.NotEqual(t, explore.Holds, v.Status, p)
				}
				if bounded.Verdicts[p].Status == explore.Violated {
					convicted++
					require.Equal(t, explore.Violated, v.Status, "%s: %s", p, v.Detail)
					require.True(t, slices.ContainsFunc(v.Witness.Broken, func(f model.Finding) bool { return f.Property == p }))
				}
			}
		})
	}
	require.Greater(t, convicted, 10)
}

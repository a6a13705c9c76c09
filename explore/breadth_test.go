package explore

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
)

// A second core makes nothing different: states have the same numbers, so even
// the witnesses are the same.
func TestASecondCoreChangesNothing(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(2, runtime.GOMAXPROCS(0))))
	lab := newLab(t)
	for _, scheme := range []string{"lock"} {
		cfg := one(t, scheme, faults.ClientPause, "unit", "off")
		cfg.Clients, cfg.Faults = 4, []faults.Kind{faults.ClientPause, faults.ReplyLost, faults.StoreLoses}
		with := search(t, lab, cfg)
		require.Greater(t, with.States, uint64(4*largeBatch))
		lab.searches.Add(1000) // as if others used every core
		without := search(t, lab, cfg)
		lab.searches.Add(-1000)
		require.Empty(t, agree(with, without))
		require.Equal(t, with.States, without.States)
		require.Equal(t, with.Transitions, without.Transitions)
		for p, v := range with.Verdicts {
			require.Equal(t, v.Detail, without.Verdicts[p].Detail)
			if v.Witness != nil {
				require.Equal(t, v.Witness.Timeline(), without.Verdicts[p].Witness.Timeline())
			}
		}
	}
}

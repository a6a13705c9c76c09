package explore

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
)

// A run that stood still and goes on does what a run from the beginning does:
// searches that never park, that hardly ever find the run they need, and that
// keep all of them are equal.
func TestARunThatGoesOnDoesWhatAFreshOneDoes(t *testing.T) {
	for _, scheme := range []string{"lock-watchdog", "lua-lock"} {
		cfg := one(t, scheme, faults.ClientPause, "unit", "default")
		cfg.Clients = 2
		cfg.Faults = []faults.Kind{faults.ClientPause, faults.ReplyLost, faults.RequestDelayed}
		var fresh *Result
		var starts []int64
		for _, limit := range []int{0, 1, maxParked} {
			lab := newLab(t)
			lab.park.limit = limit
			r := search(t, lab, cfg)
			starts = append(starts, lab.park.starts.Load())
			if fresh == nil {
				fresh = r
			}
			require.Empty(t, agree(fresh, r), "%s, %d parked", scheme, limit)
			require.Equal(t, fresh.States, r.States)
			require.Equal(t, fresh.Transitions, r.Transitions)
			for p, v := range fresh.Verdicts {
				if v.Witness != nil {
					require.Equal(t, v.Witness.Timeline(), r.Verdicts[p].Witness.Timeline(), "%s, %d parked", scheme, limit)
				}
			}
		}
		require.Less(t, starts[2], starts[0], "runs begun")
	}
}

// Every place from which the code has gone on is seen by two runs, as it was
// when each question ran the code from its beginning.
func TestEveryPlaceTheCodeWentOnFromIsSeenTwice(t *testing.T) {
	lab := newLab(t)
	search(t, lab, one(t, "lock-watchdog", faults.ClientPause, "mixed", "default"))
	again := 0
	for _, a := range lab.known {
		for _, n := range a.nodes {
			if n.base == nil && n.ran.Load() {
				require.Positive(t, n.again.Load())
				again++
			}
		}
	}
	require.Greater(t, again, 50)
}

// Nothing of a laboratory runs on when it is closed.
func TestAClosedLabHasNoRunLeft(t *testing.T) {
	before := runtime.NumGoroutine()
	lab := NewLab()
	search(t, lab, one(t, "lock-watchdog", faults.ReplyLost, "unit", "default"))
	require.NotZero(t, lab.park.parked.Len())
	require.Greater(t, runtime.NumGoroutine(), before)
	require.NoError(t, lab.Close())
	require.Zero(t, lab.park.parked.Len())
	// A goroutine that has said its last word may still be counted for a moment.
	for deadline := time.Now().Add(time.Minute); runtime.NumGoroutine() > before && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	require.LessOrEqual(t, runtime.NumGoroutine(), before)
}

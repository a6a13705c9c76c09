package stockproof_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/live"
)

// BenchmarkScenario is one live run from loading the stock to the last law,
// with three clients behind their proxies and nothing that waits for a lease.
func BenchmarkScenario(b *testing.B) {
	world := liveWorld(b)
	for _, c := range []struct {
		name, scheme string
		placement    faults.Placement
	}{
		{"no-fault", "lua-hash", inTurn},
		{"lost-reply", "hincrby", at(faults.ReplyLost, 0, 1)},
		{"sql", "db-version", inTurn},
		{"lock", "lock", inTurn},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				run, err := world.Run(b.Context(), live.Case{Entry: entry(b, c.scheme), Workload: workload(b, "unit"), Retries: "off", Placement: c.placement})
				require.NoError(b, err)
				require.NoError(b, run.Check(""))
				require.True(b, run.Fired)
			}
		})
	}
}

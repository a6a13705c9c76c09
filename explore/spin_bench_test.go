package explore

import (
	"context"
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
)

// BenchmarkAgainstSpin compares states a second on the lock, 4 clients, 2 lost
// replies, one core each: SPIN's verifier on the Promela model, and the search
// on what it has learnt of the real code.
func BenchmarkAgainstSpin(b *testing.B) {
	debug.SetGCPercent(400) // as the commands do
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	_, states, rate := spin(b, "lock", spinDefines(faults.ReplyLost, 4, 1, 2))
	lab := NewLab()
	defer lab.Close()
	cfg := Config{Entry: entry(b, "lock"), Workload: workload(b, "unit"), Clients: 4, MaxFaults: 2,
		Faults: []faults.Kind{faults.ReplyLost, faults.RequestLost, faults.ClientCrash, faults.ScriptFlush}}
	_, err := lab.Run(context.Background(), cfg)
	require.NoError(b, err)
	var ours float64
	for b.Loop() {
		r, err := lab.Run(context.Background(), cfg)
		require.NoError(b, err)
		ours = max(ours, float64(r.States)/r.Elapsed.Seconds())
	}
	b.ReportMetric(rate, "spin-states/s")
	b.ReportMetric(float64(states), "spin-states")
	b.ReportMetric(ours, "states/s")
	b.ReportMetric(ours/rate, "ratio")
}

package explore

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// entry finds a registered scheme.
func entry(t testing.TB, name string) schemes.Entry {
	t.Helper()
	e, err := schemes.ByName(name)
	require.NoError(t, err)
	return e
}

func workload(t testing.TB, name string) faults.Workload {
	t.Helper()
	w, err := faults.WorkloadByName(name)
	require.NoError(t, err)
	return w
}

// every is every fault explore places.
var every = []faults.Kind{faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost, faults.RequestDelayed,
	faults.DuplicateRequest, faults.CommitReplyLost, faults.StoreLoses, faults.ScriptFlush}

// one is a configuration with at most one fault.
func one(t testing.TB, scheme string, fault faults.Kind, wl, retries string) Config {
	cfg := Config{Entry: entry(t, scheme), Workload: workload(t, wl), Retries: retries, Faults: []faults.Kind{fault}, MaxFaults: 1}
	if fault == faults.None {
		cfg.MaxFaults = 0
	}
	return cfg
}

// pointless says that a fault has no place in a scheme at all, so that a search
// with it is the search without one.
func pointless(e schemes.Entry, fault faults.Kind) bool {
	return fault == faults.CommitReplyLost && !e.Stores.SQL
}

// letters are the broken properties in the order of the design; ? marks what
// was not decided.
func letters(r *Result) string {
	var b strings.Builder
	for _, p := range model.Properties() {
		switch v := r.Verdicts[p.ID]; v.Status {
		case Violated:
			b.WriteString(p.Letter)
		case Inconclusive:
			b.WriteString("?" + p.Letter)
		}
	}
	return b.String()
}

func newLab(t testing.TB) *Lab {
	lab := NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	return lab
}

func search(t testing.TB, lab *Lab, cfg Config) *Result {
	t.Helper()
	r, err := lab.Run(context.Background(), cfg)
	require.NoError(t, err)
	return r
}

// needRealServers fails without them, unless they are left out on purpose.
func needRealServers(t testing.TB) {
	t.Helper()
	if os.Getenv("STOCKPROOF_LIVE") == "off" {
		t.Skip("left out: STOCKPROOF_LIVE=off")
	}
}

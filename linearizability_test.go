// Package stockproof_test is the headline suite: what each scheme promises
// holds, and what it is known to break still shows, on real servers.
package stockproof_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/schemes"
)

// TestLive runs every placement of every fault for every scheme, workload and
// retry setting, and compares each verdict with the declared one, both ways: a
// broken promise fails, and so does a declared weakness that does not show.
func TestLive(t *testing.T) {
	world := liveWorld(t)
	for _, e := range schemes.All() {
		t.Run(e.Scheme.Name(), func(t *testing.T) {
			for _, kind := range live.Kinds() {
				t.Run(string(kind), func(t *testing.T) {
					for _, load := range faults.Workloads() {
						t.Run(load.Name, func(t *testing.T) {
							t.Parallel()
							for _, retries := range live.Retries() {
								t.Run("retries-"+retries, func(t *testing.T) {
									requireAsDeclared(t, world, e, kind, load, retries)
								})
							}
						})
					}
				})
			}
		})
	}
}

func requireAsDeclared(t *testing.T, world *live.World, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
	t.Helper()
	steps, err := world.Observe(t.Context(), e, load, retries)
	require.NoError(t, err)
	plan := faults.Plan(kind, steps)
	runs, err := world.RunAll(t.Context(), e, load, retries, plan, t.TempDir())
	require.NoError(t, err)
	for _, c := range evidence.FromLive(e, kind, load, retries, len(plan), runs) {
		if !c.AsDeclared() {
			t.Errorf("%s is %s (%d), declared %s: %s", c.Property, c.Verdict, c.Amount, c.Declared, c.Reason)
		}
	}
}

// Package stockproof_test is the headline suite: what each scheme promises
// holds, and what it is known to break still shows, in both worlds.
package stockproof_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/schemes"
)

// TestExplore covers every interleaving and every placement of one fault among
// three clients, for one and two units on sale, and compares each verdict with
// the declared one, both ways: a broken promise fails, and so does a declared
// weakness that does not show.
func TestExplore(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	seen := new(collected)
	t.Cleanup(func() { seen.requireClaims(t) }) // when all subtests are done
	everyCell(t, func(schemes.Entry) []faults.Kind { return evidence.ExploreKinds() }, func(schemes.Entry) []string { return faults.Retries() }, func(t *testing.T, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
		group := evidence.ExploreGroup{Entry: e, Fault: kind, Workload: load, Retries: retries}
		cells, err := evidence.FromExplore(t.Context(), lab, []evidence.ExploreGroup{group}, evidence.DefaultExploreBounds(), "", nil)
		require.NoError(t, err)
		requireAsDeclared(t, cells)
		seen.add(cells)
	})
}

// TestLive runs every placement of every fault on real servers, and compares
// each verdict with the declared one in the same way.
func TestLive(t *testing.T) {
	world := liveWorld(t)
	everyCell(t, liveKinds, liveRetries, func(t *testing.T, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
		steps, err := world.Observe(t.Context(), e, load, retries)
		require.NoError(t, err)
		plan := faults.Plan(kind, steps)
		dir := t.TempDir()
		runs, err := world.RunAll(t.Context(), e, load, retries, plan, dir)
		require.NoError(t, err)
		for _, run := range runs {
			require.FileExists(t, filepath.Join(dir, run.Case.HistoryPath()))
			require.FileExists(t, filepath.Join(dir, run.Case.PicturePath()))
		}
		requireAsDeclared(t, evidence.FromLive(e, kind, load, retries, len(plan), runs))
	})
}

// everyCell makes a subtest scheme/fault/workload/retries of each combination.
func everyCell(t *testing.T, kindsFor func(schemes.Entry) []faults.Kind, retriesFor func(schemes.Entry) []string, verify func(*testing.T, schemes.Entry, faults.Kind, faults.Workload, string)) {
	for _, e := range schemes.All() {
		t.Run(e.Scheme.Name(), func(t *testing.T) {
			for _, kind := range kindsFor(e) {
				t.Run(string(kind), func(t *testing.T) {
					for _, load := range faults.Workloads() {
						t.Run(load.Name, func(t *testing.T) {
							t.Parallel()
							for _, retries := range retriesFor(e) {
								t.Run("retries-"+retries, func(t *testing.T) { verify(t, e, kind, load, retries) })
							}
						})
					}
				})
			}
		})
	}
}

// liveKinds and liveRetries are what TestLive runs of a scheme. Of the wider set
// the everyday suite takes what separates schemes most; explore has covered all.
func liveKinds(e schemes.Entry) []faults.Kind {
	if e.Wider && !long {
		return []faults.Kind{faults.None, faults.ClientCrash, faults.ReplyLost}
	}
	return live.KindsFor(e)
}

func liveRetries(e schemes.Entry) []string {
	if all := live.RetriesFor(e); !e.Wider || long {
		return all
	} else {
		return all[len(all)-1:]
	}
}

func requireAsDeclared(t *testing.T, cells []evidence.Cell) {
	t.Helper()
	require.NotEmpty(t, cells)
	for _, c := range cells {
		if !c.AsDeclared() {
			t.Errorf("%s is %s (%d), declared %s: %s", c.Property, c.Verdict, c.Amount, c.Declared, c.Reason)
		}
	}
}

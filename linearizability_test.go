// Package stockproof_test is the headline suite: what each scheme promises
// holds, and what it is known to break still shows, in both worlds.
package stockproof_test

import (
	"path/filepath"
	"slices"
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
	everyCell(t, func(schemes.Entry) []faults.Kind { return evidence.ExploreKinds() }, exploreRetries, func(t *testing.T, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
		group := evidence.ExploreGroup{Entry: e, Fault: kind, Workload: load, Retries: retries}
		cells, err := evidence.FromExplore(t.Context(), lab, []evidence.ExploreGroup{group}, evidence.DefaultExploreBounds(), "", nil)
		require.NoError(t, err)
		requireAsDeclared(t, cells)
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
func everyCell(t *testing.T, kindsFor func(schemes.Entry) []faults.Kind, retriesFor func(schemes.Entry, faults.Kind, faults.Workload) []string, verify func(*testing.T, schemes.Entry, faults.Kind, faults.Workload, string)) {
	for _, e := range schemes.All() {
		t.Run(e.Scheme.Name(), func(t *testing.T) {
			for _, kind := range kindsFor(e) {
				t.Run(string(kind), func(t *testing.T) {
					for _, load := range faults.Workloads() {
						t.Run(load.Name, func(t *testing.T) {
							t.Parallel()
							for _, retries := range retriesFor(e, kind, load) {
								t.Run("retries-"+retries, func(t *testing.T) { verify(t, e, kind, load, retries) })
							}
						})
					}
				})
			}
		})
	}
}

// exploreRetries are the settings of go-redis with which TestExplore searches a
// cell. Of the wider set the everyday suite leaves out searches that would be made
// twice, since go-redis repeats nothing where no connection breaks, and the
// largest, in which somebody also puts units back. The build tag long makes all.
func exploreRetries(e schemes.Entry, kind faults.Kind, load faults.Workload) []string {
	if !e.Wider || long {
		return faults.Retries()
	}
	breaks := slices.Contains([]faults.Kind{faults.RequestLost, faults.ReplyLost, faults.RequestDelayed, faults.CommitReplyLost}, kind)
	large := kind == faults.DuplicateRequest || kind == faults.StoreLoses
	switch {
	case large && load.Name == "restock":
		return nil
	case breaks && e.Stores.Redis:
		return faults.Retries()
	}
	return faults.Retries()[:1]
}

// liveKinds and liveRetries are what TestLive runs of a scheme. Of the wider set
// the everyday suite takes what separates schemes most, buyers of one unit;
// explore has covered all.
func liveKinds(e schemes.Entry) []faults.Kind {
	if e.Wider && !long {
		return []faults.Kind{faults.None, faults.ClientCrash, faults.ReplyLost}
	}
	return live.KindsFor(e)
}

func liveRetries(e schemes.Entry, _ faults.Kind, load faults.Workload) []string {
	all := live.RetriesFor(e)
	switch {
	case !e.Wider || long:
		return all
	case load.Name != "unit":
		return nil
	}
	return all[len(all)-1:]
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

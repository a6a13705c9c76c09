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
	everyCell(t, func(schemes.Entry) []faults.Kind { return evidence.ExploreKinds() }, func(schemes.Entry) []string { return faults.Retries() }, func(t *testing.T, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
		groups := evidence.ExploreGroups([]schemes.Entry{e}, []faults.Kind{kind}, []faults.Workload{load}, []string{retries})
		if !slices.Contains(faults.RetriesFor(kind), retries) {
			return // it makes no difference there, see faults.RetriesFor
		}
		cells, err := evidence.FromExplore(t.Context(), lab, groups, evidence.DefaultExploreBounds(), "", nil)
		require.NoError(t, err)
		requireAsDeclared(t, cells)
	})
}

// TestLive runs every placement of every fault on real servers, and compares
// each verdict with the declared one in the same way.
func TestLive(t *testing.T) {
	world := liveWorld(t)
	everyCell(t, liveKinds, liveRetries, func(t *testing.T, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
		if !slices.Contains(faults.RetriesFor(kind), retries) || live.HitsServer(kind) && !long && (load.Name != "unit" || !hitEveryDay(e, kind)) {
			return
		}
		for _, setting := range evidence.SettingsFor(e, kind) {
			group := live.Group{Entry: e, Fault: kind, Setting: setting, Workload: load, Retries: retries}
			dir := t.TempDir()
			require.NoError(t, world.RunGroup(t.Context(), &group, dir), setting)
			for _, run := range group.Runs {
				require.FileExists(t, filepath.Join(dir, run.Case.HistoryPath()))
				require.FileExists(t, filepath.Join(dir, run.Case.PicturePath()))
			}
			requireAsDeclared(t, evidence.FromLive(&group))
		}
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

// hitEveryDay says whether the everyday suite hits the servers of a scheme with a
// fault, in the unit workload: one scheme of each kind of store, and one of both,
// which has the most steps and so not the faults that take longest. The tag long
// hits all.
func hitEveryDay(e schemes.Entry, kind faults.Kind) bool {
	switch e.Scheme.Name() {
	case "hincrby", "lua-string", "db-version":
		return true
	case "lua-lock":
		return kind != faults.RedisRestart && kind != faults.PostgresRestart
	}
	return false
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

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
	seen := new(collected)
	t.Cleanup(func() { seen.requireClaims(t) }) // when all subtests are done
	everyCell(t, func(schemes.Entry) []faults.Kind { return evidence.ExploreKinds() }, exploreRetries, func(t *testing.T, e schemes.Entry, kind faults.Kind, load faults.Workload, retries string) {
		groups := evidence.ExploreGroups([]schemes.Entry{e}, []faults.Kind{kind}, []faults.Workload{load}, []string{retries})
		cells, err := evidence.FromExplore(t.Context(), lab, groups, evidence.DefaultExploreBounds(), "", nil)
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

// exploreRetries are the settings of go-redis with which TestExplore searches a
// cell. Of the wider set the everyday suite leaves out searches that would be made
// twice, since go-redis repeats nothing where no connection breaks, the largest, in
// which somebody also puts units back, and faults of servers in other workloads than
// unit. The build tag long makes all.
func exploreRetries(e schemes.Entry, kind faults.Kind, load faults.Workload) []string {
	if !e.Wider || long {
		return faults.RetriesFor(kind) // elsewhere they make no difference
	}
	breaks := slices.Contains([]faults.Kind{faults.RequestLost, faults.ReplyLost, faults.RequestDelayed, faults.CommitReplyLost}, kind)
	large := kind == faults.DuplicateRequest || kind == faults.StoreLoses
	switch {
	case large && load.Name == "restock", faults.HitsServer(kind) && load.Name != "unit":
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

func liveRetries(e schemes.Entry, kind faults.Kind, load faults.Workload) []string {
	all := slices.DeleteFunc(live.RetriesFor(e), func(retries string) bool { return !slices.Contains(faults.RetriesFor(kind), retries) })
	switch {
	case long:
		return all
	case faults.HitsServer(kind) && (load.Name != "unit" || !hitEveryDay(e, kind)):
		return nil
	case !e.Wider:
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

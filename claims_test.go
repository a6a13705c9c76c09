package stockproof_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/faults"
	"stockproof/schemes"
)

// collected is the cells of a whole run of TestExplore.
type collected struct {
	mu    sync.Mutex
	cells []evidence.Cell
}

func (c *collected) add(cells []evidence.Cell) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cells = append(c.cells, cells...)
}

// requireClaims holds the ledger of claims against what was explored: no verdict
// may be contradicted, and one may be open only for want of a measured cost, or
// of a scheme or fault that is not there. What docs/schemes-compared.md shows is
// what was found. With only a part explored there is nothing to say.
func (c *collected) requireClaims(t *testing.T) {
	if t.Failed() || len(evidence.Groups(c.cells)) < wholeMatrix() {
		return
	}
	found, err := claims.Facts(context.Background()) // that of a test is done when its cleanups run
	require.NoError(t, err)
	evidence.Sort(c.cells)
	r := evidence.Report{Cells: c.cells, Facts: found}
	for _, claim := range claims.Judge(r) {
		for _, s := range claim.Evidence {
			switch {
			case s.State == evidence.Contradicts:
				t.Errorf("claim %s is in the ledger as %s, but: %s: %s", claim.ID, claim.Ledger, s.Wants.EN, s.Found.EN)
			case s.State == evidence.Missing && s.Kind != "cost" && !isToCome(s):
				t.Errorf("claim %s has lost its evidence: %s: %s", claim.ID, s.Wants.EN, s.Found.EN)
			}
		}
	}
	r.Cells = append(r.Cells, leftToTheLongSuite()...)
	requireShown(t, "docs/schemes-compared.md", "compared", r.GlanceMarkdown())
}

// leftToTheLongSuite is what is declared broken in the groups that TestExplore makes
// only with the tag long; there it is held against what is found, as everything is.
func leftToTheLongSuite() (cells []evidence.Cell) {
	for _, e := range schemes.All() {
		for _, load := range faults.Workloads() {
			for _, kind := range evidence.ExploreKinds() {
				today := exploreRetries(e, kind, load)
				for _, g := range evidence.ExploreGroups([]schemes.Entry{e}, []faults.Kind{kind}, []faults.Workload{load}, faults.RetriesFor(kind)) {
					if slices.Contains(today, g.Retries) {
						continue
					}
					must, _ := e.Guarantees.Declared(g.Row(), load.Name, g.Retries, "explore")
					for p := range must {
						cells = append(cells, evidence.Cell{Scheme: e.Scheme.Name(), Fault: kind, Setting: g.Setting, Property: p, Verdict: evidence.Violated})
					}
				}
			}
		}
	}
	return cells
}

// wholeMatrix is how many groups of cells TestExplore makes.
func wholeMatrix() (n int) {
	for _, e := range schemes.All() {
		for _, kind := range evidence.ExploreKinds() {
			for _, load := range faults.Workloads() {
				if retries := exploreRetries(e, kind, load); len(retries) > 0 {
					n += len(evidence.ExploreGroups([]schemes.Entry{e}, []faults.Kind{kind}, []faults.Workload{load}, retries))
				}
			}
		}
	}
	return n
}

// isToCome says whether evidence is about a scheme or fault that is not there.
func isToCome(s evidence.Support) bool {
	for _, name := range s.Schemes {
		if _, err := schemes.ByName(name); err != nil {
			return true
		}
	}
	for _, kind := range s.Faults {
		if _, err := faults.ParseKind(kind); err != nil {
			return true
		}
	}
	return false
}

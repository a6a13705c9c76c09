package explore

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

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

func TestTable(t *testing.T) {
	lab := NewLab()
	defer lab.Close()
	for _, name := range []string{"hincrby", "lua-hash", "lock", "lua-lock", "db-version"} {
		entry, err := schemes.ByName(name)
		require.NoError(t, err)
		for _, retries := range []string{"off", "default"} {
			for _, f := range []faults.Kind{faults.DuplicateRequest} {
				for _, wname := range []string{"unit", "mixed", "restock"} {
					w, _ := faults.WorkloadByName(wname)
					cfg := Config{Entry: entry, Workload: w, Retries: retries, Faults: []faults.Kind{f}, MaxFaults: 1}
					if f == faults.None {
						cfg.MaxFaults = 0
					}
					r, err := lab.Run(context.Background(), cfg)
					if err != nil {
						t.Errorf("%s %s %s %s: %v", name, retries, f, wname, err)
						continue
					}
					t.Logf("%-12s %-8s %-15s %-8s %-10s states %7d exec %v places %d/%d runs %d q %d %v %s", name, retries, f, wname, letters(r), r.States, r.Executions, r.PlacementsFired, r.PlacementsEnumerated, r.Extractions, r.StoreQuestions, r.Elapsed, r.Why)
				}
			}
		}
	}
}

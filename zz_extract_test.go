package stockproof_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/schemes"
)

func TestZZExtract(t *testing.T) {
	lab := explore.NewLab()
	defer lab.Close()
	f, err := os.OpenFile(os.Getenv("ZZ_OUT"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer f.Close()
	enc := json.NewEncoder(f)
	for _, name := range strings.Fields(os.Getenv("ZZ")) {
		e, err := schemes.ByName(name)
		require.NoError(t, err)
		began := time.Now()
		var states uint64
		for _, kind := range evidence.ExploreKinds() {
			for _, load := range faults.Workloads() {
				for _, retries := range live.RetriesFor(e) {
					group := evidence.ExploreGroup{Entry: e, Fault: kind, Workload: load, Retries: retries}
					t0 := time.Now()
					cells, err := evidence.FromExplore(t.Context(), lab, []evidence.ExploreGroup{group}, evidence.DefaultExploreBounds(), "", nil)
					if err != nil {
						t.Errorf("%s %s %s %s: %v", name, kind, load.Name, retries, err)
						continue
					}
					states += cells[0].States
					line := ""
					for _, c := range cells {
						require.NoError(t, enc.Encode(c))
						if c.Verdict == evidence.Violated {
							line += " " + string(c.Property)
						} else if c.Verdict == evidence.Inconclusive {
							line += " ?" + string(c.Property) + ":" + c.Reason
						}
					}
					t.Logf("%s %s %s %s: %d states %v:%s", name, kind, load.Name, retries, cells[0].States, time.Since(t0).Round(time.Millisecond), line)
				}
			}
		}
		t.Logf("== %s: %d states in %v", name, states, time.Since(began))
	}
}

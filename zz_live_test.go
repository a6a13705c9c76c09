package stockproof_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/schemes"
)

func TestZZLive(t *testing.T) {
	world := liveWorld(t)
	f, err := os.OpenFile(os.Getenv("ZZ_OUT"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	require.NoError(t, err)
	defer f.Close()
	enc := json.NewEncoder(f)
	for _, name := range strings.Fields(os.Getenv("ZZ")) {
		e, err := schemes.ByName(name)
		require.NoError(t, err)
		began := time.Now()
		for _, kind := range live.KindsFor(e) {
			for _, load := range faults.Workloads() {
				for _, retries := range live.RetriesFor(e) {
					t0 := time.Now()
					steps, err := world.Observe(t.Context(), e, load, retries)
					if err != nil {
						t.Errorf("%s %s %s %s: %v", name, kind, load.Name, retries, err)
						continue
					}
					plan := faults.Plan(kind, steps)
					runs, err := world.RunAll(t.Context(), e, load, retries, plan, "")
					if err != nil {
						t.Errorf("%s %s %s %s: %v", name, kind, load.Name, retries, err)
						continue
					}
					line := ""
					for _, c := range evidence.FromLive(e, kind, load, retries, len(plan), runs) {
						require.NoError(t, enc.Encode(c))
						if c.Verdict == evidence.Violated {
							line += " " + string(c.Property)
						} else if c.Verdict == evidence.Inconclusive {
							line += " ?" + string(c.Property) + ":" + c.Reason
						}
					}
					t.Logf("%s %s %s %s: %d runs %v:%s", name, kind, load.Name, retries, len(runs), time.Since(t0).Round(time.Millisecond), line)
				}
			}
		}
		t.Logf("== %s in %v", name, time.Since(began))
	}
}

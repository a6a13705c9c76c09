package explore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func TestWitnessTellsTheStory(t *testing.T) {
	lab := NewLab()
	defer lab.Close()
	for _, c := range []struct {
		scheme string
		fault  faults.Kind
		p      model.Property
	}{{"lock", faults.ClientPause, model.Oversell}, {"lock", faults.RequestDelayed, model.NegativePermanent}, {"hincrby", faults.ReplyLost, model.Oversell}, {"lua-hash", faults.StoreLoses, model.Oversell}, {"lock", faults.ClientCrash, model.LostUnits}} {
		entry, err := schemes.ByName(c.scheme)
		require.NoError(t, err)
		w, _ := faults.WorkloadByName("unit")
		r, err := lab.Run(context.Background(), Config{Entry: entry, Workload: w, Retries: "default", Faults: []faults.Kind{c.fault}, MaxFaults: 1})
		require.NoError(t, err)
		v := r.Verdicts[c.p]
		require.Equal(t, Violated, v.Status)
		t.Logf("\n%s", v.Witness.Timeline())
	}
}

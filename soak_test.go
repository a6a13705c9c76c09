package stockproof_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/live"
	"stockproof/model"
)

// soak is a second of sales that a crowd wants more of than there is.
func soak(t *testing.T, scheme, retries string, kinds ...faults.Kind) (*live.SoakResult, live.SoakConfig) {
	t.Helper()
	c := live.SoakConfig{Entry: entry(t, scheme), Retries: retries, Clients: 6, PerSale: 4, Duration: time.Second,
		Kinds: kinds, FaultRate: 0.3, Stock: 8, MaxQty: 1, Seed: 7, Dir: t.TempDir()}
	r, err := liveWorld(t).Soak(t.Context(), c)
	require.NoError(t, err)
	require.Positive(t, r.Sales)
	require.Positive(t, r.Operations())
	for _, k := range kinds {
		require.Positive(t, r.Fired[k], "%s fired", k)
	}
	return r, c
}

func TestASoakConvictsHincrbyWhoseRepliesAreLostAndShowsHow(t *testing.T) {
	r, c := soak(t, "hincrby", "default", faults.ReplyLost)
	require.Positive(t, r.Verdicts[model.NegativePermanent].Broken)
	require.Negative(t, r.Verdicts[model.NegativePermanent].Worst)
	require.Positive(t, r.Verdicts[model.LostUnits].Broken)
	require.Equal(t, evidence.ExitBroken, evidence.SoakExit(evidence.FromSoak(c.Entry, c.Kinds, r)))

	lab, _ := minimiser()
	list, err := evidence.NewLiveSchedules(lab, c.Dir).Soak(t.Context(), r)
	require.NoError(t, err)
	cut, found := false, false
	for _, x := range list {
		if x.Property != model.LostUnits {
			continue
		}
		require.NotEmpty(t, x.Path, x.Says)
		s, err := schedule.ReadFile(filepath.Join(c.Dir, x.Path))
		require.NoError(t, err)
		require.True(t, s.Shows(model.LostUnits))
		require.NoError(t, lab.Replay(s, "miniredis"))
		cut, found = cut || x.Cut, found || !x.Cut
		if !x.Cut {
			require.LessOrEqual(t, len(s.Steps), 3, "the smallest")
		}
	}
	require.True(t, cut && found, "%+v", list)
	for i := range r.Sales {
		h, err := histories.ReadFile(filepath.Join(c.Dir, live.SaleHistory(i+1)))
		require.NoError(t, err)
		require.NotEmpty(t, h.Ops)
	}
}

func TestASoakNeverSeesOneScriptOversell(t *testing.T) {
	r, c := soak(t, "lua-hash", "off", faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost)
	for _, v := range evidence.FromSoak(c.Entry, c.Kinds, r) {
		switch v.Property {
		case model.Oversell, model.NegativeTransient, model.NegativePermanent, model.NonLinearizable, model.PhantomUnits:
			require.Equal(t, evidence.Holds, v.Verdict, "%+v", v)
		case model.LostUnits:
			require.Equal(t, evidence.Violated, v.Verdict, "%+v", v)
		}
	}
	require.Positive(t, r.Open, "who was killed is an unknown that stays")
}

// Each operation of lua-hash is one step, so a fault that is planned fires.
func TestTwoSoaksWithOneSeedDoTheSameAndAreHitByTheSame(t *testing.T) {
	type done struct {
		calls [][]faults.Call
		hit   map[string]faults.Kind // by the client's number and its count of steps
	}
	first := func() (d done) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := live.SoakConfig{Entry: entry(t, "lua-hash"), Retries: "off", Clients: 4, PerSale: 20, Duration: time.Minute,
			Kinds: []faults.Kind{faults.ReplyLost, faults.RequestLost}, FaultRate: 0.3, Stock: 20, MaxQty: 3, Seed: 11}
		c.Progress = func(r *live.SoakResult) {
			if cancel(); r.Verdicts[model.LostUnits].Sale != 1 {
				return
			}
			run := r.Verdicts[model.LostUnits].Run // a reply of a sale was lost
			d = done{run.Case.Workload.Clients, map[string]faults.Kind{}}
			for _, st := range run.Steps {
				if st.Fault != "" {
					d.hit[fmt.Sprint(st.Client, st.N)] = st.Fault
				}
			}
		}
		r, err := liveWorld(t).Soak(ctx, c)
		require.NoError(t, err)
		require.True(t, r.Stopped)
		return d
	}
	d := first()
	require.NotEmpty(t, d.hit)
	require.Equal(t, d, first())
}

package stockproof_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/subject"
	"stockproof/model"
	"stockproof/schemes"
)

// TestSubjects judges what redis-py makes of two schemes, as programs of others
// are judged, and compares with what is declared, both ways.
func TestSubjects(t *testing.T) {
	for _, c := range []struct {
		name   string
		breaks model.Property // with a declared fault
		fault  faults.Kind
	}{
		// The lease ends during the pause.
		{"redis_py_lock", model.Oversell, faults.ClientPause},
		// The unit is gone, and redis-py of this version does not ask again.
		{"redis_py_hincrby", model.LostUnits, faults.ReplyLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			world := liveWorld(t)
			declared, err := subject.ReadDeclared("examples/subjects/" + c.name + ".declared.json")
			require.NoError(t, err)
			s, err := world.OpenSubject(t.Context(), subject.Options{Command: "examples/subjects/" + c.name + ".py"})
			require.NoError(t, err)
			t.Cleanup(s.Close)
			require.Equal(t, declared.Subject, s.Hello.Name)
			e, load := s.Entry(declared.Guarantees), workload(t, "unit")
			observed, err := world.ObserveSubject(t.Context(), e, load, "default")
			require.NoError(t, err)
			require.Empty(t, observed.Differences())
			for _, kind := range []faults.Kind{faults.None, c.fault} {
				plan := observed.Plan(kind)
				runs, err := world.RunAll(t.Context(), e, load, "default", plan, "")
				require.NoError(t, err)
				cells := evidence.FromLive(&live.Group{Entry: e, Fault: kind, Workload: load, Retries: "default", Plan: plan, Runs: runs})
				requireAsDeclared(t, cells)
				if kind == faults.None {
					// A weakness that does not show is not as declared.
					claims := s.Entry(schemes.Guarantees{Weaknesses: []schemes.Weakness{{Fault: "none", Breaks: []model.Property{model.Stuck}}}})
					require.NotEmpty(t, evidence.Report{Cells: evidence.FromLive(&live.Group{Entry: claims, Fault: kind, Workload: load, Retries: "default", Plan: plan, Runs: runs})}.Surprises())
					continue
				}
				broken := map[model.Property]bool{}
				for _, f := range (evidence.Report{Cells: evidence.FromLive(&live.Group{Entry: s.Entry(subject.Undeclared()), Fault: kind, Workload: load, Retries: "default", Plan: plan, Runs: runs})}).Surprises() {
					broken[f.Property] = f.Verdict == evidence.Violated
				}
				require.True(t, broken[c.breaks], "a promise that nobody took back")
			}
		})
	}
}

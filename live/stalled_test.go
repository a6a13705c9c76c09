package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/schemes"
)

func stepsAt(request string, fault faults.Kind, ms ...int) []Step {
	var steps []Step
	for i, at := range ms {
		s := Step{Request: request, At: time.Duration(at) * time.Millisecond}
		if i == len(ms)-1 {
			s.Fault = fault
		}
		steps = append(steps, s)
	}
	return steps
}

func TestARunIsStalledWhenALeaseMayHaveEndedWithoutTheFaultsDoing(t *testing.T) {
	for _, c := range []struct {
		name   string
		scheme string
		kind   faults.Kind
		hit    []int // times of the steps of the client the fault hits, in ms
		next   []int // and of the one that comes next
		want   bool
	}{
		{"all in time", "lock", faults.ClientCrash, []int{1, 2}, []int{5, 105}, false},
		{"the next client comes late to a dead holder's lock", "lock", faults.ClientCrash, []int{1, 2}, []int{250, 300}, true},
		{"after a stop it has to come late", "lock", faults.ClientPause, []int{1, 2}, []int{400, 405}, false},
		{"a healthy client takes too long", "lock", faults.ClientPause, []int{1, 2}, []int{400, 700}, true},
		{"the client that is hit may take long", "lock", faults.ReplyLost, []int{1, 190}, []int{195, 200}, false},
		{"without a fault the lease is long", "lock", faults.None, []int{1, 900}, []int{1000, 2000}, false},
		{"without a lease nothing ends", "hincrby", faults.ClientCrash, []int{1, 2}, []int{900, 2000}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := schemes.ByName(c.scheme)
			require.NoError(t, err)
			r := Run{Case: Case{Entry: e, Placement: faults.Placement{Kind: c.kind}}}
			r.Steps = append(stepsAt("a.1", c.kind, c.hit...), stepsAt("b.1", "", c.next...)...)
			if c.kind == faults.None {
				for i := range r.Steps {
					r.Steps[i].Fault = ""
				}
			}
			require.Equal(t, c.want, r.stalled())
		})
	}
}

// A stop of more than three seconds ends in the library's read timeout.
func TestARunIsStalledWhenAStoppedClientGoesOnAfterItsLibrarysPatience(t *testing.T) {
	e, err := schemes.ByName("hincrby")
	require.NoError(t, err)
	for ms, want := range map[int]bool{2900: false, 3100: true} {
		r := Run{Case: Case{Entry: e, Placement: faults.Placement{Kind: faults.ClientPause}}, Steps: stepsAt("a.1", faults.ClientPause, 1, 2),
			marks: []mark{{resume: 1, at: time.Duration(ms+2) * time.Millisecond}}}
		require.Equal(t, want, r.stalled(), ms)
	}
}

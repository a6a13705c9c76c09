package schemes

import (
	"strings"

	"stockproof/model"
)

// Guarantees is what a scheme declares about itself. Every property is
// promised to hold under every fault, except those a Weakness names. The
// suite fails when a promise breaks and when a weakness no longer shows.
type Guarantees struct {
	Weaknesses []Weakness
}

// Weakness is a set of properties a scheme is known to break.
type Weakness struct {
	// Fault is a kind of fault, for every setting of the server it hits, or a kind
	// and one setting, as faults.Row writes it: redis-restart(rdb).
	Fault     string
	Workloads []string // empty: every workload
	Retries   string   // "off", "default", or empty: both
	Breaks    []model.Property
	// World is where it must show; in the other world it may. Empty: in both.
	// "explore" where the schedule needs more preemptions, or another stock, than
	// a live plan has; "live" where it needs time to pass while a client that is
	// merely slow holds others up, which explore rules out without a pause, or a third
	// client where explore searches two.
	World string
	Why   string // one sentence
}

func (w Weakness) underFault(row string) bool {
	kind, _, _ := strings.Cut(row, "(")
	return w.Fault == row || w.Fault == kind
}

// impossible are properties that no order of operations explains together with
// the counter at rest, so that who declares one has declared non-linearizable: more
// sold than there was, a counter that rests below zero or promises what does not
// exist.
var impossible = []model.Property{model.Oversell, model.NegativePermanent, model.PhantomUnits}

// Declared collects the properties declared broken for a cell of a world,
// "explore" or "live": those that must show there, and those that may.
func (g Guarantees) Declared(fault, workload, retries, world string) (must, may map[model.Property]bool) {
	must, may = map[model.Property]bool{}, map[model.Property]bool{}
	for _, w := range g.Weaknesses {
		if !w.underFault(fault) || (w.Retries != "" && w.Retries != retries) || !w.inWorkload(workload) {
			continue
		}
		for _, p := range w.Breaks {
			if w.World == "" || w.World == world {
				must[p] = true
			} else {
				may[p] = true
			}
		}
	}
	for _, breaks := range []map[model.Property]bool{must, may} {
		for _, p := range impossible {
			if breaks[p] {
				breaks[model.NonLinearizable] = true
			}
		}
	}
	for p := range must {
		delete(may, p)
	}
	return must, may
}

func (w Weakness) inWorkload(workload string) bool {
	if len(w.Workloads) == 0 {
		return true
	}
	for _, n := range w.Workloads {
		if n == workload {
			return true
		}
	}
	return false
}

// Package evidence turns runs and searches into verdicts a design review can
// read, and compares them with what each scheme declares.
package evidence

import (
	"cmp"
	"slices"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// Verdict of a cell.
type Verdict string

// The verdicts. Inconclusive is never a pass.
const (
	Violated     Verdict = "violated"
	Holds        Verdict = "holds"
	Inconclusive Verdict = "inconclusive"
	// NotApplicable: the property has no meaning for the scheme, such as
	// order-mismatch where there are no orders. It is not a verdict about it.
	NotApplicable Verdict = "not-applicable"
)

// Declared is what the scheme says of a cell.
type Declared string

// What a scheme may declare.
const (
	Promised Declared = "holds"
	Weak     Declared = "violated"
	// MayShow: declared broken, but the schedule that shows it needs more than
	// this world places. Either verdict is as declared.
	MayShow Declared = "may-show"
)

// Placements says how many places for a fault there were, and at how many it
// was seen to take effect.
type Placements struct {
	Enumerated int `json:"enumerated"`
	Fired      int `json:"fired"`
}

// Cell is one verdict: scheme × fault × workload × property in a world.
type Cell struct {
	Scheme string      `json:"scheme"`
	Fault  faults.Kind `json:"fault"`
	// Setting of the server that the fault hits; empty where none matters.
	Setting       faults.Setting `json:"setting,omitempty"`
	Workload      string         `json:"workload"`
	Property      model.Property `json:"property"`
	World         string         `json:"world"` // explore or live
	ClientRetries string         `json:"client_retries"`
	Verdict       Verdict        `json:"verdict"`
	Declared      Declared       `json:"declared"`
	// Reason says in words why a cell is violated or inconclusive.
	Reason     string     `json:"reason,omitempty"`
	Exhaustive bool       `json:"exhaustive"`
	Clients    Clients    `json:"clients"` // "any" for a verdict about every number
	Stock      []int64    `json:"stock"`   // units the searches or runs began with
	MaxFaults  int        `json:"max_faults"`
	Runs       int        `json:"runs,omitempty"`       // live
	Settled    int        `json:"settled"`              // live: unknown outcomes of all runs that the orders decided
	Open       int        `json:"open"`                 // live: unknown outcomes that are left
	Executions string     `json:"executions,omitempty"` // explore
	States     uint64     `json:"states,omitempty"`
	Placements Placements `json:"placements"`
	Witness    string     `json:"witness,omitempty"` // path below the output folder
	Amount     int64      `json:"amount"`            // worst seen, in the property's unit
	// ConfirmedLive says whether the witness came out the same on real servers; of
	// a live cell the run itself is the witness. nil: not replayed, or no replay
	// decided it. NotConfirmed is why it is not true, where one was tried.
	ConfirmedLive *bool  `json:"confirmed_live"`
	NotConfirmed  string `json:"not_confirmed,omitempty"`
}

// AsDeclared says whether the verdict is the declared one. Inconclusive is not.
func (c Cell) AsDeclared() bool {
	switch c.Verdict {
	case NotApplicable:
		// What is declared broken has to show; a fault that found no place, or
		// lost it, showed nothing.
		return c.Declared != Weak
	case Violated:
		return c.Declared == Weak || c.Declared == MayShow
	case Holds:
		return c.Declared == Promised || c.Declared == MayShow
	}
	return false
}

// declared looks a cell up in the scheme's guarantees.
func declared(e schemes.Entry, row, workload, retries, world string) func(model.Property) Declared {
	must, may := e.Guarantees.Declared(row, workload, retries, world)
	return func(p model.Property) Declared {
		switch {
		case must[p]:
			return Weak
		case may[p]:
			return MayShow
		}
		return Promised
	}
}

// Group is the cells of one scheme × fault × workload × retries × world.
type Group struct {
	Scheme   string
	Fault    string // with its setting, see faults.Row
	Workload string
	Retries  string
	World    string
}

// GroupOf is the group a cell belongs to.
func (c Cell) GroupOf() Group {
	world := c.World
	if c.Clients == AnyNumber {
		world += anyWorld
	}
	return Group{c.Scheme, faults.Row(c.Fault, c.Setting), c.Workload, c.ClientRetries, world}
}

// Groups lists the groups of cells, in their order.
func Groups(cells []Cell) []Group {
	var groups []Group
	seen := map[Group]bool{}
	for _, c := range cells {
		if g := c.GroupOf(); !seen[g] {
			seen[g] = true
			groups = append(groups, g)
		}
	}
	return groups
}

// Sort orders cells for reading: by scheme, then in the order of the lists of
// faults, workloads and properties.
func Sort(cells []Cell) {
	kind, load, prop := map[faults.Kind]int{}, map[string]int{}, map[model.Property]int{}
	setting := map[faults.Setting]int{}
	for i, k := range faults.Kinds() {
		kind[k.ID] = i
		for j, s := range k.ID.Settings() {
			setting[s] = j
		}
	}
	for i, w := range faults.Workloads() {
		load[w.Name] = i
	}
	for i, p := range model.Properties() {
		prop[p.ID] = i
	}
	slices.SortStableFunc(cells, func(a, b Cell) int {
		return cmp.Or(
			cmp.Compare(a.Scheme, b.Scheme), cmp.Compare(kind[a.Fault], kind[b.Fault]), cmp.Compare(a.Fault, b.Fault),
			cmp.Compare(setting[a.Setting], setting[b.Setting]),
			cmp.Compare(a.World, b.World), -cmp.Compare(a.Clients, b.Clients), cmp.Compare(load[a.Workload], load[b.Workload]),
			-cmp.Compare(a.ClientRetries, b.ClientRetries), // off before default
			cmp.Compare(prop[a.Property], prop[b.Property]))
	})
}

// worse says whether amount a is further from zero than b.
func worse(a, b int64) bool { return max(a, -a) > max(b, -b) }

func writesOrders(e schemes.Entry) bool {
	_, ok := e.Scheme.(schemes.Auditor)
	return ok
}

// HasWitness says whether explore found an execution that breaks something.
func HasWitness(cells []Cell) bool { return slices.ContainsFunc(cells, Cell.hasWitness) }

func (c Cell) hasWitness() bool {
	return c.World == "explore" && c.Verdict == Violated && c.Witness != ""
}

// Confirmed counts what became of witnesses that were replayed on real servers.
type Confirmed struct {
	Backend   string   `json:"backend"`
	Witnesses int      `json:"witnesses"`           // different executions
	AsFound   int      `json:"as_found"`            // came out the same
	Otherwise []string `json:"otherwise,omitempty"` // did not: the worlds disagree
	Open      []string `json:"open,omitempty"`      // cannot be replayed, or decided nothing, with the reason
}

package evidence

import (
	"cmp"
	"slices"

	"stockproof/faults"
	"stockproof/model"
)

// Glance is what a scheme does to one property, over all workloads, retry
// settings and worlds of a report.
type Glance struct {
	// Fault-free executions, or runs, break it.
	Alone bool
	// Faults that break it where no fault does not: kinds in the order of faults.Kinds.
	Faults []faults.Kind
	// Open says that something was not decided, so that what is not broken is not
	// known to hold.
	Open bool
	// Held says that some verdict is holds.
	Held bool
	// Worst amount, in the property's unit.
	Worst int64
}

// Broken says whether anything breaks the property.
func (g Glance) Broken() bool { return g.Alone || len(g.Faults) > 0 }

// Glances sums the bounded and live cells of a report up, by scheme and
// property. Verdicts about any number of clients decide fewer properties and
// are left out; what they find broken is broken in the bounded ones too.
func (r Report) Glances() map[string]map[model.Property]Glance {
	all := map[string]map[model.Property]Glance{}
	for _, c := range r.Cells {
		if all[c.Scheme] == nil {
			all[c.Scheme] = map[model.Property]Glance{}
		}
		if c.Clients == AnyNumber && r.bounded() {
			continue
		}
		g := all[c.Scheme][c.Property]
		switch c.Verdict {
		case Violated:
			if c.Fault == faults.None {
				g.Alone = true
			} else if !slices.Contains(g.Faults, c.Fault) {
				g.Faults = append(g.Faults, c.Fault)
			}
			if worse(c.Amount, g.Worst) {
				g.Worst = c.Amount
			}
		case Inconclusive:
			g.Open = true
		case Holds:
			g.Held = true
		}
		all[c.Scheme][c.Property] = g
	}
	order := map[faults.Kind]int{}
	for i, k := range faults.Kinds() {
		order[k.ID] = i
	}
	for _, of := range all {
		for p, g := range of {
			slices.SortStableFunc(g.Faults, func(a, b faults.Kind) int { return cmp.Compare(order[a], order[b]) })
			of[p] = g
		}
	}
	return all
}

func (r Report) bounded() bool {
	return slices.ContainsFunc(r.Cells, func(c Cell) bool { return c.Clients != AnyNumber })
}

// Schemes lists the schemes of a report in the order of reading.
func (r Report) Schemes() []string {
	var names []string
	for _, c := range r.Cells {
		if !slices.Contains(names, c.Scheme) {
			names = append(names, c.Scheme)
		}
	}
	slices.Sort(names)
	return names
}

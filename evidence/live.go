//go:build !nolive

package evidence

import (
	"fmt"

	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/servers"
	"stockproof/model"
	"stockproof/schemes"
)

// FromLive judges the runs of one group, each placement of the fault one run.
// A property is violated when any run broke it, and holds only when every run
// evaluated and kept it and every placement was seen to fire.
func FromLive(g *live.Group) []Cell {
	e, fault, setting, w, retries, enumerated, runs := g.Entry, g.Fault, g.Setting, g.Workload, g.Retries, len(g.Plan), g.Runs
	says := declared(e, faults.Row(fault, setting), w.Name, retries, "live")
	fired := 0
	settled, open := 0, 0
	for _, r := range runs {
		settled, open = settled+r.Decided, open+r.Open
		if r.Fired {
			fired++
		}
	}
	maxFaults := 1
	if fault == faults.None {
		maxFaults = 0
	}
	var cells []Cell
	for _, p := range model.Properties() {
		c := Cell{
			Scheme: e.Scheme.Name(), Fault: fault, Setting: setting, Workload: w.Name, Property: p.ID, World: "live",
			ClientRetries: retries, Declared: says(p.ID), Clients: Clients(len(w.Clients)), Stock: []int64{w.Stock},
			MaxFaults: maxFaults, Runs: len(runs), Settled: settled, Open: open, Placements: Placements{enumerated, fired},
		}
		c.judge(e, runs)
		cells = append(cells, c)
	}
	return cells
}

// judge fills verdict, amount, reason and witness from the runs.
func (c *Cell) judge(e schemes.Entry, runs []*live.Run) {
	confirmed := true
	var doubt string
	evaluated, absent := false, false
	for _, r := range runs {
		f := r.Finding(c.Property)
		evaluated = evaluated || f.Evaluated
		switch {
		case f.Broken && r.Fired:
			if c.Verdict != Violated || worse(f.Amount, c.Amount) {
				c.Verdict, c.Amount = Violated, f.Amount
				c.Reason = fmt.Sprintf("%s: %s", r.Case.Placement, f.Detail)
				c.Witness = r.Case.HistoryPath()
				c.ConfirmedLive = &confirmed
			}
		case r.Unworked != "":
			doubt = fmt.Sprintf("%s: %s", r.Case.Placement, r.Unworked)
		case !f.Evaluated && r.NoCounter && r.Fired:
			absent = true // that is what the fault does, and stuck says so
		case !f.Evaluated:
			doubt = fmt.Sprintf("%s: %s", r.Case.Placement, f.Detail)
		case !r.Fired:
			doubt = fmt.Sprintf("%s: the fault did not fire", r.Case.Placement)
		}
	}
	switch {
	case c.Verdict == Violated:
	case c.Property == model.OrderMismatch && !writesOrders(e):
		c.Verdict, c.Reason = NotApplicable, "the scheme writes no orders"
	case c.Fault != faults.None && c.Placements.Enumerated == 0:
		c.Verdict, c.Reason = NotApplicable, "the fault has no place in this scheme's steps"
	case len(runs) == 0 || c.Placements.Fired < c.Placements.Enumerated && doubt == "":
		c.Verdict, c.Reason = Inconclusive, fmt.Sprintf("%d of %d placements fired", c.Placements.Fired, c.Placements.Enumerated)
	case absent && !evaluated && doubt == "":
		c.Verdict, c.Reason = NotApplicable, "the fault leaves no counter"
	case doubt != "":
		c.Verdict, c.Reason = Inconclusive, doubt
	default:
		c.Verdict = Holds
	}
}

// AddLive says what verdicts of the live world rest on.
func (b *Bounds) AddLive(backend servers.Backend, v servers.Versions, loads []faults.Workload) {
	b.Worlds = append(b.Worlds, "live")
	b.Live = &worldBounds{MaxFaults: 1, Backend: string(backend), Versions: []string{
		"redis " + v.Redis + " (" + v.RedisFrom + ")", "postgresql " + v.Postgres + " (" + v.PostgresFrom + ")",
	}}
	for _, w := range loads {
		b.Live.Clients = max(b.Live.Clients, Clients(len(w.Clients)))
		b.Live.Stock = append(b.Live.Stock, w.Stock)
	}
	b.Assumptions = append(b.Assumptions,
		"live: clients arrive one after another; with fault none also one preemption after every step of every client but its last, and all clients behind a barrier after their first step",
		"live: one fault a run, at every step of every client of a fault-free run in turn; steps that only a contended run makes are not places",
		"live: leases scaled to 300 ms (1 s with SQL inside) and patience to 100 ms where a fault has to meet them; published leases elsewhere",
		"live: holds rests on the runs made, not on a proof",
	)
}

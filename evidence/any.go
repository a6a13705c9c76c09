package evidence

import (
	"context"
	"fmt"

	"stockproof/explore"
	"stockproof/faults"
)

// FromAny judges the groups for every number of clients: the properties of
// explore.AnyProperties. The rest is as with FromExplore; bounds.Clients is not
// used.
func FromAny(ctx context.Context, lab *explore.Lab, groups []ExploreGroup, bounds ExploreBounds, dir string, done func(ExploreGroup, []Cell)) ([]Cell, error) {
	return each(ctx, groups, bounds.Parallel, func(ctx context.Context, g ExploreGroup) ([]Cell, error) {
		results, err := g.searchAny(ctx, lab, bounds)
		if err != nil {
			return nil, fmt.Errorf("explore %s: %w", g.Name(), err)
		}
		return g.judgeAny(results, bounds, dir)
	}, done)
}

func (g ExploreGroup) searchAny(ctx context.Context, lab *explore.Lab, bounds ExploreBounds) ([]*explore.AnyResult, error) {
	var results []*explore.AnyResult
	for _, stock := range bounds.Stock {
		r, err := lab.RunAny(ctx, explore.AnyConfig{Config: g.config(stock, bounds)})
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// judgeAny makes the cells of a group. A property holds when it does for every
// number of clients and each stock; it is violated when an ordinary execution
// shows it.
func (g ExploreGroup) judgeAny(results []*explore.AnyResult, bounds ExploreBounds, dir string) ([]Cell, error) {
	base := g.cell(bounds)
	base.Clients = AnyNumber
	for _, r := range results {
		base.Exhaustive = base.Exhaustive && r.Finite
		base.States += r.States
		base.Placements.Enumerated += r.PlacementsEnumerated
		base.Placements.Fired += r.PlacementsFired
	}
	says := declared(g.Entry, g.Row(), g.Workload.Name, g.Retries, "explore")
	var cells []Cell
	for _, p := range explore.AnyProperties() {
		c := base
		c.Property, c.Declared = p, says(p)
		if err := c.judgeAny(g, results, bounds, dir); err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, nil
}

func (c *Cell) judgeAny(g ExploreGroup, results []*explore.AnyResult, bounds ExploreBounds, dir string) error {
	var shown *explore.AnyVerdict
	doubt := ""
	for i, r := range results {
		v := r.Verdicts[c.Property]
		switch {
		case v.Status == explore.Violated && (shown == nil || v.Clients < shown.Clients):
			shown = &v
			c.Amount = v.Amount
			c.Reason = fmt.Sprintf("stock %d, %d clients: %s", bounds.Stock[i], v.Clients, v.Detail)
		case v.Status == explore.Inconclusive:
			doubt = v.Detail
		}
	}
	switch {
	case g.Fault != faults.None && c.Placements.Enumerated == 0 && c.Exhaustive:
		c.Verdict, c.Amount, c.Reason = NotApplicable, 0, "the fault has no place in this scheme's steps"
	case g.Fault != faults.None && c.Placements.Enumerated == 0:
		c.Verdict, c.Amount, c.Reason = Inconclusive, 0, "the search was cut short before the fault had a place: "+doubt
	case shown != nil:
		c.Verdict = Violated
		name := fmt.Sprintf("%s.any.%s", g.Name(), c.Property)
		if c.Witness = witnessPath(name); dir == "" {
			return nil
		}
		_, err := WriteWitness(dir, name, shown.Witness)
		return err
	case doubt != "" || len(results) == 0:
		c.Verdict, c.Reason = Inconclusive, doubt
	case c.Placements.Fired < c.Placements.Enumerated:
		c.Verdict = Inconclusive
		c.Reason = fmt.Sprintf("%d of %d placements fired", c.Placements.Fired, c.Placements.Enumerated)
	default:
		c.Verdict = Holds
	}
	return nil
}

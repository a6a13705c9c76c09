package evidence

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
)

// Part is a part of one search: the executions whose faults are among these. What
// at most n faults can do is what any n kinds of fault can do, so the parts of n
// kinds each are together the search.
type Part struct {
	Rows []PartRow // empty: no fault
}

// PartRow is a kind of fault under one setting.
type PartRow struct {
	Kind    faults.Kind
	Setting faults.Setting
}

// Parts divides a search by its faults. The settings are those of cfg or, where it
// names none, all, of a failover the asynchronous one, as in the search.
func Parts(cfg explore.Config) (parts []Part) {
	if cfg.MaxFaults == 0 || len(cfg.Faults) == 0 {
		return []Part{{}}
	}
	var rows []PartRow
	for _, kind := range cfg.Faults {
		for _, s := range SettingsFor(cfg.Entry, kind) {
			named := s == faults.NoSetting || slices.Contains(cfg.Settings, s)
			if len(cfg.Settings) == 0 {
				named = kind != faults.RedisFailover || s == faults.Async
			}
			if named {
				rows = append(rows, PartRow{kind, s})
			}
		}
	}
	n := min(cfg.MaxFaults, len(rows))
	var choose func(from int, chosen []PartRow)
	choose = func(from int, chosen []PartRow) {
		if len(chosen) == n {
			parts = append(parts, Part{slices.Clone(chosen)})
			return
		}
		for i := from; i < len(rows); i++ {
			choose(i+1, append(chosen, rows[i]))
		}
	}
	choose(0, nil)
	return parts
}

// Name is the faults of a part, as its cells have them.
func (p Part) Name() string {
	var names []string
	for _, r := range p.Rows {
		names = append(names, faults.Row(r.Kind, r.Setting))
	}
	if len(names) == 0 {
		return string(faults.None)
	}
	return strings.Join(names, "+")
}

func (p Part) config(cfg explore.Config) explore.Config {
	cfg.Faults, cfg.Settings = nil, nil
	for _, r := range p.Rows {
		if !slices.Contains(cfg.Faults, r.Kind) {
			cfg.Faults = append(cfg.Faults, r.Kind)
		}
		if r.Setting != faults.NoSetting && !slices.Contains(cfg.Settings, r.Setting) {
			cfg.Settings = append(cfg.Settings, r.Setting)
		}
	}
	if len(p.Rows) == 0 {
		cfg.MaxFaults = 0
	}
	return cfg
}

// group is the part as a row of the matrix.
func (p Part) group(cfg explore.Config) ExploreGroup {
	g := ExploreGroup{Entry: cfg.Entry, Fault: faults.Kind(p.Name()), Workload: cfg.Workload, Retries: cfg.Retries}
	if len(p.Rows) == 1 {
		g.Fault, g.Setting = p.Rows[0].Kind, p.Rows[0].Setting
	}
	return g
}

// FromParts searches parts and judges each, as FromExplore judges groups. Of several
// kinds of fault in one execution a scheme declares nothing: what one of them is
// declared to break has to show, the rest may.
func FromParts(ctx context.Context, lab *explore.Lab, cfg explore.Config, parts []Part, dir string, done func(Part)) (cells []Cell, err error) {
	bounds := ExploreBounds{Clients: cfg.Clients, MaxFaults: cfg.MaxFaults, Stock: []int64{cfg.Stock}, Engine: cfg.Engine, MemoryLimit: cfg.MemoryLimit}
	for _, p := range parts {
		g := p.group(cfg)
		r, err := lab.Run(ctx, p.config(cfg))
		if err != nil {
			return cells, fmt.Errorf("explore %s: %w", g.Name(), err)
		}
		mine, err := g.judge([]*explore.Result{r}, bounds, dir)
		if err != nil {
			return cells, err
		}
		if len(p.Rows) > 1 || cfg.MaxFaults > 1 {
			p.declare(mine, cfg)
		}
		cells = append(cells, mine...)
		if done != nil {
			done(p)
		}
	}
	return cells, nil
}

func (p Part) declare(cells []Cell, cfg explore.Config) {
	weak := map[model.Property]bool{}
	for _, r := range p.Rows {
		says := declared(cfg.Entry, faults.Row(r.Kind, r.Setting), cfg.Workload.Name, cfg.Retries, "explore")
		for _, c := range cells {
			weak[c.Property] = weak[c.Property] || says(c.Property) == Weak
		}
	}
	for i, c := range cells {
		cells[i].Declared = MayShow
		if weak[c.Property] {
			cells[i].Declared = Weak
		}
	}
}

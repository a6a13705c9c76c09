package evidence

import (
	"context"
	"fmt"
	"math/big"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// ExploreBounds are the bounds of a matrix in the explore world.
type ExploreBounds struct {
	Clients     int     // 0: the workload's
	MaxFaults   int     // in one execution; 0 for the fault none
	Stock       []int64 // each is searched
	Engine      string  // miniredis or redis
	MemoryLimit int64   // bytes a search may use
	Parallel    int     // searches at a time
}

// DefaultExploreBounds are those of verify and of the test suite.
func DefaultExploreBounds() ExploreBounds {
	return ExploreBounds{MaxFaults: 1, Stock: []int64{1, 2}, Engine: "miniredis", Parallel: 2}
}

// ExploreGroup is a scheme × fault × workload × retries to search.
type ExploreGroup struct {
	Entry    schemes.Entry
	Fault    faults.Kind
	Setting  faults.Setting
	Workload faults.Workload
	Retries  string
}

// ExploreGroups lists the groups of a matrix: each scheme, each fault under each
// setting that matters to it and that the scheme can run with.
func ExploreGroups(entries []schemes.Entry, kinds []faults.Kind, loads []faults.Workload, retries []string) (groups []ExploreGroup) {
	for _, e := range entries {
		for _, kind := range kinds {
			for _, setting := range SettingsFor(e, kind) {
				for _, load := range loads {
					for _, r := range RetriesFor(kind, retries) {
						groups = append(groups, ExploreGroup{e, kind, setting, load, r})
					}
				}
			}
		}
	}
	return groups
}

// RetriesFor keeps of some retry settings those with which a kind is judged: all,
// or the first where they make no difference.
func RetriesFor(kind faults.Kind, retries []string) []string {
	if len(faults.RetriesFor(kind)) == 1 {
		return retries[:min(1, len(retries))]
	}
	return retries
}

// SettingsFor lists the settings under which a kind is explored with a scheme: one
// that does not wait for replicas has no verdict about waiting, and one that uses
// MULTI none about min-replicas-to-write.
func SettingsFor(e schemes.Entry, kind faults.Kind) []faults.Setting {
	return slices.DeleteFunc(kind.Settings(), func(s faults.Setting) bool {
		return s == faults.Wait && !e.Waits || s == faults.MinReplicas && e.Transacts
	})
}

// Row is the fault with its setting.
func (g ExploreGroup) Row() string { return faults.Row(g.Fault, g.Setting) }

// Name identifies the group in file names.
func (g ExploreGroup) Name() string {
	fault := string(g.Fault)
	if g.Setting != faults.NoSetting {
		fault += "-" + string(g.Setting)
	}
	return fmt.Sprintf("%s.%s.%s.retries-%s", g.Entry.Scheme.Name(), fault, g.Workload.Name, g.Retries)
}

// ExploreKinds lists the faults the explore world places.
func ExploreKinds() []faults.Kind {
	var kinds []faults.Kind
	for _, k := range faults.Kinds() {
		if k.Explore {
			kinds = append(kinds, k.ID)
		}
	}
	return kinds
}

// FromExplore searches the groups and judges them. done is called after each
// group, with its cells. Witnesses are written below dir; an empty dir writes
// none. An error comes with the cells judged until then.
func FromExplore(ctx context.Context, lab *explore.Lab, groups []ExploreGroup, bounds ExploreBounds, dir string, done func(ExploreGroup, []Cell)) ([]Cell, error) {
	return each(ctx, groups, bounds.Parallel, func(ctx context.Context, g ExploreGroup) ([]Cell, error) {
		results, err := g.search(ctx, lab, bounds)
		if err != nil {
			return nil, fmt.Errorf("explore %s: %w", g.Name(), err)
		}
		return g.judge(results, bounds, dir)
	}, done)
}

// each judges groups side by side and keeps their order.
func each(ctx context.Context, groups []ExploreGroup, parallel int, judge func(context.Context, ExploreGroup) ([]Cell, error), done func(ExploreGroup, []Cell)) ([]Cell, error) {
	cells := make([][]Cell, len(groups))
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(max(1, parallel))
	for i, g := range groups {
		running.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			mine, err := judge(ctx, g)
			if err != nil {
				return err
			}
			cells[i] = mine
			if done != nil {
				done(g, mine)
			}
			return nil
		})
	}
	err := running.Wait()
	var all []Cell
	for _, c := range cells {
		all = append(all, c...)
	}
	return all, err
}

// clients are those of a group whose number is left open: the workload's, or two
// of them where the fault itself has so many stages that three would take most of
// the time of the matrix. Those are the first, and the last whose program is
// another one; store-loses, which a restart without the tail and a failover refine,
// is searched with all.
func (g ExploreGroup) clients() [][]faults.Call {
	all := g.Workload.Clients
	if !twoClients(g.Fault, g.Setting) || len(all) < 3 {
		return all
	}
	other := 1
	for i := range all {
		if !slices.Equal(all[i], all[0]) {
			other = i
		}
	}
	return [][]faults.Call{all[0], all[other]}
}

// twoClients says whether a fault is searched with two clients unless a number is
// asked for.
func twoClients(kind faults.Kind, setting faults.Setting) bool {
	return kind == faults.RedisFailover || kind == faults.RedisFreeze || setting == faults.AOFEverySec
}

// config is the search of a group with a stock.
func (g ExploreGroup) config(stock int64, bounds ExploreBounds) explore.Config {
	cfg := explore.Config{
		Entry: g.Entry, Workload: g.Workload, Clients: bounds.Clients, Stock: stock, Retries: g.Retries,
		Engine: bounds.Engine, MemoryLimit: bounds.MemoryLimit,
	}
	if bounds.Clients == 0 {
		cfg.Workload.Clients = g.clients()
	}
	if g.Fault != faults.None {
		cfg.Faults, cfg.MaxFaults = []faults.Kind{g.Fault}, bounds.MaxFaults
		cfg.Settings = []faults.Setting{g.Setting}
	}
	return cfg
}

// cell is what the cells of a group have in common.
func (g ExploreGroup) cell(bounds ExploreBounds) Cell {
	c := Cell{
		Scheme: g.Entry.Scheme.Name(), Fault: g.Fault, Setting: g.Setting, Workload: g.Workload.Name, World: "explore",
		ClientRetries: g.Retries, Exhaustive: true, Stock: bounds.Stock, MaxFaults: bounds.MaxFaults,
	}
	if g.Fault == faults.None {
		c.MaxFaults = 0
	}
	return c
}

// search makes one search for each stock.
func (g ExploreGroup) search(ctx context.Context, lab *explore.Lab, bounds ExploreBounds) ([]*explore.Result, error) {
	var results []*explore.Result
	for _, stock := range bounds.Stock {
		r, err := lab.Run(ctx, g.config(stock, bounds))
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}

// judge makes the cells of a group: a property is violated when a search found
// a witness, and holds only when every search covered everything and evaluated
// it, and the fault was seen to fire.
func (g ExploreGroup) judge(results []*explore.Result, bounds ExploreBounds, dir string) ([]Cell, error) {
	clients := bounds.Clients
	if clients == 0 {
		clients = len(g.clients())
	}
	base := g.cell(bounds)
	base.Clients = Clients(clients)
	executions := new(big.Int)
	for _, r := range results {
		base.Exhaustive = base.Exhaustive && r.Exhaustive
		base.States += r.States
		base.Placements.Enumerated += r.PlacementsEnumerated
		base.Placements.Fired += r.PlacementsFired
		if r.Executions != nil {
			executions.Add(executions, r.Executions)
		}
	}
	base.Executions = Count(executions)
	says := declared(g.Entry, g.Row(), g.Workload.Name, g.Retries, "explore")
	var cells []Cell
	for _, p := range model.Properties() {
		c := base
		c.Property, c.Declared = p.ID, says(p.ID)
		if err := c.judgeSearches(g, results, bounds, dir); err != nil {
			return nil, err
		}
		cells = append(cells, c)
	}
	return cells, nil
}

func (c *Cell) judgeSearches(g ExploreGroup, results []*explore.Result, bounds ExploreBounds, dir string) error {
	var witness *explore.Witness
	var doubt string
	for i, r := range results {
		v := r.Verdicts[c.Property]
		switch v.Status {
		case explore.Violated:
			if c.Verdict != Violated || worse(v.Amount, c.Amount) {
				c.Verdict, c.Amount = Violated, v.Amount
				c.Reason = fmt.Sprintf("stock %d: %s", bounds.Stock[i], v.Detail)
			}
			if witness == nil || len(v.Witness.Steps) < len(witness.Steps) {
				witness = v.Witness
			}
		case explore.Holds:
		default:
			doubt = v.Detail
			if doubt == "" {
				doubt = r.Why
			}
		}
	}
	switch {
	case g.Fault != faults.None && c.Placements.Enumerated == 0 && len(results) > 0 && c.Exhaustive:
		// What the search saw without the fault stands in the row of none. A
		// search that was cut short may not have come to the fault's places yet.
		c.Verdict, c.Amount, c.Reason = NotApplicable, 0, "the fault has no place in this scheme's steps"
	case g.Fault != faults.None && c.Placements.Enumerated == 0:
		c.Verdict, c.Amount = Inconclusive, 0
		if c.Reason = doubt; doubt == "" {
			c.Reason = "the search was cut short before the fault had a place"
		}
	case c.Verdict == Violated:
		name := fmt.Sprintf("%s.%s", g.Name(), c.Property)
		if c.Witness = witnessPath(name); dir == "" {
			return nil
		}
		_, err := WriteWitness(dir, name, witness)
		return err
	case c.Property == model.OrderMismatch && !writesOrders(g.Entry):
		c.Verdict, c.Reason = NotApplicable, "the scheme writes no orders"
	case len(results) == 0 || doubt != "":
		c.Verdict, c.Reason = Inconclusive, doubt
	case c.Placements.Fired < c.Placements.Enumerated:
		c.Verdict = Inconclusive
		c.Reason = fmt.Sprintf("%d of %d placements fired", c.Placements.Fired, c.Placements.Enumerated)
	default:
		c.Verdict = Holds
	}
	return nil
}

// witnessPath is the path of a witness below the output folder.
func witnessPath(name string) string { return filepath.Join("witnesses", name+".schedule") }

// WriteWitness keeps a witness as a schedule below dir, to be read and to be
// replayed. It answers the path below dir.
func WriteWitness(dir, name string, w *explore.Witness) (string, error) {
	path := filepath.Join(dir, witnessPath(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return witnessPath(name), os.WriteFile(path, []byte(w.Schedule().String()), 0o644)
}

// Count writes a number of executions: exactly up to six digits, then as in
// 7.0e10, or 2.5e06.
func Count(n *big.Int) string {
	if n.CmpAbs(big.NewInt(1_000_000)) < 0 {
		return n.String()
	}
	return strings.Replace(new(big.Float).SetInt(n).Text('e', 1), "e+", "e", 1)
}

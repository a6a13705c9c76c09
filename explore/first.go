package explore

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"stockproof/model"
)

// First is an execution that breaks a property, found early: a witness, though
// perhaps not a shortest one and perhaps of fewer clients than were asked for.
// It was run again through the scheme's code, all clients together.
type First struct {
	Property model.Property
	Witness  *Witness
	Clients  int
	States   uint64        // met in that search until then
	After    time.Duration // since the call that found it, until it was run again
}

// Looked-at states of a guided search: firstStates before other configurations
// have had as many, then moreStates times as many. FirstWitnesses ends after
// lastStates; the search of everything comes to the rest.
const (
	firstStates = 100
	moreStates  = 8
	lastStates  = firstStates * moreStates * moreStates
)

// FirstWitness searches for one execution that breaks a property, smallest
// configuration first: each with one client, then each with two, and so on up
// to the clients each has. It is the same in each run. Where it finds none, the
// answer is nil, and the result is that of a search of everything in the last
// configuration. Errors are those of Run.
func (l *Lab) FirstWitness(ctx context.Context, property model.Property, cfgs ...Config) (first *First, r *Result, err error) {
	wanted := map[model.Property]bool{property: true}
	if err := l.hunt(ctx, wanted, math.MaxUint32, func(f First) { first = &f }, cfgs); err != nil || first != nil {
		return first, nil, err
	}
	r, err = l.Run(ctx, cfgs[len(cfgs)-1])
	return nil, r, err
}

// FirstWitnesses looks for an execution that breaks each of some properties,
// as FirstWitness does, for a little while: what it does not find may be broken
// all the same. found is called with each as it is found. Errors are those of
// Run.
func (l *Lab) FirstWitnesses(ctx context.Context, properties []model.Property, found func(First), cfg Config) error {
	wanted := map[model.Property]bool{}
	for _, p := range properties {
		wanted[p] = true
	}
	return l.hunt(ctx, wanted, lastStates, found, []Config{cfg})
}

// hunt is FirstWitness for several properties; no search meets more than most
// states.
func (l *Lab) hunt(ctx context.Context, wanted map[model.Property]bool, most uint64, found func(First), cfgs []Config) error {
	began := time.Now()
	for p := range wanted {
		if _, known := p.Info(); !known {
			return fmt.Errorf("%w: no property %q", ErrConfig, p)
		}
	}
	sizes, err := bySize(cfgs)
	if err != nil {
		return err
	}
	// A small configuration without a witness may be larger than a large one
	// with it is until there: none gets long before all have had a little.
	for states := uint64(firstStates); len(sizes) > 0 && states <= most; states *= moreStates {
		var left []Config
		for _, cfg := range sizes {
			more, why, err := l.seek(ctx, cfg, states, wanted, func(f First) {
				f.After = time.Since(began)
				found(f)
			})
			if err != nil {
				return fmt.Errorf("explore %s: %w", cfg.Entry.Scheme.Name(), err)
			}
			if why != "" {
				return nil
			}
			if more {
				left = append(left, cfg)
			}
		}
		sizes = left
	}
	return nil
}

// bySize lists configurations with one client, then with two, and so on.
func bySize(cfgs []Config) ([]Config, error) {
	if len(cfgs) == 0 {
		return nil, fmt.Errorf("%w: no configuration", ErrConfig)
	}
	cfgs = slices.Clone(cfgs)
	most := 0
	for i := range cfgs {
		if err := cfgs[i].complete(); err != nil {
			return nil, err
		}
		most = max(most, cfgs[i].Clients)
	}
	var sizes []Config
	for clients := 1; clients <= most; clients++ {
		for _, cfg := range cfgs {
			if clients <= cfg.Clients {
				cfg.Clients = clients
				sizes = append(sizes, cfg)
			}
		}
	}
	return sizes, nil
}

// seek looks at that many states of one configuration, takes the properties it
// finds broken off wanted, and runs each execution again before it is told.
// more says that there are more states; why, what stopped the search.
func (l *Lab) seek(ctx context.Context, cfg Config, states uint64, wanted map[model.Property]bool, found func(First)) (more bool, why string, err error) {
	symmetry := !cfg.NoSymmetry && symmetric(cfg)
	more, why, err = l.seekWith(ctx, cfg, symmetry, states, wanted, found)
	if errors.Is(err, errForeignName) && symmetry {
		more, why, err = l.seekWith(ctx, cfg, false, states, wanted, found)
	}
	return more, why, err
}

func (l *Lab) seekWith(ctx context.Context, cfg Config, symmetry bool, states uint64, wanted map[model.Property]bool, found func(First)) (more bool, why string, err error) {
	defer rescue(&err)
	s, err := l.prepare(cfg, symmetry)
	if err != nil {
		return false, "", err
	}
	s.guided = true
	g := &guided{searcher: s}
	var wrong error
	more, why = g.run(ctx, states, func(p model.Property, at uint32) bool {
		if !wanted[p] {
			return false
		}
		w := g.witness(at)
		if wrong = l.again(cfg, w); wrong != nil {
			return true
		}
		delete(wanted, p)
		found(First{Property: p, Witness: w, Clients: cfg.Clients, States: uint64(s.seen.n)})
		return len(wanted) == 0
	})
	return more, why, wrong
}

// again runs a witness through the scheme's code without anything the search
// remembers. Code that does otherwise is not deterministic, or the search is
// broken.
func (l *Lab) again(cfg Config, w *Witness) error {
	name := cfg.Engine
	if name == "" {
		name = "miniredis"
	}
	engine, err := l.engine(name)
	if err != nil {
		return err
	}
	differs := Replay(cfg.Entry, w.Schedule(), engine)
	if differs == nil {
		return nil
	}
	if err := l.confirm(cfg.Entry.Scheme.Name()); err != nil {
		return err
	}
	return fmt.Errorf("a first witness is not what its schedule says when it is run again: %w", differs)
}

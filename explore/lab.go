package explore

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/schemes"
)

// Lab keeps what searches have in common, so that a whole matrix asks each
// scheme and each engine a question only once. It is safe for use by several
// goroutines: cells of a matrix may run side by side.
type Lab struct {
	mu       sync.Mutex
	engines  map[string]redisstore.Engine
	worlds   map[worldKey]*world
	automata map[automatonKey]*automatonEntry
	known    []*automaton // all of them, those that cannot be shared too
	park     *parking
	runs     atomic.Int64
	searches atomic.Int32 // going on
}

type worldKey struct {
	scheme   schemes.Scheme
	engine   string
	symmetry bool
	named    bool
}

type automatonKey struct {
	scheme  schemes.Scheme
	role    role
	times   schemes.Config
	retries int
}

type automatonEntry struct {
	once sync.Once
	a    *automaton
	err  error
}

// NewLab makes an empty laboratory. Close it after use.
func NewLab() *Lab {
	return &Lab{engines: map[string]redisstore.Engine{}, worlds: map[worldKey]*world{}, automata: map[automatonKey]*automatonEntry{},
		park: newParking(maxParked)}
}

// Close ends the engines and what still runs of the schemes' code.
func (l *Lab) Close() error {
	l.park.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for _, e := range l.engines {
		errs = append(errs, e.Close())
	}
	l.engines = map[string]redisstore.Engine{}
	return errors.Join(errs...)
}

// engine opens an engine the first time it is asked for.
func (l *Lab) engine(name string) (redisstore.Engine, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if e := l.engines[name]; e != nil {
		return e, nil
	}
	e, err := openEngine(name)
	if err != nil {
		return nil, err
	}
	l.engines[name] = e
	return e, nil
}

func (l *Lab) world(cfg Config, symmetry bool) (*world, error) {
	name := cfg.Engine
	if name == "" {
		name = "miniredis"
	}
	engine, err := l.engine(name)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	shared := reflect.ValueOf(cfg.Entry.Scheme).Comparable()
	key := worldKey{engine: name, symmetry: symmetry, named: cfg.NoSymmetry}
	if shared {
		key.scheme = cfg.Entry.Scheme
		if w := l.worlds[key]; w != nil {
			return w, nil
		}
	}
	w := l.newWorld(cfg, engine, symmetry)
	if shared {
		l.worlds[key] = w
	}
	return w, nil
}

func (l *Lab) newWorld(cfg Config, engine redisstore.Engine, symmetry bool) *world {
	w := newWorld(engine, cfg.Entry, symmetry, cfg.NoSymmetry)
	w.mutant = cfg.mutant
	w.solo = func(act action, qty int64, client string) (*automaton, error) {
		return l.automaton(cfg.Entry, role{act, qty, client, client + ".1", 0}, DefaultTimes, -1)
	}
	return w
}

func (l *Lab) automaton(entry schemes.Entry, r role, times schemes.Config, retries int) (*automaton, error) {
	if !reflect.ValueOf(entry.Scheme).Comparable() {
		return l.newAutomaton(entry, r, times, retries)
	}
	key := automatonKey{entry.Scheme, r, times, retries}
	l.mu.Lock()
	e := l.automata[key]
	if e == nil {
		e = &automatonEntry{}
		l.automata[key] = e
	}
	l.mu.Unlock()
	e.once.Do(func() { e.a, e.err = l.newAutomaton(entry, r, times, retries) })
	return e.a, e.err
}

func (l *Lab) newAutomaton(entry schemes.Entry, r role, times schemes.Config, retries int) (*automaton, error) {
	a, err := newAutomaton(entry, r, times, retries, &l.runs, l.park)
	if err == nil {
		l.mu.Lock()
		l.known = append(l.known, a)
		l.mu.Unlock()
	}
	return a, err
}

// confirm makes sure that the scheme's code, run again, is parked alike
// wherever a search has gone on from.
func (l *Lab) confirm(scheme string) error {
	l.mu.Lock()
	known := slices.Clone(l.known)
	l.mu.Unlock()
	defer l.searches.Add(-1)
	helped := int(l.searches.Add(1)) < runtime.GOMAXPROCS(0)
	for _, a := range known {
		if a.entry.Scheme.Name() == scheme {
			if err := a.confirm(helped); err != nil {
				return err
			}
		}
	}
	return nil
}

// Run searches one configuration. It answers an error for a configuration that
// makes no sense, a scheme that cannot be explored (ErrScheme,
// *NonDeterminismError) and an engine that fails; running out of time or
// memory is a Result with inconclusive verdicts.
func (l *Lab) Run(ctx context.Context, cfg Config) (*Result, error) {
	return l.with(cfg, func(cfg Config, symmetry bool) (*Result, error) { return l.search(ctx, cfg, symmetry) })
}

// with searches with symmetry where that is possible and confirms what the
// search went by.
func (l *Lab) with(cfg Config, search func(Config, bool) (*Result, error)) (*Result, error) {
	began := time.Now()
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	symmetry := !cfg.NoSymmetry && symmetric(cfg)
	r, err := search(cfg, symmetry)
	if errors.Is(err, errForeignName) && symmetry {
		r, err = search(cfg, false)
	}
	if err == nil {
		err = l.confirm(cfg.Entry.Scheme.Name())
	}
	if err != nil {
		return nil, fmt.Errorf("explore %s: %w", cfg.Entry.Scheme.Name(), err)
	}
	if r != nil {
		r.Elapsed = time.Since(began)
	}
	return r, nil
}

// symmetric says whether clients may be renamed at all. A request submitted
// again ties two clients together, a database knows clients by session as well
// as by name, and who does a background role is shown the names of others. A
// scheme may go by names too.
func symmetric(cfg Config) bool {
	return resubmissions(cfg) == 0 && !cfg.Entry.Stores.SQL && !cfg.Entry.ByName && !schemes.Works(cfg.Entry.Scheme)
}

// cast prepares the programs and the clients of a search.
func (l *Lab) cast(cfg Config, symmetry bool) (programs []program, clients []uint8, err error) {
	company := cfg.company()
	for i, calls := range company {
		if symmetry {
			known := -1
			for who := range programs {
				if reflect.DeepEqual(programs[who].calls, calls) {
					known = who
				}
			}
			if known >= 0 {
				clients = append(clients, uint8(known))
				continue
			}
		}
		name := self
		if !symmetry {
			name = clientPrefix + faults.ClientName(i)
		}
		p := program{calls: calls, client: name, index: i}
		for op, call := range calls {
			p.requests = append(p.requests, fmt.Sprintf("%s.%d", name, op+1))
			r := role{action(call.Op), call.Qty, self, ownRequest, 0}
			if cfg.NoSymmetry {
				r.client, r.request = name, p.requests[op]
			}
			a, err := l.automaton(cfg.Entry, r, cfg.Times, cfg.maxRetries())
			if err != nil {
				return nil, nil, err
			}
			p.roles = append(p.roles, a)
		}
		clients = append(clients, uint8(len(programs)))
		programs = append(programs, p)
	}
	for n := range extras(cfg) {
		list, err := l.extraPrograms(cfg, symmetry, n, len(company)+n, programs)
		if err != nil {
			return nil, nil, err
		}
		clients = append(clients, uint8(len(programs)))
		programs = append(programs, list...)
	}
	if len(programs) > 255 {
		return nil, nil, fmt.Errorf("%w: %d programs, the most is 255", ErrConfig, len(programs))
	}
	return programs, clients, nil
}

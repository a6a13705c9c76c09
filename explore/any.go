package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stockproof/explore/counters"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// AnyConfig is a search that covers every number of clients at once. Buyers
// come in any number, of every program of the workload that only deducts;
// clients that restock come as often as the workload has them, since each adds
// to what the store has to hold. Config.Clients is not used.
type AnyConfig struct {
	Config
	// Unbounded lets the faults happen any number of times; MaxFaults is then
	// not used.
	Unbounded bool
	// MostStates bounds each search of the counter system; 0 means 250,000.
	MostStates int
	// MostClients bounds the searches that confirm a violation with a number of
	// clients; 0 means 3.
	MostClients int
}

// AnyProperties are the laws that can be decided for any number of clients:
// those of safety that need no order of operations in time.
func AnyProperties() []model.Property {
	return []model.Property{model.Oversell, model.NegativeTransient, model.NegativePermanent, model.PhantomUnits, model.DoubleDeduct}
}

// NotCounted says why a kind of fault is not placed among any number of clients;
// it is empty for one that is.
func NotCounted(kind faults.Kind) string {
	switch kind {
	case faults.RedisFreeze:
		return "any number of commands would be in a server's buffers"
	case faults.RedisFailover:
		return "who is named in the replica as well as in the primary is not kept"
	case faults.PostgresRestart:
		return "the connections of any number of clients would break at once"
	case faults.StockReloaded, faults.ReconcileOverlap:
		return "a job is no buyer, and its steps are not counted"
	}
	return ""
}

// AnyVerdict on one property. Holds is for every number of clients. Violated is
// an ordinary execution with a number of clients.
type AnyVerdict struct {
	Verdict
	// Clients is the smallest number that shows a violation, 0 unless violated.
	Clients int
	// Smallest says that every smaller number was covered and shows none.
	Smallest bool
}

// AnyResult of a search with any number of clients.
type AnyResult struct {
	Verdicts map[model.Property]AnyVerdict
	// Finite says that the search of the counter system came to its end; Why
	// says what kept it from that.
	Finite bool
	Why    string
	// Controls are the states of the finite part, States those with counts.
	Controls, States, Moves               uint64
	Locals                                int
	Cap                                   uint8 // clients were counted up to it
	PlacementsEnumerated, PlacementsFired int   // see Result
	Monotone                              bool  // no move asked that nobody be in some local state
	Bounded                               int   // the largest number of clients also covered one by one
	Elapsed                               time.Duration
}

const (
	anyStates  = 250_000
	anyClients = 3
	anyCaps    = 3 // the largest cap tried
	// A violation shows in a small search; what is larger is left.
	convictBytes = 96 << 20
)

// RunAny decides AnyProperties for every number of clients. Errors are those of
// Run; what cannot be decided is an inconclusive verdict with its reason.
func (l *Lab) RunAny(ctx context.Context, cfg AnyConfig) (*AnyResult, error) {
	began := time.Now()
	cfg.Clients, cfg.NoSymmetry = len(cfg.Workload.Clients), false
	if cfg.Unbounded {
		cfg.MaxFaults = 1 // the kit has to place them
	}
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	for _, kind := range cfg.Faults {
		if why := NotCounted(kind); why != "" {
			return nil, fmt.Errorf("%w: %s with any number of clients: %s", ErrConfig, kind, why)
		}
	}
	if cfg.MostStates == 0 {
		cfg.MostStates = anyStates
	}
	if cfg.MostClients == 0 {
		cfg.MostClients = anyClients
	}
	r := &AnyResult{Verdicts: map[model.Property]AnyVerdict{}}
	open := slices.Clone(AnyProperties())
	x := newAlike()
	for most := uint8(0); most <= anyCaps && len(open) > 0; most++ {
		before := *r
		found, err := l.countClients(ctx, cfg, most, x, r)
		if err != nil {
			return nil, fmt.Errorf("explore %s: %w", cfg.Entry.Scheme.Name(), err)
		}
		if before.Finite && !r.Finite {
			*r = before // what was covered by counting less far stays covered
			break
		}
		for _, p := range open {
			if r.Finite && !found[p] {
				r.Verdicts[p] = AnyVerdict{Verdict: Verdict{Status: Holds, Detail: "with any number of clients"}}
			}
		}
		open = slices.DeleteFunc(open, func(p model.Property) bool { return r.Verdicts[p].Status != "" })
		if most == 0 {
			if open, err = l.convict(ctx, cfg, open, r); err != nil {
				return nil, err
			}
		}
		if !r.Finite && most > 0 {
			break // counting further takes more states still
		}
	}
	if err := l.confirm(cfg.Entry.Scheme.Name()); err != nil {
		return nil, fmt.Errorf("explore %s: %w", cfg.Entry.Scheme.Name(), err)
	}
	for _, p := range open {
		why := r.Why
		if r.Finite {
			why = fmt.Sprintf("not excluded when clients are counted up to %d, and no execution with up to %d clients shows it", r.Cap, r.Bounded)
		}
		r.Verdicts[p] = AnyVerdict{Verdict: Verdict{Status: Inconclusive, Detail: why}}
	}
	r.Elapsed = time.Since(began)
	return r, nil
}

// countClients searches the counter system once.
func (l *Lab) countClients(ctx context.Context, cfg AnyConfig, most uint8, x *alike, r *AnyResult) (found map[model.Property]bool, err error) {
	defer rescue(&err)
	r.Finite, r.Cap = false, most
	switch {
	case cfg.Entry.ByName:
		r.Why = "what a client does depends on its name: clients cannot be told apart only by their counts"
		return nil, nil
	case schemes.Works(cfg.Entry.Scheme):
		r.Why = "a background role is shown the names of clients: they are not counted"
		return nil, nil
	}
	twice := slices.Contains(cfg.Faults, faults.DuplicateRequest)
	var s *anySystem
	var st counters.Stats
	for same := false; !same; {
		var start counters.Start
		if s, start, err = l.anySystem(cfg, 0, x); err != nil {
			return nil, err
		}
		st, err = s.search(ctx, start, most, cfg.MostStates)
		if why := notCounted(err); why != "" {
			r.Why = why
			return nil, nil
		}
		if err == nil {
			if same, err = x.confirm(); !same {
				x.again()
			}
		}
		if err != nil {
			return nil, err
		}
	}
	r.States, r.Moves, r.Controls = st.States, st.Moves, uint64(len(s.controls))
	r.Locals = len(s.locals)
	r.Monotone, r.Finite, r.Why = !st.Absent, st.Why == "", st.Why
	r.PlacementsEnumerated, r.PlacementsFired = s.countPlaces()
	if twice {
		if s.namesRequests() {
			r.Finite, r.Why = false, "a request submitted twice ties two clients together where commands name it: they are not counted"
		}
		// Which two clients submitted the same request is not known.
		s.found[model.DoubleDeduct] = true
		r.PlacementsEnumerated++ // every request
		r.PlacementsFired++
	}
	return s.found, nil
}

func (s *anySystem) search(ctx context.Context, start counters.Start, most uint8, states int) (st counters.Stats, err error) {
	defer rescue(&err)
	return counters.Search(ctx, s, start, most, counters.Limits{States: states}, s.look), nil
}

// notCounted says why a system cannot be searched by counting its clients; it
// is empty for an error of another kind.
func notCounted(err error) string {
	switch {
	case errors.Is(err, errForeignName):
		return "a reply names another client: clients cannot be told apart only by their counts"
	case errors.Is(err, errTooManyNames):
		return fmt.Sprintf("the stores name more than %d clients at a time", maxSlots)
	case errors.Is(err, errAnsweredInPassing), errors.Is(err, errWatched):
		return err.Error()
	}
	return ""
}

// anySystem makes the counter system and its first state. clients is a number
// to be exact about, or 0 for any: then buyers are a supply that does not end.
func (l *Lab) anySystem(cfg AnyConfig, clients int, x *alike) (*anySystem, counters.Start, error) {
	var start counters.Start
	w, err := l.world(cfg.Config, true)
	if err != nil {
		return nil, start, err
	}
	one := cfg.Config
	if clients > 0 {
		one.Clients = clients
	}
	buyers := one
	buyers.Faults = nil // who submits a request again is added below
	programs, who, err := l.cast(buyers, true)
	if err != nil {
		return nil, start, err
	}
	s := &anySystem{kit: newKit(cfg.Config, w, programs), exact: clients > 0, unbounded: cfg.Unbounded,
		ids: map[anyControl]uint32{}, settled: map[settledKey]gained{}, ordered: map[int32][]string{}, aways: make([][]away, 1), awayIDs: map[string]int32{}, attached: map[stand]stand{}, detached: map[stand]stand{}, others: map[othersKey]uint32{},
		found: map[model.Property]bool{}, rests: map[int32]counter{}}
	s.alike = x
	_, s.audited = cfg.Entry.Scheme.(schemes.Auditor)
	if slices.Contains(cfg.Faults, faults.DuplicateRequest) {
		again, err := l.resubmitters(one, programs)
		if err != nil {
			return nil, start, err
		}
		for _, p := range again {
			who = append(who, uint8(len(s.programs)))
			s.programs = append(s.programs, p)
		}
	}
	s.place(placement{}) // number 0 is none
	h, err := s.onSale()
	if err != nil {
		return nil, start, err
	}
	amount := map[uint32]int{}
	for _, p := range who {
		amount[s.newcomer(p)]++
	}
	programs = s.programs
	units := cfg.Stock
	for _, id := range sortedKeys(amount) {
		n, back := amount[id], restockedBy(programs[s.locals[id].who].calls)
		units += back * int64(n)
		if back == 0 && !s.exact {
			start.Supply = append(start.Supply, id)
			continue
		}
		start.Marking = append(start.Marking, counters.Place{Local: id, Count: uint8(n)})
	}
	if units >= 200 {
		return nil, start, fmt.Errorf("%w: %d units, the most with any number of clients is 199", ErrConfig, units)
	}
	// Sales beyond what there is are counted a little further, so that a few,
	// as a few faults bring about, are still told from any number.
	s.most = uint8(units) + 2 + uint8(cfg.MaxFaults)
	start.Exact = s.few
	start.Control = s.control(anyControl{h: h})
	return s, start, nil
}

// resubmitters are clients that each submit one request a second time. Where no
// command names a request, they are further clients and nothing ties them to
// the first.
func (l *Lab) resubmitters(cfg Config, programs []program) ([]program, error) {
	var again []program
	for _, p := range programs {
		for op, call := range p.calls {
			a, err := l.automaton(cfg.Entry, role{action(call.Op), call.Qty, self, foreignRequest, 0}, cfg.Times, cfg.maxRetries())
			if err != nil {
				return nil, err
			}
			again = append(again, program{calls: []faults.Call{call}, roles: []*automaton{a}, requests: []string{p.requests[op]}, client: self})
		}
	}
	return again, nil
}

func sortedKeys(m map[uint32]int) []uint32 {
	var keys []uint32
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// restockedBy is how many units a program puts back.
func restockedBy(calls []faults.Call) (units int64) {
	for _, c := range calls {
		if c.Op == model.Restock {
			units += c.Qty
		}
	}
	return units
}

// convict looks for the smallest numbers of clients that show the properties,
// one number after the other. It answers those it did not find.
func (l *Lab) convict(ctx context.Context, cfg AnyConfig, open []model.Property, r *AnyResult) ([]model.Property, error) {
	if len(open) == 0 {
		return open, nil
	}
	complete := true
	for n := 1; n <= cfg.MostClients && len(open) > 0; n++ {
		best := map[model.Property]AnyVerdict{}
		for _, clients := range companies(cfg.Workload.Clients, n) {
			one := cfg.Config
			one.Workload.Clients, one.Clients = clients, n
			one.MemoryLimit = min(one.MemoryLimit, convictBytes)
			if len(open) == 1 {
				one.Until = open[0]
			}
			if cfg.Unbounded {
				one.MaxFaults = min(n, 2)
			}
			res, err := l.Run(ctx, one)
			if errors.Is(err, ErrConfig) { // more than a search has room for
				complete = false
				continue
			}
			if err != nil {
				return nil, err
			}
			complete = complete && (res.Exhaustive || res.Verdicts[one.Until].Status == Violated)
			for _, p := range open {
				if v := res.Verdicts[p]; v.Status == Violated && (best[p].Witness == nil || len(v.Witness.Steps) < len(best[p].Witness.Steps)) {
					best[p] = AnyVerdict{Verdict: v, Clients: n}
				}
			}
		}
		for p, v := range best {
			v.Smallest = complete || n == 1
			r.Verdicts[p] = v
		}
		open = slices.DeleteFunc(open, func(p model.Property) bool { return best[p].Witness != nil })
		if complete {
			r.Bounded = n
		}
	}
	return open, nil
}

// companies are the ways to let n clients take part: buyers of any programs,
// each as often as one likes, and clients that restock as often as there are.
func companies(all [][]faults.Call, n int) [][][]faults.Call {
	type kind struct {
		calls []faults.Call
		most  int
	}
	var kinds []kind
	for _, calls := range all {
		i := slices.IndexFunc(kinds, func(k kind) bool { return slices.Equal(k.calls, calls) })
		if i < 0 {
			kinds = append(kinds, kind{calls: calls})
			i = len(kinds) - 1
		}
		if kinds[i].most++; restockedBy(calls) == 0 {
			kinds[i].most = n
		}
	}
	var out [][][]faults.Call
	var choose func(i int, taken [][]faults.Call)
	choose = func(i int, taken [][]faults.Call) {
		if len(taken) == n {
			out = append(out, slices.Clone(taken))
			return
		}
		if i == len(kinds) {
			return
		}
		for k := 0; k <= kinds[i].most && len(taken)+k <= n; k++ {
			next := slices.Clone(taken)
			for range k {
				next = append(next, kinds[i].calls)
			}
			choose(i+1, next)
		}
	}
	choose(0, nil)
	return out
}

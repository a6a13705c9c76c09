package explore

import (
	"fmt"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// jobs are the faults of those who run the sale: each is what a client runs that
// is nobody's purchase, and that may begin at any moment, once for each fault.
var jobs = []struct {
	kind faults.Kind
	call func(units int64) faults.Call
	can  func(schemes.Scheme) bool
}{
	{faults.StockReloaded, func(units int64) faults.Call { return faults.Call{Op: schedule.Load, Qty: units} },
		func(s schemes.Scheme) bool { _, ok := s.(schemes.Loader); return ok }},
	{faults.ReconcileOverlap, func(units int64) faults.Call { return faults.Call{Op: schedule.Reconcile, Qty: units} },
		func(s schemes.Scheme) bool { _, ok := s.(schemes.Reconciler); return ok }},
}

// jobsOf lists what jobs there may be in a search.
func jobsOf(cfg Config) (calls []faults.Call) {
	for _, j := range jobs {
		if len(cfg.placesOf(j.kind)) > 0 && j.can(cfg.Entry.Scheme) {
			calls = append(calls, j.call(cfg.Stock))
		}
	}
	return calls
}

// jobKind is the fault that a job is.
func jobKind(call faults.Call) faults.Kind {
	for _, j := range jobs {
		if j.call(call.Qty) == call {
			return j.kind
		}
	}
	panic(fmt.Sprintf("explore: %s is no job", call.Op))
}

// resubmissions is how many requests may be submitted a second time.
func resubmissions(cfg Config) int {
	if len(cfg.placesOf(faults.DuplicateRequest)) > 0 {
		return cfg.MaxFaults
	}
	return 0
}

// extras is how many clients may come as a fault: with a request that was
// submitted before, or for a job.
func extras(cfg Config) int {
	if len(jobsOf(cfg)) > 0 {
		return cfg.MaxFaults
	}
	return resubmissions(cfg)
}

// extraPrograms is what the n-th extra client may run, client index in the sale.
func (l *Lab) extraPrograms(cfg Config, symmetry bool, n, index int, programs []program) (list []program, err error) {
	name := clientPrefix + faults.ClientName(index)
	add := func(call faults.Call, client, request string, p program) error {
		r := role{action(call.Op), call.Qty, client, request, 0}
		if cfg.NoSymmetry {
			r.client, r.request = name, p.requests[0]
		}
		a, err := l.automaton(cfg.Entry, r, cfg.Times, cfg.maxRetries())
		p.calls, p.roles, p.index, p.extra, p.slot = []faults.Call{call}, []*automaton{a}, index, true, n
		list = append(list, p)
		return err
	}
	if resubmissions(cfg) > 0 {
		for origin := range len(cfg.company()) {
			for op, call := range programs[origin].calls {
				if call.Op == model.Work {
					continue // nobody requests it
				}
				p := program{client: name, requests: []string{programs[origin].requests[op]}, resubmits: true, origin: origin, originOp: op}
				if err := add(call, self, foreignRequest, p); err != nil {
					return nil, err
				}
			}
		}
	}
	for _, call := range jobsOf(cfg) {
		p := program{client: name, requests: []string{name + ".1"}, job: true}
		if symmetry {
			p.client, p.requests = self, []string{self + ".1"}
		}
		if err := add(call, self, ownRequest, p); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// begins lists the extra clients that may come now: a request that was submitted
// before, at any time after it was; a job at any time.
func (s *searcher) begins(x *state, out []successor) []successor {
	if !s.resubmit || int(x.used()) >= s.cfg.MaxFaults {
		return out
	}
	for i := 2; i < 2+s.clients; i++ {
		if s.briefs[x[i]].status != dormant {
			continue
		}
		slot := s.programs[s.locals[x[i]].who].slot
		for who := range s.programs {
			p := &s.programs[who]
			if !p.extra || p.slot != slot || p.resubmits && p.originOp >= int(s.infos[x[2+p.origin]].begunOps) {
				continue
			}
			l := local{who: uint8(who), node: p.roles[0].root.id, slots: s.locals[x[i]].slots}
			mark := placement{kind: faults.DuplicateRequest, who: uint8(p.origin), op: uint8(p.originOp)}
			if p.job {
				mark = placement{kind: jobKind(p.calls[0])}
			}
			place := s.place(mark)
			out = append(out, successor{state: *x, mult: 1, place: place, fired: place, deed: deed{what: resubmits, actor: uint8(i)}})
			o := &out[len(out)-1]
			if o.state[i] = s.local(l); p.job && s.mutant == jobLost {
				l.status = crashed
				o.state[i] = s.local(l)
			}
			o.state[1] += 1 << 16
			s.untrack(&o.state)
		}
		return out // the others are like it
	}
	return out
}

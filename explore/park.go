package explore

import (
	"container/list"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// runner is one run of a client's code in a bubble of its own, which stands
// still between the questions it is asked. The bubble waits on a channel from
// outside of it, so its virtual clock does not move meanwhile.
type runner struct {
	ask  chan func(*run)
	done chan struct{}

	found  *node // where it stands, when it was the first run to come there
	holder *node // where it is parked
	place  *list.Element
}

// do lets f work with the run, inside the bubble.
func (s *runner) do(f func(*run)) {
	s.ask <- f
	<-s.done
}

// standing are the runs parked at a node: one that stands where it came to and
// one that has let time pass until the client stirred by itself.
type standing struct{ here, stirred *runner }

func (s *standing) of(stirred bool) **runner {
	if stirred {
		return &s.stirred
	}
	return &s.here
}

// parking keeps runs that may be asked to go on, so that what follows a node
// need not run the code from its beginning again. It ends those parked longest
// when there are too many. It is safe for use by several goroutines.
type parking struct {
	limit int

	mu     sync.Mutex
	parked *list.List
	closed bool
	open   sync.WaitGroup
	starts atomic.Int64 // runs begun
}

// maxParked is how many runs stand in a laboratory at the most; each is a
// go-redis client with its goroutines, about 60 KB.
const maxParked = 512

func newParking(limit int) *parking { return &parking{limit: limit, parked: list.New()} }

// start begins a run of the automaton's code.
func (p *parking) start(a *automaton) *runner {
	s := &runner{ask: make(chan func(*run)), done: make(chan struct{})}
	p.starts.Add(1)
	p.open.Go(func() {
		bubble(func() {
			r := a.start()
			defer r.end()
			r.settle()
			for f := range s.ask {
				f(r)
				s.done <- struct{}{}
			}
		})
	})
	return s
}

// put parks a runner at a node.
func (p *parking) put(n *node, s *runner, stirred bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := n.standing.of(stirred)
	if p.closed || p.limit == 0 || *at != nil {
		close(s.ask)
		return
	}
	if p.parked.Len() == p.limit {
		p.drop(p.parked.Front())
	}
	*at, s.holder = s, n
	s.place = p.parked.PushBack(s)
}

// drop ends a parked run; the mutex is held.
func (p *parking) drop(e *list.Element) {
	close(p.unpark(e).ask)
}

func (p *parking) unpark(e *list.Element) *runner {
	s := p.parked.Remove(e).(*runner)
	if s.holder.standing.here == s {
		s.holder.standing.here = nil
	} else {
		s.holder.standing.stirred = nil
	}
	s.holder, s.place = nil, nil
	return s
}

// take answers the runner parked at a node, nil when there is none.
func (p *parking) take(n *node, stirred bool) *runner {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := *n.standing.of(stirred)
	if s == nil {
		return nil
	}
	return p.unpark(s.place)
}

// close ends every parked run and waits until all runs are over.
func (p *parking) close() {
	p.mu.Lock()
	p.closed = true
	for e := p.parked.Front(); e != nil; e = p.parked.Front() {
		p.drop(e)
	}
	p.mu.Unlock()
	p.open.Wait()
}

// extract runs the scheme's code along the events that lead to n and writes
// what it does then into n, which nobody else knows yet.
func (a *automaton) extract(n *node) error {
	s, err := a.visit(n, func(r *run) error { return r.observe(n) })
	if s != nil {
		s.found = n
	}
	a.leave(n, s)
	return err
}

// time asks when the client stirs by itself. The mutex of n is held.
func (a *automaton) time(n *node) error {
	s, err := a.visit(n, func(r *run) error {
		if err := r.compare(n, r.wire.pending()); err != nil {
			return err
		}
		r.wait(n)
		return nil
	})
	if s != nil && s.found != n {
		n.again.Add(1)
	}
	a.leave(n, s)
	return err
}

// visit brings a run to n, as little of the way as possible, and lets f work
// with it there. The run is nil when it is over.
func (a *automaton) visit(n *node, f func(*run) error) (*runner, error) {
	a.runs.Add(1)
	a.fresh.Store(true)
	s, way := a.nearest(n)
	var err error
	s.do(func(r *run) {
		for _, m := range way {
			if err = r.follow(m); err != nil {
				return
			}
			s.passed(m.parent)
		}
		err = f(r)
	})
	if err != nil {
		close(s.ask)
		return nil, err
	}
	return s, nil
}

// leave parks a run that stands at n, if it can go on from there.
func (a *automaton) leave(n *node, s *runner) {
	switch {
	case s == nil:
	case n.done, n.asked && n.deadline == 0:
		close(s.ask)
	default:
		a.park.put(n, s, n.asked)
	}
}

// passed notes that a run has gone on from a node.
func (s *runner) passed(from *node) {
	from.ran.Store(true)
	if s.found != from {
		from.again.Add(1)
	}
	s.found = nil
}

// nearest finds the parked run from which it is the least way to n, and that
// way; or it begins a new one.
func (a *automaton) nearest(n *node) (*runner, []*node) {
	if n.parent != nil && n.event.kind == elapsed {
		if s := a.park.take(n.parent, true); s != nil {
			return s, []*node{n}
		}
	}
	var way []*node
	for m := n; m != nil; m = m.parent {
		if s := a.park.take(m, false); s != nil {
			slices.Reverse(way)
			return s, way
		}
		if m.parent != nil {
			way = append(way, m)
		}
	}
	slices.Reverse(way)
	return a.park.start(a), way
}

// fewNodes is how small an automaton is when few runs have passed through it, and
// carefully how many of them shall have seen each node of it parked alike. Code that
// chooses one way of eight, as a walk over a map does, goes unnoticed by one run in
// eight; in a larger automaton the runs to later nodes pass the earlier ones often.
const (
	fewNodes  = 32
	carefully = 6
)

// confirm runs the code again to every node from which too few runs have gone on,
// so that each was seen parked alike by two runs, or more when there are few nodes.
// Two goroutines do it when a core is free.
func (a *automaton) confirm(helped bool) error {
	if !a.fresh.Swap(false) {
		return nil
	}
	a.mu.Lock()
	nodes := slices.Clone(a.nodes)
	a.mu.Unlock()
	wanted := int32(1)
	if len(nodes) <= fewNodes {
		wanted = carefully
	}
	var next atomic.Int64
	again := func() error {
		for {
			i := len(nodes) - int(next.Add(1)) // a node comes after those before it
			if i < 0 {
				return nil
			}
			n := nodes[i]
			for n.base == nil && n.ran.Load() && n.again.Load() < wanted {
				if err := a.runTo(n); err != nil {
					return err
				}
			}
		}
	}
	if !helped {
		return again()
	}
	var both errgroup.Group
	both.Go(again)
	both.Go(again)
	return both.Wait()
}

// runTo starts the code afresh and compares it at every node on the way to n.
func (a *automaton) runTo(n *node) (err error) {
	a.runs.Add(1)
	s := a.park.start(a)
	defer close(s.ask)
	s.do(func(r *run) {
		for _, m := range path(n) {
			if err = r.follow(m); err != nil {
				return
			}
			m.parent.again.Add(1)
		}
		if err = r.compare(n, r.wire.pending()); err == nil {
			n.again.Add(1)
		}
	})
	return err
}

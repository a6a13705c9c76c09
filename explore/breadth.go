package explore

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"
)

// batch is some consecutive states and what follows from them. Looking at
// states asks the kit, remembering what they lead to asks the visited set, and
// neither needs the other's data: a second core may remember one batch while
// the first looks at the next. States are numbered in the order in which they
// are remembered, which is the same on one core.
type batch struct {
	first  uint32 // number of its first state
	states []state
	counts []uint32    // how many successors each state has
	next   []successor // one state's after the other's
	hashes []uint64    // of next
}

const (
	smallBatch = 32      // states
	largeBatch = 1024    // when a second core helps
	paying     = 128     // smallest batch that pays for telling it
	checkEvery = 1 << 14 // states between looks at clock and memory
)

// breadthFirst visits every state. why says what kept it from that.
func (s *searcher) breadthFirst(ctx context.Context) (why string) {
	began := time.Now()
	s.seen.add(&s.initial, s.initial.hash())
	s.parents.add(0)
	now, before := &batch{}, &batch{} // before was looked at and is not remembered
	var helper sync.WaitGroup
	defer helper.Wait() // when looking fails
	done := false
	asked := uint32(0) // the code was asked what the states below will ask
	for at := uint32(0); ; {
		size := uint32(smallBatch)
		if s.helped() {
			size = largeBatch
		}
		if at%checkEvery == 0 {
			s.remember(before)
			if why := s.check(ctx, at, began); why != "" {
				return why
			}
		}
		size = min(size, checkEvery-at%checkEvery, s.seen.n-at)
		if s.mutant == budgetForgotten {
			size = min(size, 1) // a state is changed by what was remembered before it
		}
		if size == 0 {
			if len(before.states) == 0 {
				break
			}
			s.remember(before)
			continue
		}
		s.take(now, at, size)
		at += size
		if s.helped() {
			s.warm(max(asked, now.first), at)
		}
		if size >= paying && s.helped() {
			// What the states ahead will need is asked meanwhile, of those that have a number.
			asked = min(at+largeBatch, s.seen.n)
			ahead := s.inquiries(at, asked)
			helper.Go(func() { s.remember(before); ahead.answer() })
			done = s.look(now)
			ahead.answer()
			helper.Wait()
		} else {
			s.remember(before)
			done = s.look(now)
		}
		if done {
			return fmt.Sprintf("stopped at the first witness of %s", s.cfg.Until)
		}
		now, before = before, now
	}
	s.starts.add(s.edges.n)
	return ""
}

// helped says whether a core is free.
func (s *searcher) helped() bool {
	return s.mutant != budgetForgotten && s.lab != nil && int(s.lab.searches.Load()) < runtime.GOMAXPROCS(0)
}

// check says why the search has to stop, if it has to.
func (s *searcher) check(ctx context.Context, at uint32, began time.Time) (why string) {
	if ctx.Err() != nil {
		return fmt.Sprintf("stopped: %v", context.Cause(ctx))
	}
	if used := s.bytes(); used > s.cfg.MemoryLimit {
		return fmt.Sprintf("out of memory: %d bytes in use, limit %d", used, s.cfg.MemoryLimit)
	}
	if s.cfg.Progress != nil {
		s.cfg.Progress(Progress{uint64(s.seen.n), s.edges.n, uint64(s.seen.n - at), time.Since(began)})
	}
	return ""
}

// take fills a batch with n states from at on.
func (s *searcher) take(b *batch, at, n uint32) {
	b.first = at
	b.states = b.states[:0]
	for i := at; i < at+n; i++ {
		b.states = append(b.states, *s.seen.at(i))
		if s.mutant == budgetForgotten {
			b.states[i-at][1] |= s.forgotten[i]
		}
	}
}

// look judges the states of a batch and finds what follows from them. done is
// true when it has met what the search is for.
func (s *searcher) look(b *batch) (done bool) {
	sought := s.judge.tallies[s.cfg.Until]
	b.counts, b.next, b.hashes = b.counts[:0], b.next[:0], b.hashes[:0]
	for i := range b.states {
		x := &b.states[i]
		s.judge.look(b.first+uint32(i), x)
		from := len(b.next)
		b.next = s.successors(x, b.next)
		if s.resting {
			s.ends = append(s.ends, b.first+uint32(i))
			s.judge.rest(b.first+uint32(i), x)
		} else if len(b.next) == from {
			s.stalls++
		}
		b.counts = append(b.counts, uint32(len(b.next)-from))
		for j := from; j < len(b.next); j++ {
			n := &b.next[j]
			if n.place >= 0 {
				s.placed[n.place] = true
			}
			if n.fired >= 0 {
				s.fired[n.fired] = true
			}
			s.sort(&n.state)
			b.hashes = append(b.hashes, n.state.hash())
		}
		if sought != nil && sought.broken {
			return true
		}
	}
	return false
}

// remember numbers the successors of a batch and writes down the edges to
// them. The batch is empty afterwards.
func (s *searcher) remember(b *batch) {
	k := 0
	for i, count := range b.counts {
		s.starts.add(s.edges.n)
		for range count {
			if k%touched == 0 {
				s.seen.touch(b.hashes[k:min(k+touched, len(b.hashes))])
			}
			n := &b.next[k]
			var id uint32
			if s.mutant == budgetForgotten {
				id = s.forget(n, b.first+uint32(i))
			} else {
				var fresh bool
				if id, fresh = s.seen.add(&n.state, b.hashes[k]); fresh {
					s.parents.add(b.first + uint32(i))
				}
			}
			s.edges.add(edge{id, n.mult})
			k++
		}
	}
	b.states, b.counts, b.next, b.hashes = b.states[:0], b.counts[:0], b.next[:0], b.hashes[:0]
}

// forget is a mutant's way to number a successor: without its budget.
func (s *searcher) forget(n *successor, parent uint32) uint32 {
	budget := n.state[1] &^ 0xffff
	n.state[1] &= 0xffff
	id, fresh := s.seen.add(&n.state, n.state.hash())
	if fresh {
		s.parents.add(parent)
		s.forgotten[id] = budget
	}
	return id
}

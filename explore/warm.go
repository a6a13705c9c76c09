package explore

import (
	"sync"
	"sync/atomic"

	"stockproof/faults"
)

// inquiry is what a search is about to ask the scheme's code at one node.
type inquiry struct {
	a    *automaton
	at   *node
	asks []ask
}

// ask is one command of a client that stands there, in versions of the stores.
type ask struct {
	v     versions
	q     execKey
	index int
	cut   bool // also what it does when the connection breaks
}

// inquiries are answered by as many goroutines as care to help.
type inquiries struct {
	s    *searcher
	list []*inquiry
	next atomic.Int64
}

// answer works through what is left. It only fills the automata and what is known
// of the stores; the search then finds everything there and goes on as it would
// alone, so nothing of a result depends on which core was faster. An error is left
// to the search, which asks the same and meets it where it counts.
func (q *inquiries) answer() {
	for {
		i := int(q.next.Add(1)) - 1
		if i >= len(q.list) {
			return
		}
		q.s.inquire(q.list[i])
	}
}

// warm asks, on two cores, what the search will ask in the states from from up to
// to.
func (s *searcher) warm(from, to uint32) {
	q := s.inquiries(from, to)
	if len(q.list) < 2 {
		return
	}
	var helper sync.WaitGroup
	helper.Go(q.answer)
	q.answer()
	helper.Wait()
}

// inquiries collects the steps of the clients in some states of which it is not
// known what they do, by node: two cores do not wait for each other then.
func (s *searcher) inquiries(from, to uint32) *inquiries {
	all := &inquiries{s: s}
	byNode := map[*node]*inquiry{}
	cuts := s.allowed[faults.RequestLost] || s.allowed[faults.ReplyLost] || s.allowed[faults.RequestDelayed]
	for i := from; i < to; i++ {
		x := s.seen.at(i)
		faulty := int(x.used()) < s.cfg.MaxFaults
		for c := 2; c < 2+s.clients; c++ {
			if !s.briefs[x[c]].moves || c > 2 && x[c] == x[c-1] {
				continue
			}
			key := stepKey(x[0], x[c], 0, of(allMoves, faulty))
			if _, met := s.asked.get(key); met {
				continue
			}
			s.asked.put(key, struct{}{})
			l := s.locals[x[c]]
			a := s.role(l)
			n := a.node(l.node)
			q := byNode[n]
			if q == nil {
				q = &inquiry{a: a, at: n}
				byNode[n] = q
				all.list = append(all.list, q)
			}
			v := s.vers[x[0]]
			for _, m := range s.infos[x[c]].moves {
				if on := s.world.step(m.cmd); s.alike != nil && on.on > 0 || v.frozen && !on.sql {
					continue // nothing is executed, or the search gives up
				}
				q.asks = append(q.asks, ask{v, s.key(x[0], l, l.op, m.cmd), m.index, cuts && faulty})
			}
		}
	}
	return all
}

// inquire asks what variants will ask.
func (s *searcher) inquire(q *inquiry) {
	for i := range q.asks {
		k := &q.asks[i]
		eff, err := s.execAt(&k.v, k.q)
		if err != nil {
			return
		}
		if !eff.blocked && !eff.broken {
			if _, err := q.a.step(q.at, event{kind: replied, index: k.index, text: eff.reply}); err != nil {
				return
			}
		}
		if k.cut || eff.broken {
			if _, err := q.a.step(q.at, event{kind: cut, index: k.index}); err != nil {
				return
			}
		}
	}
}

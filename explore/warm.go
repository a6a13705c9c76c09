package explore

import (
	"sync"
	"sync/atomic"

	"stockproof/faults"
)

// inquiry is what a search is about to ask the scheme's code at one node:
// clients that stand there, in versions of the stores.
type inquiry struct {
	a    *automaton
	at   *node
	keys []clientAt
}

type clientAt struct {
	h, l   uint32
	faulty bool
}

// warm asks the code on two cores what the search will ask it in a batch. It
// only fills the automata; the search then finds everything there and goes on
// as it would alone, so nothing of a result depends on which core was faster.
func (s *searcher) warm(b *batch) {
	list := s.inquiries(b)
	if len(list) < 2 {
		return
	}
	errs := make([]error, len(list))
	var next atomic.Int64
	work := func() {
		for {
			i := int(next.Add(1)) - 1
			if i >= len(list) {
				return
			}
			errs[i] = s.inquire(list[i])
		}
	}
	var helper sync.WaitGroup
	helper.Go(work)
	work()
	helper.Wait()
	for _, err := range errs {
		if err != nil {
			fail(err)
		}
	}
}

// inquiries collects the steps of a batch's clients of which it is not known
// what they do, by node: two cores do not wait for each other then.
func (s *searcher) inquiries(b *batch) []*inquiry {
	var list []*inquiry
	byNode := map[*node]*inquiry{}
	met := map[clientAt]bool{}
	for i := range b.states {
		x := &b.states[i]
		faulty := int(x.used()) < s.cfg.MaxFaults
		for c := 2; c < 2+s.clients; c++ {
			if !s.briefs[x[c]].moves || c > 2 && x[c] == x[c-1] {
				continue
			}
			if _, known := s.stepMemo.get(stepKey(x[0], x[c], x.epoch(), of(allMoves, faulty))); known {
				continue
			}
			at := clientAt{x[0], x[c], faulty}
			if met[at] {
				continue
			}
			met[at] = true
			l := s.locals[x[c]]
			a := s.role(l)
			n := a.node(l.node)
			q := byNode[n]
			if q == nil {
				q = &inquiry{a: a, at: n}
				byNode[n] = q
				list = append(list, q)
			}
			q.keys = append(q.keys, at)
		}
	}
	return list
}

// inquire asks what variants will ask.
func (s *searcher) inquire(q *inquiry) error {
	cuts := s.allowed[faults.RequestLost] || s.allowed[faults.ReplyLost] || s.allowed[faults.RequestDelayed]
	for _, k := range q.keys {
		l := s.locals[k.l]
		for _, m := range s.infos[k.l].moves {
			eff, err := s.world.exec(s.key(k.h, l, l.op, m.cmd))
			if err != nil {
				return err
			}
			if !eff.blocked {
				if _, err := q.a.step(q.at, event{kind: replied, index: m.index, text: eff.reply}); err != nil {
					return err
				}
			}
			if cuts && k.faulty {
				if _, err := q.a.step(q.at, event{kind: cut, index: m.index}); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

package explore

import (
	"context"
	"fmt"
	"time"
)

// depthFirst goes down every execution in turn until it has met a violation of
// the property sought. It comes to the ends of executions, where most
// properties are decided, long before a search in breadth does; what it finds
// is a witness, though not a shortest one. It answers whether it found one and,
// where it did not, whether there is more to see than that many states; why says
// what stopped it earlier.
func (s *searcher) depthFirst(ctx context.Context, states uint32) (found, more bool, why string) {
	began := time.Now()
	sought := s.judge.tallies[s.cfg.Until]
	s.seen.add(&s.initial, s.initial.hash())
	s.parents.add(0)
	stack := []uint32{0}
	var next []successor
	for n := uint32(0); len(stack) > 0; n++ {
		if n == states {
			return false, true, ""
		}
		if n%checkEvery == 0 {
			if why := s.check(ctx, s.seen.n-uint32(len(stack)), began); why != "" {
				return false, true, why
			}
		}
		i := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		x := *s.seen.at(i)
		s.judge.look(i, &x)
		next = s.successors(&x, next[:0])
		if s.resting {
			s.judge.rest(i, &x)
		}
		if sought.broken {
			return true, true, ""
		}
		for k := range next {
			to := &next[k].state
			s.sort(to)
			if id, fresh := s.seen.add(to, to.hash()); fresh {
				s.parents.add(i)
				stack = append(stack, id)
			}
		}
	}
	return false, false, ""
}

// firstStates is how many states a search in depth looks at before other
// configurations have had as many.
const firstStates = 100

// seek looks in depth at that many states of one configuration for a witness of
// cfg.Until. The result is nil when there is none; more says that there are
// more states.
func (l *Lab) seek(ctx context.Context, cfg Config, states uint32) (r *Result, more bool, err error) {
	r, err = l.with(cfg, func(cfg Config, symmetry bool) (res *Result, err error) {
		defer rescue(&err)
		s, err := l.prepare(cfg, symmetry)
		if err != nil {
			return nil, err
		}
		found, unseen, why := s.depthFirst(ctx, states)
		more = unseen
		if found {
			why = fmt.Sprintf("stopped at the first witness of %s", cfg.Until)
		} else if why == "" {
			return nil, nil
		}
		return s.result(why, l.runs.Load()), nil
	})
	return r, more, err
}

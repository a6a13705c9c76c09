package explore

import (
	"context"
	"fmt"
	"time"

	"stockproof/model"
)

// guided is a search for any execution that breaks a property, where
// breadthFirst is for the shortest. It follows executions to their ends, where
// most properties are decided, those with the fewest preemptions first: nearly
// every violation shows with two or fewer, and there are few such executions
// (iterative context bounding, Musuvathi and Qadeer, PLDI 2007). It asks of a
// state only what the client that moves next does, so little of the scheme's
// code has to be run. Left alone, it comes to every state.
type guided struct {
	*searcher
	errands [][]errand // by preemptions so far; the last one comes first
	told    uint32     // states that were judged
	next    []successor
}

// errand is something left to try in a state.
type errand struct {
	state uint32
	last  uint32 // local of the client that moved last, 0 for none
	actor uint8  // position of the client whose step it is; 0: everything
}

// add numbers a state that an errand led to and notes what there is to try.
func (g *guided) add(parent uint32, n *successor, cost int) {
	var last uint32
	if n.deed.what != jumps {
		last = n.state[n.deed.actor] // the clients' positions change, their locals do not
	}
	if n.deed.actor == 0 {
		last = 0
	}
	g.sort(&n.state)
	id, fresh := g.seen.add(&n.state, n.state.hash())
	if !fresh {
		return
	}
	g.parents.add(parent)
	g.open(id, last, cost)
}

// open notes what there is to try in a state: that the client that moved last
// goes on, then the others, then everything else that can happen.
func (g *guided) open(id, last uint32, cost int) {
	x := g.seen.at(id)
	goesOn := last != 0 && g.briefs[last].ready
	g.note(cost, errand{id, last, 0})
	for i := 1 + g.clients; i >= 2; i-- {
		if !g.briefs[x[i]].moves || g.symmetry && i > 2 && x[i] == x[i-1] {
			continue
		}
		c := cost
		if goesOn && x[i] != last {
			c++
		}
		g.note(c, errand{id, last, uint8(i)})
	}
}

func (g *guided) note(cost int, e errand) {
	for cost >= len(g.errands) {
		g.errands = append(g.errands, nil)
	}
	g.errands[cost] = append(g.errands[cost], e)
}

// take answers the errand with the fewest preemptions that was noted last.
func (g *guided) take() (e errand, cost int, ok bool) {
	for cost := range g.errands {
		if list := g.errands[cost]; len(list) > 0 {
			g.errands[cost] = list[:len(list)-1]
			return list[len(list)-1], cost, true
		}
	}
	return errand{}, 0, false
}

// run goes on until as many states were met, or ends earlier when found answers
// true. It is called with each property that turned out to be broken and the
// state that shows it. more says that there are states not met; why, what
// stopped it.
func (g *guided) run(ctx context.Context, states uint64, found func(model.Property, uint32) bool) (more bool, why string) {
	began := time.Now()
	g.seen.add(&g.initial, g.initial.hash())
	g.parents.add(0)
	g.open(0, 0, 0)
	broken := map[model.Property]bool{}
	for n := 0; ; n++ {
		if n%checkEvery == 0 {
			if why := g.check(ctx, g.told, began); why != "" {
				return true, why
			}
		}
		for ; g.told < g.seen.n; g.told++ {
			x := *g.seen.at(g.told)
			g.judge.look(g.told, &x)
			if g.atRest(&x) {
				g.judge.rest(g.told, &x)
			}
			for _, p := range model.Properties() {
				if t := g.judge.tallies[p.ID]; t.broken && !broken[p.ID] {
					if broken[p.ID] = true; found(p.ID, g.told) {
						return true, fmt.Sprintf("stopped at the first witness of %s", p.ID)
					}
				}
			}
		}
		if uint64(g.seen.n) >= states {
			return true, ""
		}
		e, cost, ok := g.take()
		if !ok {
			return false, ""
		}
		x := *g.seen.at(e.state)
		if e.actor > 0 {
			g.next = g.plainSteps(&x, int(e.actor), g.next[:0])
		} else {
			g.next = g.successors(&x, g.next[:0])
		}
		for k := range g.next {
			g.add(e.state, &g.next[k], cost)
		}
	}
}

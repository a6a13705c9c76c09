package explore

import (
	"slices"
)

// alike finds out which parked runs of a client's code are in the same state.
// The tree of automaton has a node for every history, so a client that may be
// sent back to its queue any number of times has nodes without end; a machine
// that counts clients needs the states behind them, of which the code has a
// finite number.
//
// Two nodes are taken for one state when no test of at most depth events tells
// them apart: what is asked, what is listened to, how long until it stirs, what
// is answered. The tests use every event that was ever met at the same step,
// whatever run it came to (the W-method of conformance testing, Chow 1978).
// Where one node comes after the other, what leads from one to the other is
// moreover repeated: code that gives up after some attempts is not taken for
// code that never does.
//
// It is an assumption, not a proof, that what these tests do not tell apart is
// the same.
type alike struct {
	depth   int
	repeats int
	replies map[step][]string
	told    map[string][]string // by channel: joined channel and payload
	advance []int64
	same    map[nodeKey]*node    // the node that stands for it
	stands  map[roughKey][]*node // nodes that stand for a state
	merged  []merger
}

type nodeKey struct {
	a  *automaton
	id int32
}

// roughKey is what two nodes have to have in common to be compared at all.
type roughKey struct {
	a       *automaton
	pending int
	first   step
	done    bool
}

// merger is a node that another stands for.
type merger struct {
	a           *automaton
	node, stand *node
}

// Tests that tell states of a client's code apart.
const (
	testDepth   = 2 // events in a test
	testRepeats = 8 // of what leads from one node to the other
)

func newAlike() *alike {
	return &alike{depth: testDepth, repeats: testRepeats, replies: map[step][]string{}, told: map[string][]string{}, same: map[nodeKey]*node{}, stands: map[roughKey][]*node{}}
}

// again forgets who stands for whom and keeps the events.
func (x *alike) again() {
	x.same, x.stands, x.merged = map[nodeKey]*node{}, map[roughKey][]*node{}, nil
}

// met notes an event that a node was told of.
func (x *alike) met(n *node, e event) {
	add := func(list []string, s string) []string {
		if slices.Contains(list, s) {
			return list
		}
		return append(list, s)
	}
	switch e.kind {
	case replied:
		st := n.pending[e.index]
		x.replies[st] = add(x.replies[st], e.text)
	case told:
		channel := splitArgs(e.text)[0]
		x.told[channel] = add(x.told[channel], e.text)
	case elapsed:
		if !slices.Contains(x.advance, e.advance) {
			x.advance = append(x.advance, e.advance)
		}
	}
}

// state is the node that stands for the state that n is in.
func (x *alike) state(a *automaton, n *node) (*node, error) {
	key := nodeKey{a, n.id}
	if r := x.same[key]; r != nil {
		return r, nil
	}
	rough := roughKey{a: a, pending: len(n.pending), done: n.done}
	if len(n.pending) > 0 {
		rough.first = n.pending[0]
	}
	for _, r := range x.stands[rough] {
		same, err := x.alike(a, n, r)
		if err != nil {
			return nil, err
		}
		if same {
			x.same[key] = r
			x.merged = append(x.merged, merger{a, n, r})
			return r, nil
		}
	}
	x.same[key] = n
	x.stands[rough] = append(x.stands[rough], n)
	return n, nil
}

// confirm tests every merger again, with the events met since. It answers false
// when one of them was wrong.
func (x *alike) confirm() (bool, error) {
	for _, m := range x.merged {
		same, err := x.alike(m.a, m.node, m.stand)
		if err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// alike makes every test of two nodes.
func (x *alike) alike(a *automaton, n, r *node) (bool, error) {
	same, err := x.compare(a, n, r, x.depth)
	if err != nil || !same {
		return false, err
	}
	var loop []event // from r to n
	for at := n; at != r; at = at.parent {
		if at == nil {
			return true, nil // one does not come after the other
		}
		loop = append(loop, at.event)
	}
	slices.Reverse(loop)
	for range x.repeats {
		for _, e := range loop {
			if n.done || e.kind == replied && e.index >= len(n.pending) {
				return false, nil
			}
			if n, err = a.step(n, e); err != nil {
				return false, err
			}
		}
		if same, err = x.compare(a, n, r, 1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// compare says whether no test of at most depth events tells two nodes apart.
func (x *alike) compare(a *automaton, n, m *node, depth int) (bool, error) {
	if n == m {
		return true, nil
	}
	if n.done != m.done || n.done && (n.result.outcome != m.result.outcome || n.result.value != m.result.value) ||
		!slices.Equal(n.pending, m.pending) || !slices.Equal(n.channels, m.channels) || !slices.Equal(n.closed, m.closed) {
		return false, nil
	}
	if n.done {
		return true, nil
	}
	if len(n.pending) == 0 {
		dn, err := a.deadline(n)
		if err != nil {
			return false, err
		}
		dm, err := a.deadline(m)
		if err != nil || dn != dm {
			return false, err
		}
	}
	if depth == 0 {
		return true, nil
	}
	for _, e := range x.tests(n) {
		cn, err := a.step(n, e)
		if err != nil {
			return false, err
		}
		cm, err := a.step(m, e)
		if err != nil {
			return false, err
		}
		if same, err := x.compare(a, cn, cm, depth-1); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// tests are the events a node may be told of.
func (x *alike) tests(n *node) (list []event) {
	for i, st := range n.pending {
		for _, text := range x.replies[st] {
			list = append(list, event{kind: replied, index: i, text: text})
		}
		list = append(list, event{kind: cut, index: i})
	}
	for _, c := range n.channels {
		for _, text := range x.told[c] {
			list = append(list, event{kind: told, text: text})
		}
	}
	for _, d := range x.advance {
		list = append(list, event{kind: elapsed, advance: d})
	}
	return list
}

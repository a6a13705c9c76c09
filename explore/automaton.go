package explore

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"stockproof/model"
	"stockproof/schemes"
)

// NonDeterminismError says that the same scheme code, given the same replies,
// did not do the same: exploring it would prove nothing.
type NonDeterminismError struct {
	Scheme   string
	After    string // the events both runs have in common
	Recorded string // what the first run was parked at
	Seen     string // what a later run did instead
}

func (e *NonDeterminismError) Error() string {
	return fmt.Sprintf("scheme %s is not deterministic: after [%s] it did %s, and when run again %s", e.Scheme, e.After, e.Recorded, e.Seen)
}

// ErrScheme is a scheme that cannot be explored for a reason of its own.
var ErrScheme = errors.New("scheme cannot be explored")

// errLoadedLease: a snapshot keeps when a key expires, and how much of that time
// has passed when it is read is not known.
func errLoadedLease(scheme, key string) error {
	return fmt.Errorf("%w: %s loads %s with a time to live; a restart from a snapshot of that is not explored", ErrScheme, scheme, key)
}

// sku is the one article on sale.
const sku = "1001"

// role is a client's part: what it runs and under which names.
type role struct {
	action  action
	qty     int64
	client  string // name of the client process, or the token that stands for it
	request string
	op      int // number of the operation in the client's program
}

// node is where a client is parked: a function of what has happened to it.
type node struct {
	id     int32
	parent *node
	event  event

	steps    int      // answered or broken so far
	pending  []step   // steps that wait for an answer
	channels []string // subscriptions
	closed   []int    // database connections it has hung up
	done     bool
	result   result

	// A node that differs from base only by time that has passed.
	base *node
	aged int64

	mu       sync.Mutex // of what follows; held while it is found out
	next     map[event]*node
	asked    bool  // the deadline is known
	deadline int64 // ms from here until it stirs by itself; 0: never

	ran      atomic.Bool  // the code has gone on from here
	again    atomic.Int32 // further runs that came here too and were parked alike
	standing standing     // runs that stand here
}

// result is what an action came to.
type result struct {
	outcome model.Outcome
	value   int64
	orders  string // see joinArgs: request, quantity, …
	err     string
}

// automaton is everything a role can do, extracted on demand from the scheme's
// own code. It is safe for use by several goroutines.
type automaton struct {
	entry   schemes.Entry
	role    role
	times   schemes.Config
	retries int

	mu    sync.Mutex
	nodes []*node
	ends  map[result]*node
	root  *node
	runs  *atomic.Int64 // questions the code was asked
	park  *parking
	fresh atomic.Bool // something was asked since the last confirm
}

func newAutomaton(entry schemes.Entry, r role, times schemes.Config, retries int, runs *atomic.Int64, park *parking) (*automaton, error) {
	a := &automaton{entry: entry, role: r, times: times, retries: retries, ends: map[result]*node{}, runs: runs, park: park}
	root := &node{next: map[event]*node{}}
	if err := a.extract(root); err != nil {
		return nil, err
	}
	a.root = a.add(root)
	return a, nil
}

// add gives a node its id; ends that differ in nothing that matters later are
// one node.
func (a *automaton) add(n *node) *node {
	a.mu.Lock()
	defer a.mu.Unlock()
	if n.done {
		key := n.result
		key.err = fmt.Sprint(n.closed) // the error itself is only shown
		if end := a.ends[key]; end != nil {
			return end
		}
		a.ends[key] = n
	}
	n.id = int32(len(a.nodes))
	a.nodes = append(a.nodes, n)
	return n
}

// node finds a node by its id.
func (a *automaton) node(id int32) *node {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.nodes[id]
}

// step follows an event, running the scheme only for what was never asked.
func (a *automaton) step(from *node, e event) (*node, error) {
	from.mu.Lock()
	defer from.mu.Unlock()
	if n := from.next[e]; n != nil {
		return n, nil
	}
	n, err := a.discover(from, e)
	if err != nil {
		return nil, err
	}
	from.next[e] = n
	return n, nil
}

// discover finds out what an event leads to. The mutex of from is held.
func (a *automaton) discover(from *node, e event) (*node, error) {
	if e.kind == elapsed {
		if from.base != nil { // one wait of a sum, so that histories do not multiply
			return a.step(from.base, event{kind: elapsed, advance: from.aged + e.advance})
		}
		deadline, err := a.stirs(from)
		if err != nil {
			return nil, err
		}
		if deadline == 0 || e.advance < deadline {
			n := &node{parent: from, event: e, next: map[event]*node{}, steps: from.steps, pending: from.pending,
				channels: from.channels, closed: from.closed, base: from, aged: e.advance, asked: true}
			if deadline > 0 {
				n.deadline = deadline - e.advance
			}
			return a.add(n), nil
		}
	}
	n := &node{parent: from, event: e, next: map[event]*node{}, steps: from.steps}
	if e.kind == replied || e.kind == cut {
		n.steps++
	}
	if err := a.extract(n); err != nil {
		return nil, err
	}
	return a.add(n), nil
}

// deadline is the time in ms after which a parked client stirs by itself; 0
// means never.
func (a *automaton) deadline(n *node) (int64, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return a.stirs(n)
}

// stirs is deadline with the mutex of n held.
func (a *automaton) stirs(n *node) (int64, error) {
	if n.asked {
		return n.deadline, nil
	}
	err := a.time(n)
	return n.deadline, err
}

// path lists the nodes from below the root to n.
func path(n *node) []*node {
	var nodes []*node
	for ; n != nil && n.parent != nil; n = n.parent {
		nodes = append(nodes, n)
	}
	slices.Reverse(nodes)
	return nodes
}

package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

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
	next   map[event]*node

	steps    int      // answered or broken so far
	pending  []step   // steps that wait for an answer
	channels []string // subscriptions
	closed   []int    // database connections it has hung up
	deadline int64    // ms from here until it stirs by itself; 0: never
	done     bool
	result   result

	// A node that differs from base only by time that has passed.
	base *node
	aged int64
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
	runs  *atomic.Int64
}

func newAutomaton(entry schemes.Entry, r role, times schemes.Config, retries int, runs *atomic.Int64) (*automaton, error) {
	a := &automaton{entry: entry, role: r, times: times, retries: retries, ends: map[result]*node{}, runs: runs}
	root := &node{next: map[event]*node{}}
	if err := a.extract(nil, root); err != nil {
		return nil, err
	}
	a.root = a.add(root)
	return a, nil
}

// add gives a node its id; ends that differ in nothing that matters later are
// one node. The mutex is held, or nobody else knows a yet.
func (a *automaton) add(n *node) *node {
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
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.follow(from, e)
}

func (a *automaton) follow(from *node, e event) (*node, error) {
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

func (a *automaton) discover(from *node, e event) (*node, error) {
	if e.kind == elapsed {
		if from.base != nil { // one wait of a sum, so that histories do not multiply
			return a.follow(from.base, event{kind: elapsed, advance: from.aged + e.advance})
		}
		if from.deadline == 0 || e.advance < from.deadline {
			n := &node{parent: from, event: e, next: map[event]*node{}, steps: from.steps, pending: from.pending,
				channels: from.channels, closed: from.closed, base: from, aged: e.advance}
			if from.deadline > 0 {
				n.deadline = from.deadline - e.advance
			}
			return a.add(n), nil
		}
	}
	n := &node{parent: from, event: e, next: map[event]*node{}, steps: from.steps}
	if e.kind == replied || e.kind == cut {
		n.steps++
	}
	if err := a.extract(n, n); err != nil {
		return nil, err
	}
	return a.add(n), nil
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

// horizon is how long a client that waits is given to stir by itself.
const horizon = 24 * time.Hour

// extract runs the scheme's code along the events that lead to n and writes
// what it does then into n.
func (a *automaton) extract(to, n *node) error {
	a.runs.Add(1)
	var err error
	bubble(func() {
		run := a.start()
		defer run.end()
		err = run.replay(path(to))
		if err == nil {
			err = run.observe(n)
		}
	})
	return err
}

// run is one client process inside a bubble.
type run struct {
	a        *automaton
	wire     *wire
	redis    *redis.Client
	sql      *sqlSide
	cancel   context.CancelFunc
	returned chan struct{}
	result   result
	panicked any
}

func (a *automaton) start() *run {
	ctx, cancel := context.WithCancel(context.Background())
	r := &run{a: a, wire: newWire(), cancel: cancel, returned: make(chan struct{})}
	r.redis = redis.NewClient(clientOptions(r.wire, a.retries))
	env := schemes.Env{Redis: r.redis, Client: a.role.client, Config: a.times}
	if a.entry.Stores.SQL {
		r.sql = openSQL(r.wire, a.role.op)
		env.DB = r.sql.db
	}
	go func() {
		defer close(r.returned)
		defer r.wire.stir()
		defer func() { r.panicked = recover() }()
		r.result = perform(ctx, a.entry.Scheme, env, a.role)
	}()
	return r
}

// bufferSize is that of a connection; the library's 32 KiB would be most of the
// cost of a run.
const bufferSize = 512

// clientOptions are those of a go-redis client that differs from the default
// only where virtual time or the lack of a network force it: no names to
// resolve, no timeouts of its own (they are the faults), no random back-off
// between retries.
func clientOptions(w *wire, retries int) *redis.Options {
	return &redis.Options{
		Addr:                     "127.0.0.1:6379",
		Dialer:                   w.dial,
		Protocol:                 2,
		MaxRetries:               retries,
		MinRetryBackoff:          -1,
		MaxRetryBackoff:          -1,
		ReadTimeout:              -1,
		WriteTimeout:             -1,
		ReadBufferSize:           bufferSize,
		WriteBufferSize:          bufferSize,
		PipelineReadBufferSize:   bufferSize,
		PipelineWriteBufferSize:  bufferSize,
		DisableIdentity:          true,
		MaintNotificationsConfig: noMaintenance(),
	}
}

func (r *run) end() {
	r.cancel()
	r.wire.kill()
	<-r.returned
	r.redis.Close()
	if r.sql != nil {
		r.sql.close()
	}
	time.Sleep(time.Minute) // what go-redis started sleeps between its attempts
}

// settle waits until the client is parked, timers of no length included.
func (r *run) settle() {
	parked()
	if len(r.wire.pending()) == 0 && !r.isDone() {
		time.Sleep(time.Nanosecond) // go-redis sleeps for 0 between retries
		parked()
	}
	select {
	case <-r.wire.activity:
	default:
	}
}

func (r *run) isDone() bool {
	select {
	case <-r.returned:
		return true
	default:
		return false
	}
}

// replay makes the events happen, and compares where the client is parked each
// time with what was recorded.
func (r *run) replay(nodes []*node) error {
	r.settle()
	for i, n := range nodes {
		if n.base != nil && i+1 < len(nodes) && nodes[i+1].event.kind == elapsed {
			return fmt.Errorf("two waits in a row in %s", r.a.entry.Scheme.Name())
		}
		places := r.wire.pending()
		if err := r.compare(n.parent, places); err != nil {
			return err
		}
		switch e := n.event; e.kind {
		case replied:
			if p := places[e.index]; p.call != nil {
				r.wire.answerSQL(p.call, e.text)
			} else {
				p.conn.reply(e.text)
			}
		case cut:
			if p := places[e.index]; p.call != nil {
				r.wire.cutSQL(p.call)
			} else {
				p.conn.cut()
			}
		case told:
			words := splitArgs(e.text)
			r.wire.publish(words[0], words[1])
		case elapsed:
			time.Sleep(time.Duration(e.advance) * time.Millisecond)
		}
		r.settle()
	}
	return nil
}

// compare says whether the client is parked where it was the first time.
func (r *run) compare(n *node, places []place) error {
	seen := describe(steps(places), r.isDone())
	recorded := describe(n.pending, n.done)
	if seen == recorded {
		return nil
	}
	var events []string
	for _, p := range path(n) {
		events = append(events, p.event.String())
	}
	return &NonDeterminismError{Scheme: r.a.entry.Scheme.Name(), After: strings.Join(events, "; "), Recorded: recorded, Seen: seen}
}

func describe(pending []step, done bool) string {
	switch {
	case done:
		return "return"
	case len(pending) == 0:
		return "wait"
	}
	words := make([]string, len(pending))
	for i, s := range pending {
		words[i] = s.String()
	}
	return strings.Join(words, " and ")
}

func steps(places []place) []step {
	list := make([]step, len(places))
	for i, p := range places {
		list[i] = p.step
	}
	return list
}

// observe writes down where the client is, and when it would stir by itself.
func (r *run) observe(n *node) error {
	name := r.a.entry.Scheme.Name()
	if r.wire.outside != nil {
		return fmt.Errorf("%w: %s: %w", ErrScheme, name, r.wire.outside)
	}
	n.pending = steps(r.wire.pending())
	n.channels = r.wire.subscriptions()
	r.wire.mu.Lock()
	n.closed = slices.Clone(r.wire.closed)
	r.wire.mu.Unlock()
	n.done = r.isDone()
	if n.done {
		if r.panicked != nil {
			return fmt.Errorf("%w: %s panicked: %v", ErrScheme, name, r.panicked)
		}
		n.result = r.result
		n.channels = nil
	}
	before := len(n.pending)
	began := time.Now()
	timer := time.NewTimer(horizon)
	defer timer.Stop()
	select {
	case <-r.wire.activity:
		parked()
		n.deadline = (time.Since(began) + time.Millisecond - 1).Milliseconds()
	case <-timer.C:
	}
	if n.done && (before > 0 || n.deadline > 0) {
		return fmt.Errorf("%w: %s goes on working after it has answered: %s", ErrScheme, name, describe(steps(r.wire.pending()), false))
	}
	if !n.done && before == 0 && n.deadline == 0 {
		return fmt.Errorf("%w: %s waits for ever: no command, no timer", ErrScheme, name)
	}
	return nil
}

// encodeOrders packs durable orders for a result.
func encodeOrders(list []model.Order) string {
	var words []string
	for _, o := range list {
		words = append(words, o.Request, strconv.FormatInt(o.Qty, 10))
	}
	return joinArgs(words)
}

package explore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
	"stockproof/schemes"
)

// horizon is how long a client that waits is given to stir by itself.
const horizon = 24 * time.Hour

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
	stood    time.Duration // virtual time since it came to where it stands
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
		roomyStack(0)
		r.result = perform(ctx, a.entry.Scheme, env, a.role)
	}()
	return r
}

// roomyStack makes the caller's stack as large as go-redis needs it, at once
// and while there is nothing on it to move.
//
//go:noinline
func roomyStack(at int) byte {
	var room [12 << 10]byte
	return room[at]
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

// follow makes the event that leads to n happen to a client that stands at the
// node before.
func (r *run) follow(n *node) error {
	places := r.wire.pending()
	if r.stood == 0 {
		if err := r.compare(n.parent, places); err != nil {
			return err
		}
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
		time.Sleep(time.Duration(e.advance)*time.Millisecond - r.stood)
		r.stood = 0
	}
	r.settle()
	return nil
}

// compare says whether the client is parked where it was the first time.
func (r *run) compare(n *node, places []place) error {
	if r.isDone() == n.done && slices.EqualFunc(n.pending, places, func(s step, p place) bool { return s == p.step }) {
		return nil
	}
	var events []string
	for _, p := range path(n) {
		events = append(events, p.event.String())
	}
	return &NonDeterminismError{Scheme: r.a.entry.Scheme.Name(), After: strings.Join(events, "; "),
		Recorded: describe(n.pending, n.done), Seen: describe(steps(places), r.isDone())}
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

// observe writes down where the client is. One that has answered must be at
// rest, and one without a step is asked at once when it stirs.
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
	if len(n.pending) > 0 && !n.done {
		return nil
	}
	r.wait(n)
	if n.done && (len(n.pending) > 0 || n.deadline > 0) {
		return fmt.Errorf("%w: %s goes on working after it has answered: %s", ErrScheme, name, describe(steps(r.wire.pending()), false))
	}
	if !n.done && n.deadline == 0 {
		return fmt.Errorf("%w: %s waits for ever: no command, no timer", ErrScheme, name)
	}
	return nil
}

// wait lets time pass until the client stirs by itself and writes down when
// that was.
func (r *run) wait(n *node) {
	began := time.Now()
	timer := time.NewTimer(horizon)
	defer timer.Stop()
	select {
	case <-r.wire.activity:
		parked()
		n.deadline = (time.Since(began) + time.Millisecond - 1).Milliseconds()
	case <-timer.C:
	}
	n.asked = true
	r.stood = time.Since(began)
}

// encodeOrders packs durable orders for a result.
func encodeOrders(list []model.Order) string {
	var words []string
	for _, o := range list {
		words = append(words, o.Request, strconv.FormatInt(o.Qty, 10))
	}
	return joinArgs(words)
}

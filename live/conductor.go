package live

import (
	"context"
	"database/sql"
	"errors"
	"sync"
	"time"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/schemes"
)

// conductor is the gate of one run: it lets one step at a time through to the
// stores, reads the counter after each, and applies the fault at its placement.
//
// Redis executes one command at a time anyway, so passing them one by one takes
// no behaviour away, and reading the counter in between shows every value it
// ever had. A PostgreSQL statement may block on another transaction; when the
// server says that it does, the next step is let through.
type conductor struct {
	placement faults.Placement
	random    *randomFaults // of a soak, instead of the placement; nil otherwise
	server    *serverFault  // nil unless that is what goes wrong
	clients   int
	observe   func(context.Context) (int64, error) // reads the counter, past the proxies
	blockers  func() *sql.DB                       // asks PostgreSQL who waits; nil without SQL
	processes []clients.Client

	began time.Time
	turn  chan struct{} // holds one token while a step is at a store

	mu        sync.Mutex
	log       []Step
	marks     []mark
	index     map[stepKey]int // into log
	flying    map[stepKey]*flight
	serves    []clients.Operation // by client: what it is serving
	last      *int64              // counter after the last step
	lowest    *int64
	unwatched error // why the counter could not be followed
	taken     map[string]int64
	fired     bool
	failure   error // a fault that could not be applied

	parked  chan struct{}   // closed when the placement's client stands still
	release chan struct{}   // closed when it may go on
	arrived map[int]bool    // clients that came to the barrier, and whether by a step
	came    []chan struct{} // by client: closed when it came
	goOn    []chan struct{} // by client: closed when it may leave
	idle    *sync.Cond      // nothing is flying
}

type stepKey struct{ client, n int }

// flight is a step that was forwarded and has neither a reply nor an end yet.
type flight struct {
	step     wire.Step
	op       clients.Operation // that it is of
	hasTurn  bool
	replied  bool
	blocked  chan struct{} // closed when the server says it waits for a lock
	returned chan struct{} // closed at its reply or end
}

func newConductor(p faults.Placement, n int, observe func(context.Context) (int64, error), initial int64, blockers func() *sql.DB) *conductor {
	c := &conductor{
		placement: p, clients: n, processes: make([]clients.Client, n), observe: observe, blockers: blockers,
		began: time.Now(), turn: make(chan struct{}, 1), index: map[stepKey]int{}, flying: map[stepKey]*flight{},
		serves: make([]clients.Operation, n), last: &initial, lowest: &initial, taken: map[string]int64{},
		parked: make(chan struct{}), release: make(chan struct{}), arrived: map[int]bool{},
	}
	for range n {
		c.came, c.goOn = append(c.came, make(chan struct{})), append(c.goOn, make(chan struct{}))
	}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// sit puts a client in its place.
func (c *conductor) sit(client int, proc clients.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes[client] = proc
}

// serving notes which operation a client's next steps belong to.
func (c *conductor) serving(client int, op clients.Operation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serves[client] = op
	c.random.serving(client)
}

// join adds a place to a run under way, for who comes after one that was killed; it
// answers its number.
func (c *conductor) join() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.processes, c.serves = append(c.processes, nil), append(c.serves, clients.Operation{})
	c.came, c.goOn = append(c.came, make(chan struct{})), append(c.goOn, make(chan struct{}))
	return len(c.processes) - 1
}

// here says whether the placement is at this step.
func (c *conductor) here(s wire.Step) bool {
	p := c.placement
	return s.Client == p.Client && s.N == p.Step && (p.Kind != faults.None || p.Order == faults.Preempted) &&
		(p.At == "" || p.At == commandName(s))
}

// faultAt is the fault placed on a step; faults.None also where the placement is
// one of order only.
func (c *conductor) faultAt(s wire.Step) (kind faults.Kind, here bool) {
	if c.random != nil {
		return c.random.at(s)
	}
	return c.placement.Kind, c.here(s)
}

// note appends the step to the log; call it with mu held.
func (c *conductor) note(s wire.Step) {
	c.index[stepKey{s.Client, s.N}] = len(c.log)
	now := time.Since(c.began)
	c.log = append(c.log, Step{
		Client: s.Client, N: s.N, Server: s.Server, Command: commandText(s), Name: commandName(s),
		Request: c.serves[s.Client].Request, At: now, began: now, sent: s,
	})
}

// mark is something that is no step: it happened after so many steps of the log.
type mark struct {
	steps  int
	at     time.Duration // since the run began
	resume int           // client that runs again, plus 1
	event  schedule.Event
}

// happened notes what is no step.
func (c *conductor) happened(m mark) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m.steps, m.at = len(c.log), time.Since(c.began)
	c.marks = append(c.marks, m)
}

func (c *conductor) logged(s wire.Step) *Step { return &c.log[c.index[stepKey{s.Client, s.N}]] }

// Request holds the step until it is its turn.
func (c *conductor) Request(ctx context.Context, s wire.Step) wire.RequestAction {
	lost := false
	if kind, here := c.faultAt(s); here {
		lost = kind == faults.RequestLost
	}
	if lost && c.random == nil {
		return c.lose(s)
	}
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return wire.Lose // its client is dead, or the run is over
	}
	if lost { // between the steps of others, as everything else
		defer func() { <-c.turn }()
		return c.lose(s)
	}
	_, here := c.faultAt(s)
	action, err := c.server.comes(context.WithoutCancel(ctx), s, here)
	if err != nil {
		c.fail(err)
	}
	f := &flight{step: s, hasTurn: true, blocked: make(chan struct{}), returned: make(chan struct{})}
	c.mu.Lock()
	c.note(s)
	f.op = c.serves[s.Client]
	c.flying[stepKey{s.Client, s.N}] = f
	if action != wire.Forward { // it comes to a server that stands still
		c.logged(s).Fault = faults.RedisFreeze
		c.giveTurn(f)
		c.mu.Unlock()
		return action
	}
	c.mu.Unlock()
	if s.Server == wire.Postgres && c.blockers != nil {
		go c.watchBlocked(f)
	}
	return wire.Forward
}

// lose keeps the step from the server.
func (c *conductor) lose(s wire.Step) wire.RequestAction {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.note(s)
	c.logged(s).Fault = faults.RequestLost
	c.fired = true
	c.random.strikes(s.Client, faults.RequestLost)
	return wire.Lose
}

// askBlockedEvery is how often PostgreSQL is asked whether a statement waits for
// a lock: most statements are over before the first time.
const askBlockedEvery = 8 * time.Millisecond

// watchBlocked gives the turn away when PostgreSQL says that the statement
// waits for a lock, because only another client's step can end that.
func (c *conductor) watchBlocked(f *flight) {
	ticker := time.NewTicker(askBlockedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-f.returned:
			return
		case <-ticker.C:
		}
		waits, err := waitsForRow(context.Background(), c.blockers(), f.step.BackendPID)
		if err != nil && c.server.hitsPostgres() {
			continue // it may be on its way down or up; the statement ends with it
		}
		if err != nil {
			c.fail(err)
			return
		}
		if waits {
			c.mu.Lock()
			defer c.mu.Unlock()
			if !f.replied { // otherwise the news is old
				c.logged(f.step).Blocked = true
				c.giveTurn(f)
				close(f.blocked)
			}
			return
		}
	}
}

// giveTurn lets the next step through; call it with mu held.
func (c *conductor) giveTurn(f *flight) {
	if f.hasTurn {
		f.hasTurn = false
		<-c.turn
	}
}

// land ends a flight; call it with mu held.
func (c *conductor) land(s wire.Step) *flight {
	key := stepKey{s.Client, s.N}
	f := c.flying[key]
	if f == nil {
		return nil
	}
	delete(c.flying, key)
	close(f.returned)
	if len(c.flying) == 0 {
		c.idle.Broadcast()
	}
	return f
}

// Reply reads the counter, logs the step, and applies the fault placed here.
func (c *conductor) Reply(ctx context.Context, s wire.Step, r wire.Reply) wire.ReplyAction {
	c.mu.Lock()
	f := c.flying[stepKey{s.Client, s.N}]
	mine := f != nil && f.hasTurn
	if f != nil {
		f.replied = true
	}
	c.mu.Unlock()
	if f == nil {
		return wire.Deliver
	}
	if !mine { // it was blocked and gave its turn away
		c.turn <- struct{}{}
		c.mu.Lock()
		f.hasTurn = true
		c.mu.Unlock()
	}
	ctx = context.WithoutCancel(ctx)
	wrote, wroteErr := c.server.came(ctx)
	if wroteErr != nil {
		c.fail(wroteErr)
	}
	c.look(ctx, func(units int64, err error) {
		entry := c.logged(s)
		entry.Reply, entry.reply, entry.At, entry.Wrote = r.Text, r, time.Since(c.began), wrote
		c.seen(f.op, entry, units, err)
	})
	kind, here := c.faultAt(s)
	if here && c.server != nil {
		if err := c.server.strike(ctx); err != nil {
			c.fail(err)
		}
		c.look(ctx, func(units int64, err error) { c.changed(units, err) })
	}
	c.mu.Lock()
	entry := c.logged(s)
	if c.giveTurn(f); here && kind != faults.None {
		entry.Fault = kind
	}
	c.mu.Unlock()
	action := wire.Deliver
	switch {
	case here:
		action = c.apply(ctx, s, kind)
	case c.placement.Order == faults.Barrier && s.N == 1:
		c.meet(ctx, s.Client)
	}
	// Only now is the step over: a run that is judged has seen what became of
	// the fault.
	c.mu.Lock()
	c.land(s)
	c.mu.Unlock()
	return action
}

// look reads the counter and calls then with mu held. While Redis stands still
// the counter does, too.
func (c *conductor) look(ctx context.Context, then func(units int64, err error)) {
	if !c.server.standsStill() {
		units, err := c.observe(ctx)
		c.mu.Lock()
		defer c.mu.Unlock()
		then(units, err)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last == nil {
		then(0, schemes.ErrNoStock)
		return
	}
	then(*c.last, nil)
}

// changed takes an observation into account that is no step's doing; call it with
// mu held. A counter that is not there is known: it is not below zero.
func (c *conductor) changed(units int64, err error) (there bool) {
	switch {
	case errors.Is(err, schemes.ErrNoStock):
		c.last = nil
		return false
	case err != nil:
		c.unwatched, c.last = err, nil
		return false
	}
	c.last = &units
	if c.lowest == nil || units < *c.lowest {
		c.lowest = &units
	}
	return true
}

// seen takes the observation after a step into account; call it with mu held.
func (c *conductor) seen(now clients.Operation, entry *Step, units int64, err error) {
	was := c.last
	if !c.changed(units, err) {
		return
	}
	entry.Counter = &units
	if was != nil {
		// A step that writes a computed value over somebody else's restock makes
		// the counter fall by more than its request asked for; it is one
		// deduction all the same.
		c.taken[now.Request] += min(*was-units, now.Qty)
	}
}

// apply puts the fault into effect before the client sees a byte of the reply.
func (c *conductor) apply(ctx context.Context, s wire.Step, kind faults.Kind) wire.ReplyAction {
	c.mu.Lock()
	proc := c.processes[s.Client]
	c.mu.Unlock()
	c.random.strikes(s.Client, kind)
	switch kind {
	case faults.ClientCrash:
		proc.Kill() // returns when it is gone
		c.fire()
		return wire.LoseReply
	case faults.ClientPause, faults.ClientPauseShort:
		if err := proc.Stop(); err != nil { // returns when it stands still
			c.fail(err)
			return wire.Deliver
		}
		c.fire()
		if c.random != nil {
			c.random.resume(c, s.Client, proc)
			return wire.Deliver
		}
		close(c.parked)
	case faults.ReplyLost, faults.CommitReplyLost:
		c.fire()
		return wire.LoseReply
	case faults.None: // preempted
		c.fire()
		close(c.parked)
		select {
		case <-c.release:
		case <-ctx.Done():
		}
	}
	return wire.Deliver
}

func (c *conductor) fire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fired = true
}

func (c *conductor) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failure = errors.Join(c.failure, err)
}

// meet holds a client after its first step until every client made it and it is
// told to go on.
func (c *conductor) meet(ctx context.Context, client int) {
	c.arrive(client, true)
	select {
	case <-c.goOn[client]:
	case <-ctx.Done():
	}
}

// arrive counts a client at the barrier. One that ends without a step must not
// keep the others waiting, but then the barrier did not do what it is for.
func (c *conductor) arrive(client int, stepped bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.arrived[client]; known || c.placement.Order != faults.Barrier {
		return
	}
	c.arrived[client] = stepped
	close(c.came[client])
	c.fired = len(c.arrived) == c.clients
	for _, stepped := range c.arrived {
		c.fired = c.fired && stepped
	}
}

// Gone ends the flight of a step whose reply will not be delivered.
func (c *conductor) Gone(s wire.Step, _ error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.land(s); f != nil {
		c.giveTurn(f)
	}
}

// blockedNow is closed when the client's present statement waits for a lock,
// nil when it has none at the server.
func (c *conductor) blockedNow(client int) <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, f := range c.flying {
		if key.client == client {
			return f.blocked
		}
	}
	return nil
}

// rest waits until no step is on its way to or at a store.
func (c *conductor) rest() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.flying) > 0 {
		c.idle.Wait()
	}
}

// mayDie says whether the fault of this run ends the client's process.
func (c *conductor) mayDie(client int) bool {
	p := c.placement
	return client == p.Client && (p.Kind == faults.ClientCrash || p.ThenCrash)
}

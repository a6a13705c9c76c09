package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/schemes"
)

// Replay runs a schedule on the real servers: every step is held at its proxy
// until its turn, faults happen by signal and on the wire, leases really end.
// Each command, reply, counter and answer, the end, and the laws that are
// broken must be those of the schedule; the error is a
// *schedule.DivergenceError where they are not. A *CannotError says what of the
// schedule real servers cannot be made to do, and ErrTooSlow that the machine
// stood still for so long that the replay shows nothing: neither is a pass.
//
// Times of the schedule are stretched, all by the same factor, because real
// steps take time; what crosses the wire is compared in the schedule's own.
func (w *World) Replay(ctx context.Context, s *schedule.Schedule, o ReplayOptions) error {
	entry, err := schemes.ByName(s.Scheme)
	if err != nil {
		return err
	}
	if reasons := Cannot(s); len(reasons) > 0 {
		return &CannotError{Reasons: reasons}
	}
	if o.Loss == "" {
		o.Loss = AOFTail
	}
	if !slices.Contains(Losses(), o.Loss) {
		return fmt.Errorf("unknown loss %q", o.Loss)
	}
	var reasons []string
	if o.Loss, reasons = setUp(s, o.Loss); len(reasons) > 0 {
		return &CannotError{Reasons: reasons}
	}
	o.keepAt, o.databaseKeepAt = -1, -1
	if loses := slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Kind == schedule.Loses }); o.Loss != AOFTail && loses {
		if o.keepAt, err = w.whatToKeep(ctx, entry, s); err != nil {
			return err
		}
	}
	_, err = w.replayPatiently(ctx, entry, s, o)
	return err
}

// whatToKeep finds the step, from 0, before which Redis stood where it comes back
// to. Only a replay tells which steps write.
func (w *World) whatToKeep(ctx context.Context, entry schemes.Entry, s *schedule.Schedule) (step int, err error) {
	losses := 0
	for i := range s.Steps {
		if s.Steps[i].Kind == schedule.Loses {
			losses++
		}
	}
	switch {
	case losses == 0:
		return -1, nil
	case losses > 1:
		return 0, &CannotError{Reasons: []string{"Redis loses writes more than once: only " + string(AOFTail) + " can"}}
	}
	return w.replayPatiently(ctx, entry, s, ReplayOptions{Loss: AOFTail, databaseKeepAt: -1})
}

// replayPatiently replays with longer and longer times while the machine is too
// slow. It answers the line of the first write that was lost.
func (w *World) replayPatiently(ctx context.Context, entry schemes.Entry, s *schedule.Schedule, o ReplayOptions) (kept int, err error) {
	for _, stretch := range stretches(s) {
		var other *otherGoroutineError
		for range goroutineChoices {
			kept, err = w.replayOnce(ctx, entry, s, o, stretch)
			var earlier *keepEarlierError
			if errors.As(err, &earlier) {
				o.databaseKeepAt = earlier.step
				continue
			}
			if errors.Is(err, ErrTooSlow) || !errors.Is(err, errWroteEarly) && !errors.As(err, &other) {
				break
			}
		}
		if errors.Is(err, ErrTooSlow) {
			continue
		}
		switch {
		case errors.As(err, &other):
			err = other.diverged
		case errors.Is(err, errWroteEarly):
			err = &CannotError{Reasons: []string{fmt.Sprintf("%v, in each of %d replays", err, goroutineChoices)}}
		}
		break
	}
	return kept, err
}

// otherGoroutineError is a divergence at a watchdog's step. When a client that
// stood still goes on, its watchdog and its operation are both due, and which of
// the two runs first, so whether the lock is renewed once more, is for the
// scheduler of its Go runtime to say. What the schedule says is then tried again.
type otherGoroutineError struct{ diverged error }

func (e *otherGoroutineError) Error() string { return e.diverged.Error() }
func (e *otherGoroutineError) Unwrap() error { return e.diverged }

// goroutineChoices is how often it is tried: the other choice was seen about once
// in ten times.
const goroutineChoices = 16

// ReplayOptions choose how a replay does what a schedule leaves open.
type ReplayOptions struct {
	// Loss is how Redis comes to lose writes; empty: AOFTail.
	Loss Loss

	keepAt         int // see ownRedis
	databaseKeepAt int // see replayDatabase
}

// CannotError lists what a schedule asks for and real servers cannot be made to
// do.
type CannotError struct{ Reasons []string }

func (e *CannotError) Error() string {
	return "real servers cannot replay it: " + strings.Join(e.Reasons, "; ")
}

// ErrTooSlow: what a replay saw may be the doing of a machine that was too slow
// for the leases, however far they were stretched.
var ErrTooSlow = errors.New("the machine is too slow for the times of this schedule")

// Cannot lists what of a schedule real servers cannot be made to do, as far as
// it can be told beforehand; empty when nothing.
func Cannot(s *schedule.Schedule) (reasons []string) {
	// Who waits for rows, in the order of arrival: client and connection.
	type waiter struct {
		client string
		conn   int
	}
	var waiting []waiter
	watching := map[string]bool{} // clients
	for i := range s.Steps {
		st := &s.Steps[i]
		if len(st.Words) > 0 {
			switch st.Words[0] {
			case "WATCH", "MULTI":
				watching[st.Client] = true
			case "EXEC", "DISCARD", "UNWATCH":
				delete(watching, st.Client)
			}
		}
		if st.Fault != "" && st.Fault != faults.ClientPause {
			delete(watching, st.Client) // its connection is gone
		}
		if st.Kind == schedule.Loses && len(watching) > 0 {
			reasons = append(reasons, fmt.Sprintf("line %d: a connection that watches a key ends when Redis restarts, and the replay keeps connections", st.Note.Line))
		}
		me := waiter{st.Client, st.Conn}
		switch {
		case st.Kind == schedule.Command && st.Reply.Kind == schedule.Blocked:
			waiting = append(waiting, me)
		case st.Kind == schedule.GoesOn || st.Kind == schedule.Deadlock:
			at := slices.Index(waiting, me)
			if at > 0 && st.Kind == schedule.GoesOn {
				reasons = append(reasons, fmt.Sprintf("line %d: of several statements that wait for a row, PostgreSQL lets the one go on that came first, not the one of client %s",
					st.Note.Line, st.Client))
			}
			if at >= 0 && st.Reply.Kind != schedule.Blocked {
				waiting = slices.Delete(waiting, at, at+1)
			}
		}
	}
	_, servers := setUp(s, AOFTail)
	return append(reasons, servers...)
}

// ReplaysAtOnce is how many replays of a world are worth starting at the same
// time; how many of them really go on is the world's to say.
const ReplaysAtOnce = waiting

// Limits of waiting for what a schedule says comes next. A client that is
// elsewhere is given the shorter: another of its goroutines may be on its way.
const (
	nothingMoves = 5 * time.Second
	isElsewhere  = 1 * time.Second
)

// replay is a replay under way.
type replay struct {
	world   *World
	s       *schedule.Schedule
	entry   schemes.Entry
	options ReplayOptions
	stretch int
	grain   time.Duration // of the schedule, not stretched
	sku     string
	env     schemes.Env     // the observer's
	own     *ownRedis       // nil where the shared one will do
	pg      *replayDatabase // likewise
	loaded  []string        // keys of the article, when it had been loaded
	frozen  bool            // Redis stands still
	kept    int             // the line of the first write that was lost
	gate    *replayGate
	clients map[string]*replayClient
	order   []string // their names, as in the schedule
	proxies []*wire.Proxy

	began  time.Time
	passed time.Duration // by wait lines, stretched
	wasted time.Duration // waiting for what did not come

	stock   schedule.Stock   // the counter now
	lowest  int64            // it ever was
	taken   map[string]int64 // units each request took
	history []replayedOp
}

// replayClient is one client of it. What the gate's goroutines touch as well is
// in the gate.
type replayClient struct {
	spec    schedule.Client
	number  int
	proc    *clients.Process
	op      int  // of the present operation, from 0
	begun   bool // the present operation has begun
	crashed bool
	paused  bool
	touched int // the last line that could make it go on
	// conns are the database connections of the present operation in the order
	// of their first statement: their numbers at the proxy.
	conns   []int
	blocked []*flying // statements that wait for a row
	late    []*flying // requests that are still on their way
	orphans []*flying // statements at the server whose client is gone
}

// replayOnce makes one replay with one stretching of its times.
func (w *World) replayOnce(ctx context.Context, entry schemes.Entry, s *schedule.Schedule, o ReplayOptions, stretch int) (kept int, err error) {
	if needsOwnRedis(s) || needsOwnPostgres(s) {
		if err := w.losing.Acquire(ctx, 1); err != nil {
			return 0, context.Cause(ctx)
		}
		defer w.losing.Release(1)
	}
	if err := w.turns.Acquire(ctx, 1); err != nil {
		return 0, context.Cause(ctx)
	}
	defer w.turns.Release(1)
	limit := runLimit + 2*time.Duration(stretch)*total(s)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("replay not done after %s", limit))
	defer cancel()
	r := &replay{
		world: w, s: s, entry: entry, options: o, stretch: stretch, grain: grain(s),
		sku: fmt.Sprintf("%s-r%d", w.prefix, w.runs.Add(1)), clients: map[string]*replayClient{},
		stock: schedule.Stock{Known: true, Units: s.Stock}, lowest: s.Stock, taken: map[string]int64{},
	}
	defer func() {
		var diverged *schedule.DivergenceError
		r.close(err == nil || errors.As(err, &diverged))
		if err = errors.Join(err, w.Servers.Alive()); err != nil && ctx.Err() != nil {
			err = errors.Join(context.Cause(ctx), err)
		}
	}()
	if err := r.prepare(ctx); err != nil {
		return 0, err
	}
	r.began = time.Now()
	for i := range s.Steps {
		if err := r.do(ctx, i); err != nil {
			return 0, r.exceptCut(i, err)
		}
	}
	// Who is unfinished in the schedule must not be about to finish.
	waits := func(c *replayClient) bool { return len(c.blocked) == 0 }
	if err := r.compareRest(ctx, waits); err != nil {
		return 0, r.judged(err)
	}
	drift := r.drift() // before the leases that are left are waited for
	seen, err := r.conclude(ctx)
	if err != nil {
		return 0, err
	}
	err = s.DivergesAtEnd(seen)
	var diverged *schedule.DivergenceError
	if errors.As(err, &diverged) && diverged.Line != s.Notes[schedule.PartViolates].Line {
		return r.kept, err // every step was as written, so what it came to is not the machine's doing
	}
	return r.kept, r.judgedAt(err, drift)
}

// prepare loads the stock and puts every client behind its proxies.
func (r *replay) prepare(ctx context.Context) error {
	loader, ok := r.entry.Scheme.(schemes.Loader)
	if !ok {
		return fmt.Errorf("scheme %s cannot load a stock", r.s.Scheme)
	}
	r.env = r.world.env(r.times())
	redisAddr := r.world.Servers.RedisAddr
	if needsOwnRedis(r.s) {
		own, err := r.world.startOwnRedis(ctx, r.options.Loss)
		if err != nil {
			return err
		}
		own.grain, own.keepAt = r.scaled(r.grain), r.options.keepAt
		r.own, r.env.Redis, redisAddr = own, own.client, own.relay.Addr()
	}
	postgresAddr := r.world.Servers.PostgresAddr
	if needsOwnPostgres(r.s) {
		if err := r.startDatabase(ctx); err != nil {
			return err
		}
		postgresAddr = r.pg.server.Addr
	}
	if err := loader.Load(ctx, r.env, r.sku, r.s.Stock); err != nil {
		return fmt.Errorf("load stock: %w", err)
	}
	if r.pg != nil {
		var err error
		if r.pg.now, err = r.pg.look(ctx, r.sku); err == nil {
			err = r.pg.persist(ctx)
		}
		if err != nil {
			return err
		}
	}
	if r.own != nil {
		// A snapshot is one of the article as it went on sale.
		if slices.ContainsFunc(r.s.Steps, func(st schedule.Step) bool { return st.Setting == faults.Snapshot }) {
			if err := r.own.keep(ctx); err != nil {
				return err
			}
		}
		now, err := r.own.look(ctx)
		if err != nil {
			return err
		}
		r.loaded = slices.Collect(maps.Keys(now.keys))
	}
	r.gate = newReplayGate(len(r.s.Clients))
	if r.entry.Stores.SQL {
		r.gate.blockers = r.world.db
		if r.pg != nil {
			r.gate.blockers = r.pg.serving.Load
		}
	}
	for i, spec := range r.s.Clients {
		proc, err := r.world.pool.Get()
		if err != nil {
			return err
		}
		r.clients[spec.Name] = &replayClient{spec: spec, number: i, proc: proc}
		r.order = append(r.order, spec.Name)
		setup := clients.Setup{Scheme: r.s.Scheme, Client: spec.Name, Retries: r.s.Retries, Times: r.times()}
		counter := new(wire.Counter)
		if r.entry.Stores.Redis {
			p, err := r.listen(wire.Redis, redisAddr, i, counter)
			if err != nil {
				return err
			}
			setup.RedisAddr = p.Addr()
		}
		if r.entry.Stores.SQL {
			p, err := r.listen(wire.Postgres, postgresAddr, i, counter)
			if err != nil {
				return err
			}
			setup.DSN = r.world.Servers.PostgresDSNAt(p.Addr())
		}
		if err := proc.Configure(ctx, setup); err != nil {
			return err
		}
	}
	return nil
}

func (r *replay) listen(server wire.Server, upstream string, client int, counter *wire.Counter) (*wire.Proxy, error) {
	p, err := wire.Listen(wire.Config{Server: server, Upstream: upstream, Client: client, Counter: counter, Gate: r.gate})
	if err != nil {
		return nil, fmt.Errorf("proxy for client %s: %w", r.s.Clients[client].Name, err)
	}
	r.proxies = append(r.proxies, p)
	return p, nil
}

// close ends the proxies and hands the processes back, and a Redis of its own
// when that is in order.
func (r *replay) close(inOrder bool) {
	for _, c := range r.clients {
		if c.paused || c.begun || c.crashed {
			c.proc.Kill()
		} else {
			r.world.pool.Put(c.proc)
		}
	}
	for _, p := range r.proxies {
		// Its connections are of no use any more, whatever it says.
		_ = p.Close()
	}
	if r.own != nil {
		r.world.giveBack(context.Background(), r.own, inOrder)
	}
	switch {
	case r.pg == nil:
	case inOrder:
		r.world.givePostgresBack(r.pg.ownPostgres)
	default:
		_ = r.pg.close() // it ends with the set at the latest
	}
}

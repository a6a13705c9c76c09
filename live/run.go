package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/semaphore"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/model"
	"stockproof/schemes"
)

// Case is one run to make.
type Case struct {
	Entry     schemes.Entry
	Workload  faults.Workload
	Retries   string // of go-redis: "off" or "default"
	Placement faults.Placement
	// Sham makes of a fault of a server what looks like it and is not: a process
	// that is killed and loses nothing, a replica that was merely frozen, CLIENT PAUSE
	// for a freeze, a policy of eviction that spares the key, a crash after a
	// checkpoint. A run with it must not fire; it is there to convict the proofs.
	Sham bool
}

// Name identifies the case in file names.
func (c Case) Name() string {
	p := c.Placement
	kind := string(p.Kind)
	if p.Setting != faults.NoSetting {
		kind += "-" + string(p.Setting)
	}
	name := fmt.Sprintf("%s.%s.%s.retries-%s", c.Entry.Scheme.Name(), kind, c.Workload.Name, c.Retries)
	if p.Step > 0 {
		name += fmt.Sprintf(".%s%d", faults.ClientName(p.Client), p.Step)
	} else {
		name += "." + string(p.Order)
	}
	if p.Variant > 0 {
		name += fmt.Sprintf(".variant%d", p.Variant)
	}
	if p.ThenCrash {
		name += ".then-crash"
	}
	return name
}

// Run is what happened.
type Run struct {
	Case     Case
	History  histories.History // as recorded: doubts are open
	Worked   []schedule.Answer // rounds of the background role; they are part of no history
	Settled  histories.History // doubts decided from the orders, where there are any
	Decided  int               // how many
	Open     int               // unknowns that stayed
	Steps    []Step
	Fired    bool   // the fault, or the order, took effect
	Proof    string // of a fault of a server: what proves that it did, or why it is not proved
	Findings []model.Finding
	Checked  histories.Checked
	Rest     model.Rest
	// NoCounter: at rest the scheme has no counter, as Read says. That is known, and
	// not the same as one that could not be read.
	NoCounter bool
	Notes     []string // errors the scheme reported, by request
	Elapsed   time.Duration

	audited int64 // the recorder's time when the orders were read
	marks   []mark
	sku     string
	times   schemes.Config
}

// OutcomeOf is what a client's n-th operation, from 0, was answered; Unknown
// when it was not.
func (r *Run) OutcomeOf(client, n int) model.Outcome {
	for _, o := range r.History.Ops {
		if o.Client != client {
			continue
		}
		if n == 0 {
			return o.Outcome
		}
		n--
	}
	return model.Unknown
}

// answers are the operations of the clients: the history without the read at rest.
func (r *Run) answers() []model.Operation {
	return slices.DeleteFunc(slices.Clone(r.History.Ops), func(o model.Operation) bool {
		return o.Client >= len(r.Case.Workload.Clients)
	})
}

// Finding is what the run says of a property.
func (r *Run) Finding(p model.Property) model.Finding {
	for _, f := range r.Findings {
		if f.Property == p {
			return f
		}
	}
	return model.Finding{Property: p, Detail: "not looked at"}
}

// Times a live run uses instead of the published ones.
const (
	// shortLease is a lease that a run can wait for. Nothing but the fault
	// itself may outlast it, so it is only used where a fault leaves a lock
	// behind or must outlast it.
	shortLease = 300 * time.Millisecond
	// shortLeaseSQL is the same for a scheme that commits to disk inside it.
	shortLeaseSQL = 1 * time.Second
	// serverLease outlasts the restart of a server on a busy machine.
	serverLease = 3 * time.Second
	// frozenPatience is how long a client waits for the answer of a server that
	// stands still, where go-redis would wait 3 s.
	frozenPatience = 500 * time.Millisecond
	// lockPatience is how long a client waits for a lock: shorter than
	// shortLease, so that a client that meets a dead holder's lock gives up.
	lockPatience = 100 * time.Millisecond
	lockRetry    = 50 * time.Millisecond
	// runLimit bounds a run; a run that meets it is an error, never a verdict.
	runLimit = 60 * time.Second
	// checkLimit bounds porcupine on one history.
	checkLimit = 10 * time.Second
)

// times of the case's run. A run without a fault, or with a pause that must stay
// shorter than the lease, keeps the published lease of 10 s and more: on a
// busy machine nothing else keeps a lease from ending by itself.
func (c Case) times() schemes.Config {
	t := schemes.Config{Wait: lockPatience, Retry: lockRetry}
	switch {
	case c.Placement.Kind == faults.None, c.Placement.Kind == faults.ClientPauseShort:
	case c.onServer():
		t.Lease = serverLease
	case c.Entry.Stores.SQL:
		t.Lease = shortLeaseSQL
	default:
		t.Lease = shortLease
	}
	if c.Placement.Setting == faults.Wait {
		t.Replicas = 1
	}
	return t
}

// onServer says whether the fault is one of a server, or of those who run it.
func (c Case) onServer() bool {
	_, is := ofServers[c.Placement.Kind]
	return is
}

// stage is a run under way.
type stage struct {
	world     *World
	c         Case
	times     schemes.Config
	soak      *randomFaults // nil for a run with one placement
	sku       string
	env       schemes.Env // the observer's
	rec       *histories.Recorder
	server    *serverFault // nil unless that is what goes wrong
	conductor *conductor
	seats     []*seat
	done      []chan struct{} // by client: closed when its program ended
	errs      chan error
	notes     chan string
	working   sync.Mutex // of
	worked    []schedule.Answer
	atRest    bool // nothing was in flight or leased when the run ended
}

// Run makes one run. An error means that the run says nothing: a server died,
// a fault could not be applied, the time was over. What was recorded until then
// comes with it.
func (w *World) Run(ctx context.Context, c Case) (run *Run, err error) {
	for _, turn := range w.turnsFor(c) {
		if err := turn.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("run %s: %w", c.Name(), context.Cause(ctx))
		}
		defer turn.Release(1)
	}
	began := time.Now()
	c = c.withWork()
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("run %s: not done after %s", c.Name(), runLimit))
	defer cancel()
	n := w.runs.Add(1)
	s := &stage{
		world: w, c: c, times: c.times(), sku: fmt.Sprintf("%s-%d", w.prefix, n), env: w.env(c.times()),
		errs: make(chan error, len(c.Workload.Clients)), notes: make(chan string, operations(c.Workload)),
	}
	defer func() {
		s.close()
		if s.server != nil {
			s.server.end(w, err == nil)
		}
		if err != nil {
			err = fmt.Errorf("run %s: %w", c.Name(), errors.Join(err, context.Cause(ctx), w.Servers.Alive()))
		}
	}()
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.perform(ctx); err != nil {
		return &Run{Case: c, History: s.rec.History()}, err
	}
	run, err = s.collect(ctx)
	run.Elapsed = time.Since(began)
	return run, err
}

// turnsFor is what a run has to wait for: servers of its own, if it needs any, and
// its turn.
func (w *World) turnsFor(c Case) (turns []*semaphore.Weighted) {
	needs := ofServers[c.Placement.Kind]
	if needs.redis {
		turns = append(turns, w.hitting)
	}
	if needs.postgres {
		turns = append(turns, w.crashing)
	}
	return append(turns, w.turns)
}

// operations counts what the clients of a workload do.
func operations(load faults.Workload) int {
	n := 0
	for _, calls := range load.Clients {
		n += len(calls)
	}
	return n
}

// prepare loads the stock and puts every client behind its proxies.
func (s *stage) prepare(ctx context.Context) error {
	loader, ok := s.c.Entry.Scheme.(schemes.Loader)
	if !ok {
		return fmt.Errorf("scheme %s cannot load a stock", s.c.Entry.Scheme.Name())
	}
	reader, ok := s.c.Entry.Scheme.(schemes.Reader)
	if !ok {
		return fmt.Errorf("scheme %s cannot read its stock", s.c.Entry.Scheme.Name())
	}
	var err error
	if s.server, err = s.world.startServerFault(ctx, s.c, s.sku); err != nil {
		return err
	}
	load := func(ctx context.Context, env schemes.Env) error {
		if err := loader.Load(ctx, env, s.sku, s.c.Workload.Stock); err != nil {
			return fmt.Errorf("load stock: %w", err)
		}
		return nil
	}
	if s.server != nil {
		s.server.load, s.server.now, s.server.dsn = load, s.now, s.world.Servers.PostgresDSN("")
	}
	if err := errors.Join(load(ctx, s.now()), s.server.onSale(ctx)); err != nil {
		return err
	}
	observe := func(ctx context.Context) (int64, error) { return reader.Read(ctx, s.now(), s.sku) }
	blockers := func() *sql.DB { return s.now().DB }
	if !s.c.Entry.Stores.SQL {
		blockers = nil
	}
	s.conductor = newConductor(s.c.Placement, len(s.c.Workload.Clients), observe, s.c.Workload.Stock, blockers)
	s.conductor.random, s.conductor.server = s.soak, s.server
	s.seats = make([]*seat, len(s.c.Workload.Clients))
	var taken errgroup.Group
	for i := range s.seats {
		s.done = append(s.done, make(chan struct{}))
		taken.Go(func() (err error) {
			if s.seats[i], err = s.take(ctx, i); err != nil {
				return fmt.Errorf("client %s: %w", faults.ClientName(i), err)
			}
			s.conductor.sit(i, s.seats[i])
			return nil
		})
	}
	if err := taken.Wait(); err != nil {
		return err
	}
	s.rec = histories.NewRecorder(s.c.Name(), s.sku, s.c.Workload.Stock)
	return nil
}

// now is the observer's environment as the servers are now: after a failover it is
// another Redis that is asked.
func (s *stage) now() schemes.Env { return s.server.env(s.env) }

// connect puts a client behind proxies of its own.
func (s *stage) connect(st *seat, client int) (clients.Setup, error) {
	setup := clients.Setup{
		Scheme: s.c.Entry.Scheme.Name(), Client: fmt.Sprintf("%s-%s", faults.ClientName(client), s.sku),
		Retries: s.c.Retries, Times: s.times,
	}
	redisAddr, postgresAddr := s.world.Servers.RedisAddr, s.world.Servers.PostgresAddr
	if s.server != nil && s.server.redis != nil {
		redisAddr = s.server.redis.relay.Addr()
	}
	if s.server != nil && s.server.pg != nil {
		postgresAddr = s.server.pg.server.Addr
	}
	if s.c.Placement.Kind == faults.RedisFreeze && client == s.c.Placement.Client {
		setup.Patience = frozenPatience
	}
	if s.c.Entry.Stores.Redis {
		p, err := st.listen(wire.Redis, redisAddr, client)
		if err != nil {
			return setup, err
		}
		setup.RedisAddr = p.Addr()
	}
	if s.c.Entry.Stores.SQL {
		p, err := st.listen(wire.Postgres, postgresAddr, client)
		if err != nil {
			return setup, err
		}
		if setup.DSN, err = s.world.dsnAt(p.Addr()); err != nil {
			return setup, err
		}
	}
	return setup, nil
}

func (st *seat) listen(server wire.Server, upstream string, client int) (*wire.Proxy, error) {
	p, err := wire.Listen(wire.Config{Server: server, Upstream: upstream, Client: client, Counter: st.counter, Gate: st.gate})
	if err != nil {
		return nil, fmt.Errorf("proxy for client %s: %w", faults.ClientName(client), err)
	}
	st.proxies = append(st.proxies, p)
	return p, nil
}

// request ids carry the SKU: the order number is unique over all runs.
func (s *stage) requestID(client, op int) string {
	return faults.RequestID(client, op) + "@" + s.sku
}

// begin runs a client's program in the background.
func (s *stage) begin(ctx context.Context, client int) {
	go func() {
		defer close(s.done[client])
		defer s.conductor.arrive(client, false)
		for i, call := range s.c.Workload.Clients[client] {
			op := clients.Operation{
				Op: call.Op, SKU: s.sku, Qty: call.Qty, Request: s.requestID(client, i), Buyer: faults.ClientName(client),
			}
			s.conductor.serving(client, op)
			returns := s.called(client, i, op)
			a, err := s.seats[client].Run(ctx, op)
			if errors.Is(err, clients.ErrGone) && s.conductor.mayDie(client) {
				return // the operation stays an open unknown
			}
			if err != nil {
				s.errs <- fmt.Errorf("client %s: %w", faults.ClientName(client), err)
				return
			}
			returns(a)
			s.conductor.happened(mark{event: schedule.Event{Client: faults.ClientName(client), N: i + 1}})
			if a.Err != "" {
				s.notes <- fmt.Sprintf("%s: %s (%s)", faults.RequestID(client, i), a.Outcome, a.Err)
			}
		}
	}()
}

// settleDown waits until the client's program ended, it stands still at the
// placement, it came to the barrier (came is closed), or its statement waits for
// somebody else's lock.
func (s *stage) settleDown(ctx context.Context, client int, came <-chan struct{}) error {
	parked := s.conductor.parked
	if client != s.c.Placement.Client {
		parked = nil
	}
	ticker := time.NewTicker(2 * time.Millisecond) // to notice a new statement
	defer ticker.Stop()
	for {
		select {
		case <-s.done[client]:
			return nil
		case <-parked:
			return nil
		case <-came:
			return nil
		case <-s.conductor.blockedNow(client):
			return nil
		case <-ticker.C:
		case err := <-s.errs:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// perform lets the clients take their turns around the fault.
func (s *stage) perform(ctx context.Context) error {
	p := s.c.Placement
	if p.Order == faults.Barrier {
		return s.meetThenInTurn(ctx)
	}
	for i := range s.seats {
		s.begin(ctx, i)
		if err := s.settleDown(ctx, i, nil); err != nil {
			return err
		}
		// The next client arrives at once and meets what the fault left behind,
		// a lock for example; who comes after it finds every lease over. After a
		// long pause already the next one does.
		if i == p.Client {
			if err := s.server.over(ctx); err != nil {
				return err
			}
		}
		long := p.Kind == faults.ClientPause && i == p.Client
		after := p.Kind != faults.None && p.Kind != faults.ClientPause && p.Kind != faults.ClientPauseShort && i == p.Client+1
		if long || after {
			if err := s.leasesOver(ctx); err != nil {
				return err
			}
		}
	}
	// A client whose statement waited for somebody else's lock comes to its
	// placement only now.
	select {
	case <-s.conductor.parked:
		if err := s.resume(); err != nil {
			return err
		}
	case <-s.done[p.Client]:
	case err := <-s.errs:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.finish(ctx)
}

// meetThenInTurn lets every client make its first step, and then each finish
// its program, both in the order of arrival: what all of them read is stale for
// all but the first.
func (s *stage) meetThenInTurn(ctx context.Context) error {
	for i := range s.seats {
		s.begin(ctx, i)
		if err := s.settleDown(ctx, i, s.conductor.came[i]); err != nil {
			return err
		}
	}
	for i := range s.seats {
		close(s.conductor.goOn[i])
		if err := s.settleDown(ctx, i, nil); err != nil {
			return err
		}
	}
	return s.finish(ctx)
}

// resume ends what holds the placement's client.
func (s *stage) resume() error {
	proc := s.seats[s.c.Placement.Client]
	switch {
	case s.c.Placement.ThenCrash:
		proc.Kill() // as if it had been killed where it stood
		return nil
	case s.c.Placement.Kind == faults.None:
		close(s.conductor.release)
		return nil
	}
	s.conductor.happened(mark{resume: s.c.Placement.Client + 1})
	return proc.Continue()
}

// finish waits until every program ended and nothing is in flight or leased.
func (s *stage) finish(ctx context.Context) error {
	for _, done := range s.done {
		select {
		case <-done:
		case err := <-s.errs:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	select {
	case err := <-s.errs:
		return err
	default:
	}
	for i, st := range s.seats {
		select {
		case <-st.Gone():
			if !s.conductor.mayDie(i) {
				return fmt.Errorf("client %s, when it was done: %w", faults.ClientName(i), st.Err())
			}
		default:
		}
	}
	s.conductor.rest()
	s.atRest = true
	if err := s.leasesOver(ctx); err != nil {
		return err
	}
	return s.server.recovered(ctx)
}

// leasesOver lets time pass until no lease of this SKU is left.
func (s *stage) leasesOver(ctx context.Context) error {
	waited, err := s.world.leasesOver(ctx, s.c.Entry, s.now(), s.sku)
	if waited {
		s.conductor.happened(mark{event: schedule.Event{LeasesOver: true}})
	}
	return err
}

// leasesOver lets time pass until no lease of the SKU is left, and says whether
// there was one. The caller's turn goes to another run meanwhile.
func (w *World) leasesOver(ctx context.Context, e schemes.Entry, env schemes.Env, sku string) (waited bool, err error) {
	leased, ok := e.Scheme.(schemes.Leaser)
	if !ok {
		return false, nil
	}
	keys, err := leaseKeys(ctx, env, leased.LeaseKeys(sku))
	if err != nil {
		return false, err
	}
	for _, key := range keys {
		for {
			left, err := env.Redis.PTTL(ctx, key).Result()
			if err != nil {
				return waited, fmt.Errorf("lease of %s: %w", key, err)
			}
			if left == -2 { // there is no such key
				break
			}
			waited = true
			if left == -1 {
				return waited, fmt.Errorf("lease of %s: it never ends", key)
			}
			if err := w.sleep(ctx, max(left, time.Millisecond)); err != nil {
				return waited, err
			}
		}
	}
	return waited, nil
}

// sleep lets time pass and another run take its turn meanwhile.
func (w *World) sleep(ctx context.Context, d time.Duration) error {
	w.turns.Release(1)
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	// Also when the time is over: the end of the run gives the turn back.
	if err := w.turns.Acquire(context.WithoutCancel(ctx), 1); err != nil {
		return err
	}
	return context.Cause(ctx)
}

// collect reads what is left at rest. Nothing is judged before the history is
// written; see Check.
func (s *stage) collect(ctx context.Context) (*Run, error) {
	run := &Run{Case: s.c, times: s.times}
	defer func() { run.History = s.rec.History() }() // with the read at rest
	c := s.conductor
	c.mu.Lock()
	run.Steps, run.marks, run.sku = slices.Clone(c.log), slices.Clone(c.marks), s.sku
	if s.server != nil {
		c.fired, run.Proof = s.server.fired()
	}
	run.Fired = c.fired || s.c.Placement.Kind == faults.None && s.c.Placement.Order == faults.InTurn
	failure, unwatched := c.failure, c.unwatched
	run.Rest = model.Rest{Initial: s.c.Workload.Stock}
	if unwatched == nil {
		run.Rest.Lowest, run.Rest.Taken = c.lowest, maps.Clone(c.taken)
	}
	c.mu.Unlock()
	if failure != nil {
		return run, failure
	}
	for i := range run.Steps {
		run.Steps[i].Command = s.anonymous(run.Steps[i].Command)
		run.Steps[i].Reply = s.anonymous(run.Steps[i].Reply)
	}
	close(s.notes)
	for n := range s.notes {
		run.Notes = append(run.Notes, s.anonymous(n))
	}
	s.working.Lock()
	run.Worked = slices.Clone(s.worked)
	s.working.Unlock()
	if err := s.world.workDone(ctx, s.c.Entry, s.env, s.sku); err != nil {
		return run, err
	}
	if auditor, ok := s.c.Entry.Scheme.(schemes.Auditor); ok {
		orders, err := auditor.Orders(ctx, s.now(), s.sku)
		if err != nil {
			return run, fmt.Errorf("audit the orders: %w", err)
		}
		run.Rest.Orders = &orders
	}
	run.audited = s.rec.Now()
	if err := s.readAtRest(ctx, run); err != nil {
		return run, err
	}
	// The probe has the published times: a slow machine is not a stuck sale.
	env := s.now()
	env.Config = schemes.Config{}
	probe := clients.Do(ctx, s.c.Entry.Scheme, env, clients.Operation{
		Op: model.Deduct, SKU: s.sku, Qty: 1, Request: "probe@" + s.sku, Buyer: "probe",
	})
	err := errors.Join(context.Cause(ctx), s.world.Servers.Alive())
	if launcher, ok := s.c.Entry.Scheme.(clients.Launcher); ok {
		err = errors.Join(err, launcher.Alive())
	}
	if err != nil {
		return run, fmt.Errorf("probe: %w", err) // no answer of the sale's
	}
	run.Rest.Probe = &probe.Outcome
	return run, nil
}

// readAtRest is the one read that ends every history, made by somebody who is no
// client. It comes after the audit, and so after whatever the audit settles.
func (s *stage) readAtRest(ctx context.Context, run *Run) error {
	handle := s.rec.Call(len(s.seats), model.Read, 0, "")
	left, err := s.c.Entry.Scheme.(schemes.Reader).Read(ctx, s.now(), s.sku)
	switch {
	case errors.Is(err, schemes.ErrNoStock): // known: there is none to read
		run.NoCounter = true
		s.rec.Return(handle, model.Failed, 0)
	case err != nil:
		return fmt.Errorf("read the counter at rest: %w", err)
	default:
		s.rec.Return(handle, model.Value, left)
		run.Rest.Counter = &left
	}
	return nil
}

// anonymous replaces the SKU of the run by one that reads the same every time.
func (s *stage) anonymous(text string) string {
	return strings.ReplaceAll(text, s.sku, "1001")
}

// close hands the seats back.
func (s *stage) close() {
	for i, st := range s.seats {
		s.world.leave(st, s.idle(i))
	}
}

// idle says whether a client answered everything it was asked and can serve
// again. Of a subject, that is one that no fault has hit: nobody can tell it to
// begin anew.
func (s *stage) idle(client int) bool {
	select {
	case <-s.done[client]:
	default:
		return false
	}
	if _, ours := s.seats[client].Client.(*clients.Process); ours {
		return true
	}
	return s.atRest && (client != s.c.Placement.Client || s.c.Placement.Kind == faults.None)
}

package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/schemes"
)

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
		if job, ok := s.c.Entry.Scheme.(schemes.Reconciler); ok {
			s.server.reconcile = func(ctx context.Context, env schemes.Env) error {
				return job.Reconcile(ctx, env, s.sku, s.c.Workload.Stock)
			}
		}
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
		setup.DSN = s.world.Servers.PostgresDSNAt(p.Addr())
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

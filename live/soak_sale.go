package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/schemes"
)

// sale is one sale of a soak under way.
type sale struct {
	*stage
	random *randomFaults
	stop   <-chan struct{} // closed when no further operation shall begin

	mu       sync.Mutex // of the stage's lists, and of
	programs [][]faults.Call
}

// soakSale makes one sale, and says by ready when its clients are there. What was
// recorded comes with an error, too. After stop is closed no operation begins, and those under way end.
func (w *World) soakSale(ctx context.Context, c SoakConfig, number, steps int, history string, ready func(), stop <-chan struct{}) (run *Run, fired map[faults.Kind]int, err error) {
	if _, foreign := c.Entry.Scheme.(clients.Launcher); foreign {
		return nil, nil, fmt.Errorf("soak %s: subjects are not soaked", c.Entry.Scheme.Name())
	}
	ctx, cancel := context.WithTimeoutCause(ctx, saleLimit(c), fmt.Errorf("sale %d: not done after %s", number+1, saleLimit(c)))
	defer cancel()
	if err := w.turns.Acquire(ctx, 1); err != nil {
		return nil, nil, err
	}
	defer w.turns.Release(1)
	began := time.Now()
	plans := make([][]Planned, c.Clients)
	load := faults.Workload{Name: "soak", Stock: c.Stock}
	for i := range plans {
		plans[i] = c.Plan(number, i, steps)
		load.Clients = append(load.Clients, make([]faults.Call, len(plans[i])))
	}
	s := &sale{stop: stop, stage: &stage{
		world: w, c: Case{Entry: c.Entry, Workload: load, Retries: c.Retries, Placement: faults.Placement{Kind: faults.None, Order: faults.InTurn}},
		times: c.times(), sku: fmt.Sprintf("%s-%d", w.prefix, w.runs.Add(1)),
		errs: make(chan error, c.Clients), notes: make(chan string, operations(load)), soak: newRandomFaults(),
	}}
	s.random = s.soak
	s.env = w.env(s.times)
	defer func() {
		s.close()
		if err != nil {
			err = fmt.Errorf("sale %d: %w", number+1, errors.Join(err, context.Cause(ctx), w.Servers.Alive()))
		}
	}()
	if err := s.prepare(ctx); err != nil {
		return nil, nil, err
	}
	ready()
	if history != "" {
		if err := s.rec.SaveTo(history); err != nil {
			return nil, nil, err
		}
	}
	s.programs = make([][]faults.Call, c.Clients)
	defer func() { err = errors.Join(err, s.rec.Close()) }()
	err = s.serveAll(ctx, plans)
	s.c.Workload.Clients = s.programs
	if err != nil || len(s.rec.History().Ops) == 0 { // the time was over before anybody came
		return &Run{Case: s.c, History: s.rec.History()}, s.random.counted(), err
	}
	if run, err = s.collect(ctx); err == nil && run.Unworked != "" {
		err = errors.New(run.Unworked) // a sale that has not come to its end has no verdict
	}
	run.Elapsed = time.Since(began)
	return run, s.random.counted(), err
}

// saleLimit bounds a sale; one that meets it is an error, never a verdict.
func saleLimit(c SoakConfig) time.Duration {
	limit := runLimit
	if c.Rate > 0 {
		limit += time.Duration(float64(c.Clients*c.PerSale) / c.Rate * float64(time.Second))
	}
	return limit + time.Duration(c.PerSale)*time.Second
}

// serveAll runs the plans and waits until everything is at rest.
func (s *sale) serveAll(ctx context.Context, plans [][]Planned) error {
	began := time.Now()
	var serving errgroup.Group
	for i, plan := range plans {
		st := s.seats[i]
		serving.Go(func() error { return s.serve(ctx, i, st, plan, began) })
	}
	// Who stands still while everybody is asked to stop goes on at once.
	done := make(chan struct{})
	var asked sync.WaitGroup
	asked.Go(func() {
		select {
		case <-s.stop:
		case <-ctx.Done():
		case <-done:
		}
		close(s.random.stop)
	})
	err := serving.Wait()
	s.random.paused.Wait()
	close(done)
	asked.Wait()
	if err != nil {
		return err
	}
	s.conductor.rest()
	return s.leasesOver(ctx)
}

// serve is one client of a sale, and who comes in its place when it is killed.
func (s *sale) serve(ctx context.Context, client int, proc clients.Client, plan []Planned, began time.Time) (err error) {
	defer func() { s.over(client) }()
	n := 0
	for i, p := range plan {
		select {
		case <-time.After(time.Until(began.Add(p.At))):
		case <-s.stop:
		case <-ctx.Done():
		}
		select {
		case <-s.stop:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
		}
		if proc == nil {
			s.over(client)
			if client, proc, err = s.restart(ctx); err != nil {
				return err
			}
			n = 0
		}
		s.mu.Lock()
		s.programs[client] = append(s.programs[client], p.Call)
		s.mu.Unlock()
		op := clients.Operation{Op: p.Call.Op, SKU: s.sku, Qty: p.Call.Qty, Request: s.requestID(client, n), Buyer: faults.ClientName(client)}
		s.random.plan(client, p)
		s.conductor.serving(client, op)
		handle := s.rec.Call(client, op.Op, op.Qty, op.Request)
		a, err := proc.Run(ctx, op)
		if errors.Is(err, clients.ErrGone) && s.random.hasKilled(client) {
			proc = nil // the operation stays an open unknown
			continue
		}
		if err != nil {
			return fmt.Errorf("client %s, operation %d: %w", faults.ClientName(client), i+1, err)
		}
		s.rec.Return(handle, a.Outcome, a.Value)
		n++
		s.conductor.happened(mark{event: schedule.Event{Client: faults.ClientName(client), N: n}})
	}
	return nil
}

// over notes that nothing more is asked of a client.
func (s *sale) over(client int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done[client]:
	default:
		close(s.done[client])
	}
}

// restart starts a new process for a client that was killed: another client, as a
// lock's holder and in the history, since it knows nothing of what it was doing.
func (s *sale) restart(ctx context.Context) (client int, proc clients.Client, err error) {
	s.mu.Lock()
	client = s.conductor.join()
	s.seats, s.done, s.programs = append(s.seats, nil), append(s.done, make(chan struct{})), append(s.programs, nil)
	s.mu.Unlock()
	st, err := s.take(ctx, client)
	s.mu.Lock()
	s.seats[client] = st
	s.mu.Unlock()
	if err != nil {
		return client, nil, err
	}
	s.conductor.sit(client, st)
	return client, st, nil
}

// slow says whether, in a sale with a short lease, an operation that no fault
// hit took so long that a lease may have ended without a fault's doing.
func (r *Run) slow() bool {
	limit := r.times.Lease * 2 / 3
	if _, leases := r.Case.Entry.Scheme.(schemes.Leaser); !leases || limit == 0 {
		return false
	}
	type span struct {
		first, last time.Duration
		hit         bool
	}
	spans := map[string]*span{}
	for _, st := range r.Steps {
		sp := spans[st.Request]
		if sp == nil {
			sp = &span{first: st.began}
			spans[st.Request] = sp
		}
		sp.last, sp.hit = st.At, sp.hit || st.Fault != ""
	}
	return slices.ContainsFunc(r.Steps, func(st Step) bool {
		sp := spans[st.Request]
		return !sp.hit && sp.last-sp.first > limit
	})
}

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

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
		run.Vacuous = !c.fired && s.server.vacuous
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
	var fails *roleFailsError
	if err := s.world.workDone(ctx, s.c.Entry, s.now(), s.sku); errors.As(err, &fails) {
		run.Unworked = err.Error()
	} else if err != nil {
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

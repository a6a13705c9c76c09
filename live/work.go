package live

import (
	"context"
	"fmt"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

// withWork is the case with somebody who does the scheme's background role.
func (c Case) withWork() Case {
	if schemes.Works(c.Entry.Scheme) {
		c.Workload = c.Workload.WithWork()
	}
	return c
}

// called writes down that a client begins its n-th operation, from 0, and answers
// what writes down its answer. A round of the background role is no operation of
// the history.
func (s *stage) called(client, n int, op clients.Operation) (returns func(clients.Answer)) {
	if op.Op != model.Work {
		handle := s.rec.Call(client, op.Op, op.Qty, op.Request)
		return func(a clients.Answer) { s.rec.Return(handle, a.Outcome, a.Value) }
	}
	s.working.Lock()
	defer s.working.Unlock()
	at := len(s.worked)
	s.worked = append(s.worked, schedule.Answer{Client: faults.ClientName(client), N: n + 1, Outcome: model.Unknown})
	return func(a clients.Answer) {
		s.working.Lock()
		defer s.working.Unlock()
		s.worked[at].Outcome = a.Outcome
	}
}

// maxRounds bounds the rounds of a background role at rest.
const maxRounds = 100

// failingRounds is after how many rounds that failed the role is left as it is.
const failingRounds = 3

// roleFailsError: the background role does not get on. A run may show by that what is
// broken; what is not is unknown, because the role may still do harm.
type roleFailsError struct{ cause error }

func (e *roleFailsError) Error() string { return "background role at rest: " + e.cause.Error() }
func (e *roleFailsError) Unwrap() error { return e.cause }

// workDone makes rounds of the scheme's background role, past the proxies, until
// one leaves nothing: as it will be in the end where the role goes on for ever.
func (w *World) workDone(ctx context.Context, e schemes.Entry, env schemes.Env, sku string) error {
	worker, ok := e.Scheme.(schemes.Worker)
	if !ok {
		return nil
	}
	failures := 0
	for range maxRounds {
		left, err := worker.Work(ctx, env, sku)
		if err != nil {
			if ctx.Err() != nil || w.Servers.Alive() != nil {
				return fmt.Errorf("background role at rest: %w", err)
			}
			if failures++; failures == failingRounds {
				return &roleFailsError{err}
			}
			continue
		}
		if _, err := w.leasesOver(ctx, e, env, sku); err != nil || !left {
			return err
		}
	}
	return fmt.Errorf("the background role of %s is not done after %d rounds", e.Scheme.Name(), maxRounds)
}

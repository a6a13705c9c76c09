package live

import (
	"context"
	"errors"
	"fmt"

	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/model"
)

// compareAnswers waits for the answers that belong to a line, and looks whether
// there are others.
func (r *replay) compareAnswers(ctx context.Context, i int) error {
	st := &r.s.Steps[i]
	var answers []schedule.Answer
	for _, want := range st.Answers {
		c := r.clients[want.Client]
		if c == nil || !c.begun || c.op+1 != want.N || c.paused {
			continue
		}
		var where string
		_, err := r.await(ctx, nothingMoves, c, func() bool {
			where = r.parkedAt(c)
			return r.gate.answers[c.number] != nil || r.gate.gone[c.number] != nil
		})
		if err != nil {
			return err
		}
		a, ok := r.take(c, i)
		if !ok {
			return r.s.Diverges(i, "the answers "+r.s.AnswersText(st.Answers), where)
		}
		answers = append(answers, a)
	}
	if want, got := r.s.AnswersText(st.Answers), r.s.AnswersText(answers); want != got {
		return r.s.Diverges(i, "the answers "+want, got)
	}
	return r.compareRest(ctx, nil)
}

// compareRest looks for answers that no line tells of, at the line after which
// they came. Clients for whom patience says so may still be about to give one.
func (r *replay) compareRest(ctx context.Context, patience func(*replayClient) bool) error {
	for _, name := range r.order {
		c := r.clients[name]
		if patience != nil && c.begun && !c.paused && patience(c) {
			if _, err := r.await(ctx, isElsewhere, nil, func() bool {
				return r.gate.answers[c.number] != nil || r.gate.gone[c.number] != nil || len(r.gate.parked[c.number]) > 0
			}); err != nil {
				return err
			}
		}
		r.gate.mu.Lock()
		gone := r.gate.gone[c.number]
		r.gate.mu.Unlock()
		if gone != nil && !c.crashed {
			if !errors.Is(gone, clients.ErrGone) {
				return gone
			}
			return fmt.Errorf("client %s: %w", name, gone)
		}
		if c.paused { // a stopped client cannot give its answer
			continue
		}
		if a, ok := r.take(c, c.touched); ok {
			line := c.touched
			if err := r.gaveUp(c); err != nil {
				return err
			}
			return r.s.Diverges(line, "the answers "+r.s.AnswersText(r.s.Steps[line].Answers), r.s.AnswersText([]schedule.Answer{a}))
		}
	}
	return nil
}

// gaveUp says whether a client's library has given up a step that was held here.
func (r *replay) gaveUp(c *replayClient) error {
	if !r.gate.heldTooLong(c.number) {
		return nil
	}
	return fmt.Errorf("%w: a step of client %s was held for more than %s, after which go-redis gives it up", ErrTooSlow, c.spec.Name, libraryPatience)
}

// take takes the answer of a client that has one.
func (r *replay) take(c *replayClient, i int) (schedule.Answer, bool) {
	r.gate.mu.Lock()
	a := r.gate.answers[c.number]
	r.gate.answers[c.number] = nil
	r.gate.mu.Unlock()
	if a == nil || !c.begun {
		return schedule.Answer{}, false
	}
	for k := len(r.history) - 1; k >= 0; k-- {
		op := &r.history[k]
		if op.Client != c.number {
			continue
		}
		op.Outcome, op.Value, op.Open, op.Return = a.Outcome, a.Value, false, 2*int64(i)+1
		op.label.Outcome, op.label.Value = a.Outcome, a.Value
		if op.Outcome == model.Unknown {
			op.Open, op.Return = true, 0
		}
		c.op++
		c.begun = false
		return op.label, true
	}
	return schedule.Answer{}, false
}

// compareStock reads the counter after a step, and notes what the operation
// whose command was executed took from it.
func (r *replay) compareStock(ctx context.Context, i int, by *schedule.Call, request string) error {
	st := &r.s.Steps[i]
	was := r.stock
	if r.frozen && r.entry.Stores.Redis { // so does the counter
		return nil
	}
	got, err := r.counter(ctx)
	if err != nil {
		return err
	}
	r.stock = got
	want := was
	if st.Stock != nil {
		want = *st.Stock
	}
	if r.stock != want {
		return r.s.Diverges(i, "the stock at "+want.String(), r.stock.String())
	}
	if got.Known {
		r.lowest = min(r.lowest, got.Units)
	}
	if by != nil && by.Op == model.Deduct && was.Known && got.Known {
		r.taken[request] += min(was.Units-got.Units, by.Qty)
	}
	return nil
}

package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/model"
)

// replayedOp is an operation that began, with the steps of its call and its
// return as times.
type replayedOp struct {
	model.Operation
	label schedule.Answer
}

// waitMargin is how much longer than a schedule says is waited: a key of Redis
// lives up to a millisecond longer than its time.
const waitMargin = 5 * time.Millisecond

// do makes the i-th step happen and holds it against what is written.
func (r *replay) do(ctx context.Context, i int) (err error) {
	st := &r.s.Steps[i]
	defer func() { err = r.judged(err) }()
	c := r.clients[st.Client]
	if st.Client != "" && c == nil {
		return r.s.Diverges(i, "a client that takes part", st.Client)
	}
	if err := r.listening(ctx, i); err != nil {
		return err
	}
	if r.pg != nil && r.pg.keepAt == i {
		if err := r.pg.persist(ctx); err != nil {
			return err
		}
	}
	var by *schedule.Call // the operation whose command is executed
	var request string
	switch st.Kind {
	case schedule.Command:
		if !c.begun {
			if c.op >= len(c.spec.Calls) || c.crashed {
				return r.s.Diverges(i, "a step of "+c.spec.Name, "that it has nothing left to do")
			}
			r.begin(ctx, c, i)
		}
		by, request = &c.spec.Calls[c.op], c.spec.Request(c.op+1)
		err = r.command(ctx, c, i)
	case schedule.GoesOn, schedule.Deadlock:
		op := min(c.op, len(c.spec.Calls)-1)
		by, request = &c.spec.Calls[op], c.spec.Request(op+1)
		if st.Reply.Kind == schedule.None {
			by = nil
		}
		err = r.goesOn(ctx, c, i)
	case schedule.Arrives, schedule.Never:
		var late *flying
		if late, err = r.late(ctx, c, i); err == nil && st.Kind == schedule.Arrives {
			by, request = &c.spec.Calls[late.op], c.spec.Request(late.op+1)
		}
	case schedule.Wait:
		for _, other := range r.clients {
			other.touched = i
		}
		r.passed += r.scaled(st.Wait)
		err = r.world.sleep(ctx, r.scaled(st.Wait)+waitMargin)
	case schedule.Loses:
		err = r.lose(ctx, i)
	case schedule.Flush:
		err = r.env.Redis.ScriptFlush(ctx).Err()
	case schedule.Restarts, schedule.FallsBehind, schedule.Refuses, schedule.TakesOver, schedule.Freezes, schedule.Thaws, schedule.Evicts, schedule.Expires:
		err = r.befalls(ctx, i)
	case schedule.Resume:
		if c.paused {
			err = c.proc.Continue()
		}
		c.paused = false
	case schedule.Submits:
		if c.begun || c.op >= len(c.spec.Calls) || c.spec.Calls[c.op].As != st.Request {
			err = r.s.Diverges(i, c.spec.Name+" to be about to submit "+st.Request, "that it is not")
		}
	case schedule.Loads, schedule.Reconciles:
		want := schedule.Load
		if st.Kind == schedule.Reconciles {
			want = schedule.Reconcile
		}
		if c.begun || c.op >= len(c.spec.Calls) || c.spec.Calls[c.op].Op != want {
			err = r.s.Diverges(i, fmt.Sprintf("%s to be about to %s", c.spec.Name, want), "that it is not")
		}
	default:
		err = r.s.Diverges(i, "a kind of step that exists", string(st.Kind))
	}
	if err != nil {
		return err
	}
	if c != nil && st.Kind != schedule.Arrives && st.Kind != schedule.Never {
		c.touched = i
	}
	if err := r.committed(ctx, i); err != nil {
		return err
	}
	if err := r.compareAnswers(ctx, i); err != nil {
		return err
	}
	if err := r.compareWoken(ctx, i); err != nil {
		return err
	}
	if err := r.compareStock(ctx, i, by, request); err != nil {
		return err
	}
	return r.settle(ctx, i)
}

// begin starts the client's next operation at a step.
func (r *replay) begin(ctx context.Context, c *replayClient, i int) {
	call, request := c.spec.Calls[c.op], c.spec.Request(c.op+1)
	c.begun, c.conns = true, nil
	r.history = append(r.history, replayedOp{
		Operation: model.Operation{Client: c.number, Op: call.Op, Qty: call.Qty, Call: 2 * int64(i), Open: true, Outcome: model.Unknown, Request: request},
		label:     schedule.Answer{Client: c.spec.Name, N: c.op + 1, Outcome: schedule.Unfinished},
	})
	r.taken[request] += 0
	buyer, _ := faults.SplitRequestID(request)
	op := clients.Operation{Op: call.Op, SKU: r.sku, Qty: call.Qty, Request: request + "@" + r.sku, Buyer: buyer}
	r.gate.mu.Lock()
	r.gate.moved[c.number] = time.Now()
	r.gate.mu.Unlock()
	go func() {
		a, err := c.proc.Run(ctx, op)
		r.gate.answer(c.number, a, err)
	}()
}

// elsewhere says that a client stands at other steps than expected, or none,
// and has not moved for so long that it will not come; the gate's mu is held.
func (r *replay) elsewhere(c *replayClient) bool {
	return len(r.gate.parked[c.number]) > 0 && time.Since(r.gate.moved[c.number]) > isElsewhere
}

// await waits until ready, which is called with the gate's mu held, says so, for
// at most limit, and of a client, unless it is nil, until it stands elsewhere.
// Time spent on what did not come is the schedule's doing, not the machine's.
func (r *replay) await(ctx context.Context, limit time.Duration, c *replayClient, ready func() bool) (come bool, err error) {
	began := time.Now()
	_, err = r.gate.await(ctx, limit, func() bool {
		come = ready()
		return come || c != nil && r.elsewhere(c)
	})
	if !come {
		r.wasted += time.Since(began)
	}
	return come, err
}

// find is the client's parked step that a line means; the gate's mu is held.
func (r *replay) find(c *replayClient, st *schedule.Step) *flying {
	for _, f := range r.gate.parked[c.number] {
		if seen := r.asked(c, f.step); r.sameRequest(st, &seen) {
			return f
		}
	}
	return nil
}

// parkedAt tells where a client stands, as a schedule would write it; the
// gate's mu is held.
func (r *replay) parkedAt(c *replayClient) string {
	switch parked := r.gate.parked[c.number]; {
	case r.gate.answers[c.number] != nil || !c.begun:
		return "that " + c.spec.Name + " is done"
	case len(parked) == 0:
		return "that " + c.spec.Name + " waits"
	default:
		var words []string
		for _, f := range parked {
			seen := r.asked(c, f.step)
			seen.Kind = schedule.Command
			words = append(words, seen.Action())
		}
		return strings.Join(words, " and ")
	}
}

// arrival waits until the client comes with what the line says.
func (r *replay) arrival(ctx context.Context, c *replayClient, i int) (*flying, error) {
	var f *flying
	_, err := r.await(ctx, nothingMoves, c, func() bool {
		f = r.find(c, &r.s.Steps[i])
		return f != nil || r.gate.answers[c.number] != nil || r.gate.gone[c.number] != nil
	})
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, r.isNotThere(ctx, c, i)
	}
	f.op = c.op
	if f.step.Server == wire.Postgres && !slices.Contains(c.conns, f.step.Conn) {
		c.conns = append(c.conns, f.step.Conn)
	}
	return f, nil
}

// isNotThere says where a client stands instead of at line i.
func (r *replay) isNotThere(ctx context.Context, c *replayClient, i int) error {
	if err := r.compareRest(ctx, nil); err != nil { // it has ended before
		return err
	}
	if err := r.gaveUp(c); err != nil { // and went on without the reply
		return err
	}
	r.gate.mu.Lock()
	where := r.parkedAt(c)
	r.gate.mu.Unlock()
	err := r.s.Diverges(i, r.s.Steps[i].Action(), where)
	if renews(&r.s.Steps[i]) || strings.Contains(where, renewal) {
		return &otherGoroutineError{err}
	}
	return err
}

func (r *replay) command(ctx context.Context, c *replayClient, i int) error {
	st := &r.s.Steps[i]
	if c.paused {
		return r.s.Diverges(i, "a step of "+c.spec.Name, "that it is paused")
	}
	f, err := r.arrival(ctx, c, i)
	if err != nil {
		return err
	}
	switch st.Fault {
	case faults.RequestLost:
		r.gate.decide(f, wire.Lose)
		if _, err := r.await(ctx, nothingMoves, nil, func() bool { return f.over }); err != nil {
			return err
		}
		return r.ended(ctx, f)
	case faults.RequestDelayed, faults.RedisFreeze:
		c.late = append(c.late, f)
		r.gate.decide(f, wire.DetachUnless(f.release, f.drop))
		return nil
	}
	if r.own != nil && f.step.Server == wire.Redis {
		if err := r.own.before(ctx, i); err != nil {
			return err
		}
	}
	r.inTransaction(c, f, st)
	r.gate.decide(f, wire.Forward)
	if f.step.Server == wire.Postgres {
		go r.gate.watchBlocked(ctx, f)
	}
	blocked, err := r.served(ctx, c, f, i)
	if err != nil {
		return err
	}
	if r.own != nil && f.step.Server == wire.Redis {
		if err := r.own.after(ctx); err != nil {
			return err
		}
	}
	return r.deliver(ctx, c, f, i, blocked)
}

// served waits for the server's answer, or for the news that the statement
// waits for a row, and compares it.
func (r *replay) served(ctx context.Context, c *replayClient, f *flying, i int) (blocked bool, err error) {
	st := &r.s.Steps[i]
	var seen schedule.Reply
	var ahead []string
	ok, err := r.await(ctx, nothingMoves, nil, func() bool {
		ahead = r.ahead(f)
		if f.answered != nil {
			seen = r.told(f.answered.Answer)
			return true
		}
		if blocked = f.blocked; blocked {
			seen = schedule.Reply{Kind: schedule.Blocked}
		}
		return blocked || f.over
	})
	if err != nil {
		return false, err
	}
	if !ok || seen.Kind == schedule.None {
		return false, r.s.Diverges(i, st.Reply.String(), "no reply")
	}
	if !r.sameReply(st, seen) {
		if len(ahead) > 0 {
			return false, &CannotError{Reasons: []string{fmt.Sprintf(
				"line %d: PostgreSQL let the waiting statement of client %s go on as soon as the row was free, before this line: %v",
				st.Note.Line, strings.Join(ahead, ", "), r.s.Diverges(i, st.Reply.String(), seen.String()))}}
		}
		return false, r.s.Diverges(i, st.Reply.String(), seen.String())
	}
	return blocked, nil
}

// ahead lists the clients with a statement that has gone on before its line;
// the gate's mu is held.
func (r *replay) ahead(but *flying) (names []string) {
	for _, name := range r.order {
		c := r.clients[name]
		for _, f := range slices.Concat(c.blocked, c.orphans) {
			if f != but && f.answered != nil && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// deliver gives the reply to the client, unless the line's fault comes between.
func (r *replay) deliver(ctx context.Context, c *replayClient, f *flying, i int, blocked bool) error {
	st := &r.s.Steps[i]
	switch st.Fault {
	case faults.ClientCrash:
		return r.crash(ctx, c, f, blocked)
	case faults.ReplyLost, faults.CommitReplyLost:
		f.reply <- wire.LoseReply
		return r.ended(ctx, f)
	case faults.ClientPause, faults.ClientPauseShort:
		if err := c.proc.Stop(); err != nil { // returns when it stands still
			return err
		}
		c.paused = true
	}
	if blocked {
		c.blocked = append(c.blocked, f)
		return nil
	}
	f.reply <- wire.Deliver
	return nil
}

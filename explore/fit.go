package explore

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// Fit turns what a live run saw into a complete schedule, by running it: every
// command, reply, fault and counter, the outcomes, the final stock and the
// orders must be those of the draft. Filled in are
//
//   - the waits, each as short as lets the client send what it was seen to
//     send, give the answer that it was seen to give, or ends every lease;
//   - the step at which an answer is due, and who is woken;
//   - what remains of a lease, where a script answers that: it is a reading of
//     a clock, and the clock of a schedule stands still while commands run.
//
// In a schedule an operation begins with its first command and ends with its
// last reply, which are the tightest intervals there can be; so it may violate
// a law more than the run did, and must violate all that the run did.
//
// The error is a *schedule.DivergenceError at the first line that cannot have
// been; the schedule up to that line comes with it. Where there is no error,
// Replay has accepted the schedule.
func Fit(entry schemes.Entry, d *schedule.Draft, engine redisstore.Engine) (*schedule.Schedule, error) {
	var first *schedule.Schedule
	var refused error
	for _, how := range readings {
		if how.unread && !slices.ContainsFunc(d.Steps, func(st schedule.Step) bool { return st.Fault == faults.ClientPause }) {
			continue
		}
		s, err := fit(entry, d, engine, how)
		var diverged *schedule.DivergenceError
		if !errors.As(err, &diverged) {
			return s, err
		}
		if refused == nil { // what the first has to say is the plainest
			first, refused = s, err
		}
	}
	return first, refused
}

// reading is one way to take what the proxies of a live run could not see.
type reading struct {
	// unread: who stands still has not read the reply to its last step. So it is
	// in a live run, where the reply waits in the connection; a search lets the
	// client read it, and what that starts (a watchdog, a wait) run out meanwhile.
	unread bool
	// measured: a client that waits, for a lock say, does something else when the
	// machine was slow. Then the time that was measured passes between the steps.
	measured bool
}

// readings are tried in this order, what a search can find too before what it cannot.
var readings = []reading{{}, {measured: true}, {unread: true}, {unread: true, measured: true}}

// fit is Fit with one reading.
func fit(entry schemes.Entry, d *schedule.Draft, engine redisstore.Engine, how reading) (*schedule.Schedule, error) {
	s := *d.Schedule
	s.Steps, s.Notes = nil, nil
	r, world, err := newReplayer(entry, &s, engine, nil)
	if err != nil {
		return nil, err
	}
	r.fits = true
	r.loses = slices.ContainsFunc(d.Steps, func(st schedule.Step) bool { return st.Kind == schedule.Loses })
	bubble(func() {
		defer r.end()
		err = r.fit(d, how)
	})
	if err == nil {
		err = r.fitEnd(d, world)
	}
	s.Number()
	var diverged *schedule.DivergenceError
	if errors.As(err, &diverged) && diverged.Line == 0 && len(s.Steps) > 0 {
		diverged.Line = s.Steps[len(s.Steps)-1].Note.Line
	}
	if err != nil {
		return &s, err
	}
	return &s, Replay(entry, &s, engine)
}

// fitEnd holds what it came to against the draft.
func (r *replayer) fitEnd(d *schedule.Draft, w *world) error {
	seen, err := r.conclude(w)
	if err != nil {
		return err
	}
	r.s.Violates = seen.Violates
	for _, v := range d.Violates {
		if amount, violated := r.s.Amount(v.Property); !violated || amount != v.Amount {
			r.s.Violates = d.Violates // which is then refused
			break
		}
	}
	r.s.Number()
	return r.s.DivergesAtEnd(seen)
}

// longestFit bounds the time that passes before one step. It is longer than any
// published lease.
const longestFit = time.Minute

func (r *replayer) fit(d *schedule.Draft, how reading) error {
	began := time.Now() // of the bubble
	for i := range d.Steps {
		if err := r.come(d.Before[i]); err != nil {
			return err
		}
		st := d.Steps[i]
		if c := r.clients[st.Client]; st.Kind == schedule.Command && c != nil {
			late := func() bool { return how.measured && time.Since(began) < d.At[i] }
			if _, err := r.pass(func() bool { return r.ready(c, &st) && !late() }); err != nil {
				return err
			}
			if err := r.outwait(&st); err != nil {
				return err
			}
		}
		st.Unread = how.unread && st.Fault == faults.ClientPause
		r.s.Steps = append(r.s.Steps, st)
		if err := r.do(len(r.s.Steps) - 1); err != nil {
			return err
		}
	}
	return r.come(d.Before[len(d.Steps)])
}

// come lets time pass until events have come about.
func (r *replayer) come(events []schedule.Event) error {
	for _, e := range events {
		if e.LeasesOver {
			if _, err := r.pass(func() bool { left, _ := r.now.redis.NextExpiry(); return left == 0 }); err != nil {
				return err
			}
			continue
		}
		c := r.clients[e.Client]
		if c == nil {
			return fmt.Errorf("%w: an answer of %s, who does not take part", ErrConfig, e.Client)
		}
		// Time does not help who waits for a reply.
		stands := func() bool { return c.run == nil || c.paused || len(c.run.wire.pending()) > 0 }
		if _, err := r.pass(func() bool { return c.op >= e.N || stands() }); err != nil {
			return err
		}
		if c.op < e.N {
			seen := "that " + e.Client + " is not in it"
			if c.run != nil {
				seen = c.parkedAt()
			}
			last := len(r.s.Steps) - 1
			if last < 0 {
				return fmt.Errorf("%w: an answer to %s before the first step", ErrConfig, schedule.RequestID(e.Client, e.N))
			}
			return r.s.Diverges(last, "the answer to "+schedule.RequestID(e.Client, e.N)+" after it", seen)
		}
	}
	return nil
}

// ready says whether the client is about to send what a line says, or never
// will.
func (r *replayer) ready(c *replayClient, st *schedule.Step) bool {
	if c.run == nil || c.crashed || c.paused {
		return true
	}
	p, ok := find(c.run.wire.pending(), st)
	return ok && !(p.step.sql && slices.Contains(c.blocked, p.step.conn))
}

// outwait lets another's lease be over where a lock was seen to be taken.
func (r *replayer) outwait(st *schedule.Step) error {
	if !acquires(st) || st.Reply.Kind != schedule.Nil || len(st.Words) != 5 {
		return nil
	}
	lock, holder := st.Words[2], st.Words[4]
	_, err := r.pass(func() bool {
		return !slices.ContainsFunc(r.now.redis.Keys, func(k redisstore.Key) bool {
			return k.Name == lock && k.TTL > 0 && !slices.Contains(k.Values, holder)
		})
	})
	return err
}

// acquires says whether a step asks for a lock, which is answered with what
// remains of another's lease.
func acquires(st *schedule.Step) bool {
	return st.Kind == schedule.Command && len(st.Words) > 1 && st.Words[1] == schemes.AcquireScript
}

// sameLease says whether two replies differ only in how much of a lease is left.
func sameLease(st *schedule.Step, seen schedule.Reply) bool {
	return acquires(st) && st.Reply.Kind == schedule.Int && seen.Kind == schedule.Int && st.Reply.Int > 0 && seen.Int > 0
}

// pass lets time pass, a millisecond at a time, until something is met, and
// writes it down as waits that end where somebody is answered. It answers
// whether it was met.
func (r *replayer) pass(met func() bool) (bool, error) {
	const tick = time.Millisecond
	var since, total time.Duration
	write := func() error {
		if since == 0 {
			return nil
		}
		r.s.Steps = append(r.s.Steps, schedule.Step{Kind: schedule.Wait, Wait: since})
		since = 0
		i := len(r.s.Steps) - 1
		diverged := func(expected, seen string) error { return r.s.Diverges(i, expected, seen) }
		if err := r.compareAnswers(i, nil, diverged); err != nil {
			return err
		}
		return r.compareStock(&r.s.Steps[i], nil, "", diverged)
	}
	for !met() {
		if total >= longestFit || !r.stirs() {
			return false, write()
		}
		r.wait(tick)
		since, total = since+tick, total+tick
		if r.somebodyAnswers() {
			if err := write(); err != nil {
				return false, err
			}
		}
	}
	return true, write()
}

// stirs says whether time can change anything: a lease runs, or a client is in
// an operation and not at a step.
func (r *replayer) stirs() bool {
	if left, ok := r.now.redis.NextExpiry(); ok && left > 0 {
		return true
	}
	for _, c := range r.clients {
		if c.run != nil && !c.crashed {
			return true
		}
	}
	return false
}

func (r *replayer) somebodyAnswers() bool {
	for _, c := range r.clients {
		if c.run != nil && !c.crashed && !c.paused && c.run.isDone() {
			return true
		}
	}
	return false
}

// Fit is the function Fit on an engine of the laboratory, "miniredis" or
// "redis".
func (l *Lab) Fit(d *schedule.Draft, engine string) (*schedule.Schedule, error) {
	entry, err := schemes.ByName(d.Scheme)
	if err != nil {
		return nil, err
	}
	e, err := l.engine(engine)
	if err != nil {
		return nil, err
	}
	return Fit(entry, d, e)
}

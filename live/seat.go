package live

import (
	"context"
	"fmt"
	"sync"

	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/schemes"
)

// seat is a client of a run with what stands between it and the servers.
type seat struct {
	clients.Client
	proxies []*wire.Proxy
	counter *wire.Counter
	gate    *turnstile
	key     seatKey // of a subject's: where it belongs when it is idle
}

// seatKey is what idle seats of a subject have in common: a subject is told its
// times once, when it starts.
type seatKey struct {
	scheme schemes.Scheme
	times  schemes.Config
}

// mostIdle is how many idle seats are kept for one subject: those of the runs of
// it that go on at once.
const mostIdle = 3 * subjectsAtOnce

// turnstile is the gate of a seat that outlives a run: what happens while nobody
// has a run there, a subject that starts for example, passes uncounted.
type turnstile struct {
	mu     sync.Mutex
	to     wire.Gate // nil: nobody's
	client int       // in the run
	base   int       // steps that were counted before the run
}

// open gives the seat to a run, as a client of it.
func (t *turnstile) open(to wire.Gate, client int, counted int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to, t.client, t.base = to, client, counted
}

// shut takes it away again. No step of the run must be under way.
func (t *turnstile) shut() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.to = nil
}

// inRun is the step as the run counts it; nil for one that is not the run's.
func (t *turnstile) inRun(s *wire.Step) wire.Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.to == nil || s.N <= t.base {
		return nil
	}
	s.Client, s.N = t.client, s.N-t.base
	return t.to
}

// Request implements wire.Gate.
func (t *turnstile) Request(ctx context.Context, s wire.Step) wire.RequestAction {
	if to := t.inRun(&s); to != nil {
		return to.Request(ctx, s)
	}
	return wire.Forward
}

// Reply implements wire.Gate.
func (t *turnstile) Reply(ctx context.Context, s wire.Step, r wire.Reply) wire.ReplyAction {
	if to := t.inRun(&s); to != nil {
		return to.Reply(ctx, s, r)
	}
	return wire.Deliver
}

// Gone implements wire.Gate.
func (t *turnstile) Gone(s wire.Step, err error) {
	if to := t.inRun(&s); to != nil {
		to.Gone(s, err)
	}
}

// take finds or starts a seat for a client of the run.
func (s *stage) take(ctx context.Context, client int) (*seat, error) {
	launcher, foreign := s.c.Entry.Scheme.(clients.Launcher)
	st := &seat{counter: new(wire.Counter), gate: new(turnstile), key: seatKey{s.c.Entry.Scheme, s.times}}
	if foreign {
		if idle := s.world.idleSeat(st.key); idle != nil {
			idle.gate.open(s.conductor, client, idle.counter.Count())
			return idle, nil
		}
	} else {
		s.soak.counts(client, st.counter)
		st.gate.open(s.conductor, client, 0)
	}
	setup, err := s.connect(st, client)
	if err != nil {
		return st, err
	}
	if foreign {
		st.Client, err = launcher.Launch(ctx, s.world.Servers.Reaper, setup)
		st.gate.open(s.conductor, client, st.counter.Count())
		return st, err
	}
	proc, err := s.world.pool.Get()
	if err != nil {
		return st, err
	}
	st.Client = proc
	return st, proc.Configure(ctx, setup)
}

// leave hands a seat back. Only who is idle and was not hit by the fault serves
// again.
func (w *World) leave(st *seat, idle bool) {
	if st == nil {
		return
	}
	if st.Client != nil {
		select {
		case <-st.Gone():
			idle = false
		default:
		}
	}
	proc, ours := st.Client.(*clients.Process)
	switch {
	case st.Client == nil:
	case idle && ours:
		w.pool.Put(proc)
	case idle && w.keepSeat(st):
		return
	default:
		st.Kill()
	}
	for _, p := range st.proxies {
		// Its connections are of no use any more, whatever it says.
		_ = p.Close()
	}
}

// idleSeat takes a seat from those that are kept.
func (w *World) idleSeat(key seatKey) *seat {
	w.seatsMu.Lock()
	defer w.seatsMu.Unlock()
	for n := len(w.seats[key]); n > 0; n-- {
		st := w.seats[key][n-1]
		w.seats[key] = w.seats[key][:n-1]
		select {
		case <-st.Gone(): // its end is told by who looks at Err
			w.ended = append(w.ended, st)
		default:
			return st
		}
	}
	return nil
}

// keepSeat keeps a seat for another run, if there is room.
func (w *World) keepSeat(st *seat) bool {
	st.gate.shut()
	w.seatsMu.Lock()
	defer w.seatsMu.Unlock()
	if w.seatsClosed || len(w.seats[st.key]) >= mostIdle {
		return false
	}
	w.seats[st.key] = append(w.seats[st.key], st)
	return true
}

// closeSeats ends the subjects that are idle. The error is how one ended by itself
// while it had nothing to do.
func (w *World) closeSeats() (err error) {
	w.seatsMu.Lock()
	w.seatsClosed = true
	all := w.ended
	for _, list := range w.seats {
		all = append(all, list...)
	}
	w.seats, w.ended = nil, nil
	w.seatsMu.Unlock()
	for _, st := range all {
		select {
		case <-st.Gone():
			if err == nil {
				err = fmt.Errorf("a client of %s that had nothing to do: %w", st.key.scheme.Name(), st.Err())
			}
		default:
		}
		w.leave(st, false)
	}
	return err
}

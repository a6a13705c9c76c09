package live

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"

	"stockproof/live/clients"
	"stockproof/live/wire"
)

// replayGate holds every step until the replay says what becomes of it.
type replayGate struct {
	blockers func() *sql.DB // asks PostgreSQL who waits; nil without SQL; nil while it restarts, and then another

	mu      sync.Mutex
	changed chan struct{} // closed and replaced whenever something happens
	steps   map[stepKey]*flying
	parked  [][]*flying       // by client: steps that wait for their turn, in order of arrival
	answers []*clients.Answer // by client: the answer nobody has looked at yet
	gone    []error           // by client: why its process is gone
	moved   []time.Time       // by client: when it last did something
	listens []map[int]int     // by client: channels each of its connections is subscribed to
	heard   []heard           // messages nobody has looked at yet
	failure error             // the replay cannot go on
}

// heard is a message that went to a client.
type heard struct{ client, conn int }

// flying is a step from its arrival to its end.
type flying struct {
	step     wire.Step
	request  chan wire.RequestAction // one: what becomes of it
	reply    chan wire.ReplyAction   // one: what becomes of its reply
	release  chan struct{}           // of a delayed one: closed when it arrives
	drop     chan struct{}           // … when it never does
	returned chan struct{}           // closed at its reply or end

	// Guarded by the gate.
	answered *wire.Reply
	blocked  bool
	over     bool
	op       int // operation of the client that sent it, from 0
	came     time.Time
	decided  bool // what becomes of it
}

// heldTooLong says whether a step of the client waited here for so long that the
// client's library gave its reply up.
func (g *replayGate) heldTooLong(client int) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for key, f := range g.steps {
		if key.client == client && !f.decided && time.Since(f.came) >= libraryPatience {
			return true
		}
	}
	return false
}

func newReplayGate(clientCount int) *replayGate {
	g := &replayGate{
		changed: make(chan struct{}), steps: map[stepKey]*flying{},
		parked: make([][]*flying, clientCount), answers: make([]*clients.Answer, clientCount),
		gone: make([]error, clientCount), moved: make([]time.Time, clientCount), listens: make([]map[int]int, clientCount),
	}
	for i := range g.listens {
		g.listens[i] = map[int]int{}
	}
	return g
}

// happened wakes who waits; call it with mu held.
func (g *replayGate) happened(client int) {
	if client >= 0 {
		g.moved[client] = time.Now()
	}
	close(g.changed)
	g.changed = make(chan struct{})
}

// await waits until ready, which is called with mu held, says so, for at most
// limit. false when the time is over.
func (g *replayGate) await(ctx context.Context, limit time.Duration, ready func() bool) (bool, error) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	ticker := time.NewTicker(20 * time.Millisecond) // for what depends on the time alone
	defer ticker.Stop()
	for {
		g.mu.Lock()
		ok, changed, failure := ready(), g.changed, g.failure
		g.mu.Unlock()
		if ok || failure != nil {
			return ok, failure
		}
		select {
		case <-changed:
		case <-ticker.C:
		case <-timer.C:
			return false, nil
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// Request parks the step.
func (g *replayGate) Request(ctx context.Context, s wire.Step) wire.RequestAction {
	f := &flying{step: s, came: time.Now(), request: make(chan wire.RequestAction, 1), reply: make(chan wire.ReplyAction, 1),
		release: make(chan struct{}), drop: make(chan struct{}), returned: make(chan struct{})}
	g.mu.Lock()
	g.steps[stepKey{s.Client, s.N}] = f
	g.parked[s.Client] = append(g.parked[s.Client], f)
	g.happened(s.Client)
	g.mu.Unlock()
	select {
	case action := <-f.request:
		return action
	case <-ctx.Done():
	}
	// Its client is dead or has given up waiting, or the replay is over; the
	// decision may have been made at the same time.
	select {
	case action := <-f.request:
		return action
	default:
		return wire.Lose
	}
}

// decide says what becomes of a parked step.
func (g *replayGate) decide(f *flying, action wire.RequestAction) {
	g.mu.Lock()
	g.unpark(f)
	f.decided = true
	g.mu.Unlock()
	f.request <- action
}

// unpark takes a step off the list; call it with mu held.
func (g *replayGate) unpark(f *flying) {
	list := g.parked[f.step.Client]
	for i := range list {
		if list[i] == f {
			g.parked[f.step.Client] = append(list[:i:i], list[i+1:]...)
			return
		}
	}
}

// Reply holds the reply until the replay has compared it.
func (g *replayGate) Reply(ctx context.Context, s wire.Step, reply wire.Reply) wire.ReplyAction {
	g.mu.Lock()
	f := g.steps[stepKey{s.Client, s.N}]
	f.answered = &reply
	f.end()
	g.happened(-1)
	g.mu.Unlock()
	select {
	case action := <-f.reply:
		return action
	case <-ctx.Done():
		return wire.LoseReply // its client is gone, or the replay is over
	}
}

// Gone ends the flight of a step without a delivered reply.
func (g *replayGate) Gone(s wire.Step, _ error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.steps[stepKey{s.Client, s.N}]
	if f == nil {
		return
	}
	f.over = true
	f.end()
	g.unpark(f)
	g.happened(-1)
}

// end marks that the server has nothing more to say; the gate's mu is held.
func (f *flying) end() {
	select {
	case <-f.returned:
	default:
		close(f.returned)
	}
}

// Listens is told who is subscribed.
func (g *replayGate) Listens(client, conn, channels int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if channels == 0 {
		delete(g.listens[client], conn)
	} else {
		g.listens[client][conn] = channels
	}
	g.happened(-1)
}

// Heard is told who gets a message.
func (g *replayGate) Heard(client, conn int, _ string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = append(g.heard, heard{client, conn})
	g.happened(-1)
}

// answer takes what a client process answered, or why it is gone.
func (g *replayGate) answer(client int, a clients.Answer, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err != nil {
		g.gone[client] = err
	} else {
		g.answers[client] = &a
	}
	g.happened(client)
}

// watchBlocked notices when PostgreSQL says that a statement waits for a lock.
func (g *replayGate) watchBlocked(ctx context.Context, f *flying) {
	ticker := time.NewTicker(askBlockedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-f.returned:
			return
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		g.mu.Lock()
		over := f.answered != nil
		g.mu.Unlock()
		if over {
			return
		}
		db := g.blockers()
		if db == nil {
			continue
		}
		waits, err := waitsForRow(ctx, db, f.step.BackendPID)
		if err != nil && g.blockers() != db {
			continue
		}
		g.mu.Lock()
		if err != nil && ctx.Err() == nil {
			g.failure = err
		}
		f.blocked = waits && f.answered == nil
		stop := f.blocked || err != nil
		if stop {
			g.happened(-1)
		}
		g.mu.Unlock()
		if stop {
			return
		}
	}
}

// closed waits until the server processes of database connections that were cut
// have ended, and with them their transactions; one whose statement waits for a
// row ends later.
func (g *replayGate) closed(ctx context.Context, backends []int64) error {
	if g.blockers == nil || len(backends) == 0 {
		return nil
	}
	for {
		var left int
		if err := g.blockers().QueryRowContext(ctx, `SELECT count(*) FROM pg_stat_activity WHERE pid = ANY($1)
			AND (wait_event IS NULL OR wait_event NOT IN ('transactionid', 'tuple'))`, backends).Scan(&left); err != nil {
			return fmt.Errorf("ask who is connected: %w", err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-time.After(2 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

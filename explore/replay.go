package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// Replay runs a schedule again without anything a search remembers: the
// scheme's code of all clients together under one virtual clock, every command
// asked of the engine anew, the laws applied to what comes out. Each command,
// reply, counter and answer, the end, and the laws that are broken must be
// those of the schedule; the error is a *schedule.DivergenceError where they
// are not, and ErrConfig for a schedule that explore cannot run.
func Replay(entry schemes.Entry, s *schedule.Schedule, engine redisstore.Engine) error {
	return replay(entry, s, engine, nil)
}

func replay(entry schemes.Entry, s *schedule.Schedule, engine redisstore.Engine, trace func(sqlEvent)) error {
	r, world, err := newReplayer(entry, s, engine, trace)
	if err != nil {
		return err
	}
	bubble(func() {
		defer r.end()
		for i := range s.Steps {
			if err = r.do(i); err != nil {
				return
			}
		}
	})
	if err != nil {
		return err
	}
	seen, err := r.conclude(world)
	if err != nil {
		return err
	}
	return s.DivergesAtEnd(seen)
}

// mostReplayed bounds the operations of a schedule. A search has room for far fewer
// (maxLocals, maxOps), a replay only for what one execution needs.
const mostReplayed = 4096

// newReplayer puts the article of a schedule on sale.
func newReplayer(entry schemes.Entry, s *schedule.Schedule, engine redisstore.Engine, trace func(sqlEvent)) (*replayer, *world, error) {
	if s.SKU != sku {
		return nil, nil, fmt.Errorf("%w: article %s, explore knows only %s", ErrConfig, s.SKU, sku)
	}
	all, longest := 0, 0
	for _, c := range s.Clients {
		all, longest = all+len(c.Calls), max(longest, len(c.Calls))
	}
	if all > mostReplayed {
		return nil, nil, fmt.Errorf("%w: %d operations, the most is %d", ErrConfig, all, mostReplayed)
	}
	retries := -1
	if s.Retries == "default" {
		retries = 0
	}
	world, at, err := prepare(entry, s.Stock, engine)
	if err != nil {
		return nil, nil, err
	}
	start := schedule.Stock{Known: true, Units: s.Stock}
	loses := slices.ContainsFunc(s.Steps, func(st schedule.Step) bool {
		return st.Kind == schedule.Loses || st.Kind == schedule.Restarts && st.Setting == faults.AOFEverySec
	})
	r := &replayer{entry: entry, s: s, engine: engine, retries: retries, now: at, loaded: at.redis, clients: map[string]*replayClient{}, trace: trace,
		stock: start, lowest: s.Stock, taken: map[string]int64{}, loses: loses}
	for i, c := range s.Clients {
		room := (longest-1)/maxOps + 1
		rc := &replayClient{spec: c, number: i, first: i, room: max(room, 1) * maxConns}
		if room > 1 || len(s.Clients) > maxLocals { // beyond those of whoever reads the counter
			rc.first = maxSlots + i*room
		}
		r.clients[c.Name] = rc
		r.order = append(r.order, c.Name)
	}
	slices.Sort(r.order)
	r.forgets = at.sql.db != nil && slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Server == schedule.SQL && st.Lost > 0 })
	return r, world, nil
}

// prepare puts the article on sale.
func prepare(entry schemes.Entry, stock int64, engine redisstore.Engine) (*world, moment, error) {
	lab := NewLab()
	defer lab.Close()
	w := newWorld(engine, entry, false, true)
	w.solo = func(act action, qty int64, client string) (*automaton, error) {
		return lab.automaton(entry, role{act, qty, client, client + ".1", 0}, DefaultTimes, -1)
	}
	nothing, err := newMoment(entry)
	if err != nil {
		return nil, moment{}, err
	}
	empty, _ := w.change(-1, func(moment) moment { return nothing })
	at, r, err := w.alone(empty, load, stock, prober)
	if err != nil {
		return nil, moment{}, err
	}
	if r.outcome != model.OK {
		return nil, moment{}, fmt.Errorf("%w: load: %s", ErrScheme, r.err)
	}
	return w, w.moments[at], nil
}

type replayer struct {
	entry   schemes.Entry
	s       *schedule.Schedule
	engine  redisstore.Engine
	retries int
	now     moment
	before  []redisstore.State // what Redis held before each of its writes, latest last
	loaded  redisstore.State   // when the article had been loaded
	frozen  bool               // Redis stands still
	link    link
	replica redisstore.State // unless the link is whole
	lag     int              // writes that the replica lacks
	forgets bool             // the database loses commits
	commits []sqlState       // what it held before each of them, latest last
	clients map[string]*replayClient
	order   []string // their names, sorted
	runs    []*run
	trace   func(sqlEvent) // sees what happens to the database; may be nil
	loses   bool           // the store may lose writes, so before is kept
	fits    bool           // what no live run sees is filled in, see Fit

	stock   schedule.Stock   // the counter now
	lowest  int64            // it ever was
	taken   map[string]int64 // units each request took, see kit.took
	history []replayedOp
}

// replayedOp is an operation that began, with the steps of its call and its
// return as times.
type replayedOp struct {
	model.Operation
	label schedule.Answer
}

// sqlEvent is one thing that happens to the database: a statement is sent, a
// blocked one goes on or is cancelled, or a session's client hangs up or dies.
type sqlEvent struct {
	what    StepKind // StepCommand, StepGranted, StepDeadlock, or empty for the end of a session
	session int
	words   []string // of a statement, see sqlWord
	blocked bool
	reply   string // see wireReply
}

func (r *replayer) note(e sqlEvent) {
	if r.trace != nil {
		r.trace(e)
	}
}

// abandon ends sessions.
func (r *replayer) abandon(sessions ...int) {
	for _, n := range sessions {
		r.note(sqlEvent{session: n})
	}
	r.now.sql = r.now.sql.abandon(sessions)
}

type replayClient struct {
	spec      schedule.Client
	number    int
	first     int  // of the numbers of its database sessions, see session
	room      int  // how many there are
	op        int  // of the present operation, from 0
	run       *run // of the present operation, nil before it begins
	crashed   bool
	paused    bool
	unread    func() // gives it the reply that it has not read yet; nil: there is none
	submitted bool   // it was told to begin an operation under the request of another
	hungUp    []int
	late      []lateStep
	blocked   []int // its database connections with a statement that waits
}

// session is the server's number for one of the client's connections.
func (c *replayClient) session(conn int) int { return session(c.first, conn) }

// lateStep is a request that is still on its way.
type lateStep struct {
	line schedule.Step // as it was asked
	step step
	op   int
}

func (r *replayer) end() {
	for _, run := range r.runs {
		run.cancel()
		run.wire.kill()
	}
	for _, run := range r.runs {
		run.end()
	}
}

// begin starts the client's next operation at a step.
func (r *replayer) begin(c *replayClient, i int) {
	call, request := c.spec.Calls[c.op], c.spec.Request(c.op+1)
	a := &automaton{entry: r.entry, times: r.s.Times, retries: r.retries,
		role: role{action(call.Op), call.Qty, c.spec.Name, request, c.op}}
	c.run = a.start()
	c.hungUp = nil
	r.runs = append(r.runs, c.run)
	r.history = append(r.history, replayedOp{
		Operation: model.Operation{Client: c.number, Op: call.Op, Qty: call.Qty, Call: 2 * int64(i), Open: true, Outcome: model.Unknown, Request: request},
		label:     schedule.Answer{Client: c.spec.Name, N: c.op + 1, Outcome: schedule.Unfinished},
	})
	r.taken[request] += 0
	c.run.settle()
}

// present is the operation that a client is in.
func (r *replayer) present(c *replayClient) *replayedOp {
	for k := len(r.history) - 1; k >= 0; k-- {
		if r.history[k].Client == c.number {
			return &r.history[k]
		}
	}
	return nil
}

// do makes the i-th step happen and holds it against what is written.
func (r *replayer) do(i int) error {
	st := &r.s.Steps[i]
	diverged := func(expected, seen string) error { return r.s.Diverges(i, expected, seen) }
	c := r.clients[st.Client]
	if st.Client != "" && c == nil {
		return diverged("a client that takes part", st.Client)
	}
	var by *schedule.Call // the operation whose command is executed
	var request string
	var messages []redisstore.Message
	var err error
	switch st.Kind {
	case schedule.Command:
		if c.run == nil {
			if c.op >= len(c.spec.Calls) || c.crashed {
				return diverged("a step of "+c.spec.Name, "that it has nothing left to do")
			}
			if as := c.spec.Calls[c.op].As; as != "" && !c.submitted {
				return diverged(c.spec.Name+" to submit "+as+" again before", "that it has not")
			}
			if schedule.IsJob(c.spec.Calls[c.op].Op) && !c.submitted {
				return diverged("the job of "+c.spec.Name+" to begin before", "that it has not")
			}
			c.submitted = false
			r.begin(c, i)
		}
		by, request = &c.spec.Calls[c.op], c.spec.Request(c.op+1)
		messages, err = r.command(c, st, diverged)
	case schedule.GoesOn, schedule.Deadlock:
		if st.Reply.Kind == schedule.None {
			err = r.orphan(c, st, diverged)
			break
		}
		by, request = &c.spec.Calls[min(c.op, len(c.spec.Calls)-1)], c.spec.Request(min(c.op, len(c.spec.Calls)-1)+1)
		err = r.granted(c, st, diverged)
	case schedule.Arrives, schedule.Never:
		var late lateStep
		if late, err = c.takeLate(st, diverged); err != nil {
			return err
		}
		if st.Kind == schedule.Arrives {
			by, request = &c.spec.Calls[late.op], c.spec.Request(late.op+1)
			messages, err = r.arrives(c, late, st, diverged)
		}
		if late.step.sql {
			r.abandon(c.session(late.step.conn))
		}
		r.endRedis(c, late.op, late.step)
	case schedule.Wait:
		r.wait(st.Wait)
	case schedule.Loads, schedule.Reconciles:
		err = r.starts(c, st, diverged)
	case schedule.Resume:
		c.paused = false
		if give := c.unread; give != nil {
			c.unread = nil
			give()
		}
	case schedule.Submits:
		if c.run != nil || c.op >= len(c.spec.Calls) || c.spec.Calls[c.op].As != st.Request {
			return diverged(c.spec.Name+" to be about to submit "+st.Request, "that it is not")
		}
		c.submitted = true
	default:
		known := false
		if known, err = r.befalls(st, diverged); !known {
			return diverged("a kind of step that exists", string(st.Kind))
		}
	}
	if err != nil {
		return err
	}
	woken := r.spread(messages, c)
	if err := r.compareAnswers(i, woken, diverged); err != nil {
		return err
	}
	return r.compareStock(st, by, request, diverged)
}

func (r *replayer) wait(d time.Duration) {
	time.Sleep(d)
	parked()
	r.now.redis = r.now.redis.After(d)
	r.replica = r.replica.After(d)
	for i := range r.before {
		r.before[i] = r.before[i].After(d)
	}
}

// compareAnswers collects who has an answer now, and who got a message and has
// none.
func (r *replayer) compareAnswers(i int, woken []string, diverged func(string, string) error) error {
	st := &r.s.Steps[i]
	var answers []schedule.Answer
	for _, name := range r.order {
		c := r.clients[name]
		if c.run == nil || c.crashed {
			continue
		}
		c.run.settle()
		r.closeSessions(c)
		if !c.run.isDone() || c.paused { // a stopped client may have its answer and cannot give it
			continue
		}
		op := r.present(c)
		op.Outcome, op.Value, op.Open, op.Return = c.run.result.outcome, c.run.result.value, false, 2*int64(i)+1
		op.label.Outcome, op.label.Value = op.Outcome, op.Value
		if op.Outcome == model.Unknown {
			op.Open, op.Return = true, 0
		}
		answers = append(answers, op.label)
		woken = slices.DeleteFunc(woken, func(w string) bool { return w == name })
		c.op++
		c.run = nil
	}
	if r.fits {
		st.Answers, st.Wakes = answers, woken
		return nil
	}
	if want, got := r.s.AnswersText(st.Answers), r.s.AnswersText(answers); want != got {
		return diverged("the answers "+want, got)
	}
	if want := slices.Sorted(slices.Values(st.Wakes)); !slices.Equal(want, woken) {
		return diverged("to wake "+orNobody(want), orNobody(woken))
	}
	return nil
}

func orNobody(names []string) string {
	if len(names) == 0 {
		return "nobody"
	}
	return strings.Join(names, " ")
}

// compareStock reads the counter after a step, and notes what the operation
// whose command was executed took from it.
func (r *replayer) compareStock(st *schedule.Step, by *schedule.Call, request string, diverged func(string, string) error) error {
	was := r.stock
	got, err := r.counter()
	if err != nil {
		return err
	}
	r.stock = schedule.Stock{Known: got.known, Units: got.value}
	want := was
	if st.Stock != nil {
		want = *st.Stock
	}
	if r.stock != want {
		return diverged("the stock at "+want.String(), r.stock.String())
	}
	if got.known {
		r.lowest = min(r.lowest, got.value)
	}
	if by != nil && by.Op == model.Deduct && was.Known && got.known {
		r.taken[request] += min(was.Units-got.value, by.Qty)
	}
	return nil
}

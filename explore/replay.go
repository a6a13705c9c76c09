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

func replay(entry schemes.Entry, s *schedule.Schedule, engine redisstore.Engine, trace func(sqlEvent)) (err error) {
	defer rescue(&err)
	if s.SKU != sku {
		return fmt.Errorf("%w: article %s, explore knows only %s", ErrConfig, s.SKU, sku)
	}
	if len(s.Clients) > maxLocals {
		return fmt.Errorf("%w: %d clients, the most is %d", ErrConfig, len(s.Clients), maxLocals)
	}
	for _, c := range s.Clients {
		if len(c.Calls) > maxOps {
			return fmt.Errorf("%w: %d operations of client %s, the most is %d", ErrConfig, len(c.Calls), c.Name, maxOps)
		}
	}
	retries := -1
	if s.Retries == "default" {
		retries = 0
	}
	world, at, err := prepare(entry, s.Stock, engine)
	if err != nil {
		return err
	}
	start := schedule.Stock{Known: true, Units: s.Stock}
	r := &replayer{entry: entry, s: s, engine: engine, retries: retries, now: at, clients: map[string]*replayClient{}, trace: trace,
		stock: start, lowest: s.Stock, taken: map[string]int64{}}
	for i, c := range s.Clients {
		r.clients[c.Name] = &replayClient{spec: c, number: i}
		r.order = append(r.order, c.Name)
	}
	slices.Sort(r.order)
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

// prepare puts the article on sale.
func prepare(entry schemes.Entry, stock int64, engine redisstore.Engine) (*world, moment, error) {
	lab := NewLab()
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
	clients map[string]*replayClient
	order   []string // their names, sorted
	runs    []*run
	trace   func(sqlEvent) // sees what happens to the database; may be nil

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
	spec    schedule.Client
	number  int
	op      int  // of the present operation, from 0
	run     *run // of the present operation, nil before it begins
	crashed bool
	paused  bool
	hungUp  []int
	late    []lateStep
	blocked []int // its database connections with a statement that waits
}

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
			r.abandon(session(c.number, late.step.conn))
		}
	case schedule.Wait:
		r.wait(st.Wait)
	case schedule.Loses:
		if st.Lost > len(r.before) {
			return diverged(fmt.Sprintf("%d writes to lose", st.Lost), fmt.Sprint(len(r.before)))
		}
		keep := len(r.before) - st.Lost
		r.now.redis = r.before[keep].WithoutScripts()
		r.before = r.before[:keep]
	case schedule.Flush:
		r.now.redis = r.now.redis.WithoutScripts()
	case schedule.Resume:
		c.paused = false
	case schedule.Submits:
		if c.run != nil || c.op >= len(c.spec.Calls) || c.spec.Calls[c.op].As != st.Request {
			return diverged(c.spec.Name+" to be about to submit "+st.Request, "that it is not")
		}
	default:
		return diverged("a kind of step that exists", string(st.Kind))
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
	for i := range r.before {
		r.before[i] = r.before[i].After(d)
	}
}

// find is the parked step that a line means.
func find(places []place, st *schedule.Step) (place, bool) {
	for _, p := range places {
		if asked := askedOf(p.step.sql, p.step.conn, splitArgs(p.step.args)); sameRequest(&asked, st) {
			return p, true
		}
	}
	return place{}, false
}

// sameRequest says whether two steps send the same.
func sameRequest(a, b *schedule.Step) bool {
	return a.Server == b.Server && a.Conn == b.Conn && slices.Equal(a.Words, b.Words) && a.Statement == b.Statement
}

// parkedAt tells where a client stands, as a schedule would write it.
func (c *replayClient) parkedAt() string {
	places := c.run.wire.pending()
	if c.run.isDone() {
		return "that " + c.spec.Name + " is done"
	}
	if len(places) == 0 {
		return "that " + c.spec.Name + " waits"
	}
	var words []string
	for _, p := range places {
		asked := askedOf(p.step.sql, p.step.conn, splitArgs(p.step.args))
		asked.Kind = schedule.Command
		words = append(words, asked.Action())
	}
	return strings.Join(words, " and ")
}

func (r *replayer) command(c *replayClient, st *schedule.Step, diverged func(string, string) error) ([]redisstore.Message, error) {
	if c.paused {
		return nil, diverged("a step of "+c.spec.Name, "that it is paused")
	}
	p, ok := find(c.run.wire.pending(), st)
	if !ok || p.step.sql && slices.Contains(c.blocked, p.step.conn) {
		return nil, diverged(st.Action(), c.parkedAt())
	}
	if st.Fault == faults.RequestLost || st.Fault == faults.RequestDelayed {
		if st.Fault == faults.RequestDelayed {
			c.late = append(c.late, lateStep{line: *st, step: p.step, op: c.op})
		}
		c.cut(p)
		return nil, nil
	}
	reply, blocked, messages, err := r.execute(c, p.step)
	if err != nil {
		return nil, err
	}
	return messages, r.answer(c, p, st, reply, blocked, diverged)
}

func (c *replayClient) cut(p place) {
	if p.call != nil {
		c.run.wire.cutSQL(p.call)
	} else {
		p.conn.cut()
	}
	c.run.settle()
}

// answer holds a reply against the line and gives it to the client, unless the
// line's fault comes between.
func (r *replayer) answer(c *replayClient, p place, st *schedule.Step, reply string, blocked bool, diverged func(string, string) error) error {
	if seen := replyOf(p.step.sql, reply, blocked).String(); seen != st.Reply.String() {
		return diverged(st.Reply.String(), seen)
	}
	switch {
	case st.Fault == faults.ClientCrash:
		c.crashed = true
		r.abandon(allSessions(c.number)...)
	case st.Fault == faults.ReplyLost || st.Fault == faults.CommitReplyLost:
		c.cut(p)
	case blocked:
		c.blocked = append(c.blocked, p.step.conn)
	case p.call != nil:
		c.run.wire.answerSQL(p.call, reply)
		c.run.settle()
	default:
		p.conn.reply(reply)
		c.run.settle()
	}
	c.paused = c.paused || st.Fault == faults.ClientPause
	return nil
}

func allSessions(client int) []int {
	var all []int
	for _, conn := range allConns {
		all = append(all, session(client, conn))
	}
	return all
}

// execute asks the servers.
func (r *replayer) execute(c *replayClient, s step) (reply string, blocked bool, messages []redisstore.Message, err error) {
	words := splitArgs(s.args)
	if s.sql {
		r.now.sql, reply, blocked, err = r.now.sql.exec(s, c.number, 0)
		r.note(sqlEvent{StepCommand, session(c.number, s.conn), words, blocked, reply})
		return reply, blocked, nil, err
	}
	res, err := r.engine.Exec(r.now.redis, words)
	if err != nil {
		return "", false, nil, err
	}
	if res.State.Encode() != r.now.redis.Encode() {
		r.before = append(r.before, r.now.redis)
	}
	r.now.redis = res.State
	return res.Reply, false, res.Messages, nil
}

// spread delivers messages to every client that listens, after the one that
// acts has its own reply, and answers who of the others did.
func (r *replayer) spread(messages []redisstore.Message, actor *replayClient) (woken []string) {
	for _, m := range messages {
		for _, name := range r.order {
			c := r.clients[name]
			if c.run == nil || c.crashed {
				continue
			}
			if c != actor && slices.Contains(c.run.wire.subscriptions(), m.Channel) && !slices.Contains(woken, name) {
				woken = append(woken, name)
			}
			c.run.wire.publish(m.Channel, m.Payload)
			c.run.settle()
		}
	}
	return woken
}

// takeLate takes the delayed request that a line means.
func (c *replayClient) takeLate(st *schedule.Step, diverged func(string, string) error) (lateStep, error) {
	for i, l := range c.late {
		if sameRequest(&l.line, st) {
			c.late = slices.Delete(c.late, i, i+1)
			return l, nil
		}
	}
	return lateStep{}, diverged(st.Action(), "that no such request is on its way")
}

func (r *replayer) arrives(c *replayClient, late lateStep, st *schedule.Step, diverged func(string, string) error) ([]redisstore.Message, error) {
	reply, blocked, messages, err := r.execute(c, late.step)
	if err != nil {
		return nil, err
	}
	if seen := replyOf(late.step.sql, reply, blocked).String(); seen != st.Reply.String() {
		return nil, diverged(st.Reply.String(), seen)
	}
	return messages, nil
}

// grant lets the blocked statement of a connection go on.
func (r *replayer) grant(c *replayClient, conn int, st *schedule.Step, diverged func(string, string) error) (reply string, blocked bool, err error) {
	number, kill := session(c.number, conn), st.Kind == schedule.Deadlock
	if !kill && !slices.Contains(r.now.sql.db.Runnable(), number) {
		return "", false, diverged("a statement that can go on", "one that cannot")
	}
	if kill && !slices.ContainsFunc(r.now.sql.db.Deadlocked(), func(cycle []int) bool { return slices.Contains(cycle, number) }) {
		return "", false, diverged("a deadlock", "none")
	}
	if r.now.sql, reply, blocked, err = r.now.sql.grant(number, kill); err != nil {
		return "", false, err
	}
	what := StepGranted
	if kill {
		what = StepDeadlock
	}
	r.note(sqlEvent{what, number, nil, blocked, reply})
	return reply, blocked, nil
}

func (r *replayer) granted(c *replayClient, st *schedule.Step, diverged func(string, string) error) error {
	conn := c.op*connsPerOp + st.Conn
	at := slices.Index(c.blocked, conn)
	if at < 0 || c.run == nil || c.crashed {
		return diverged("a client that waits for a statement", "that it does not")
	}
	c.blocked = slices.Delete(c.blocked, at, at+1)
	reply, blocked, err := r.grant(c, conn, st, diverged)
	if err != nil {
		return err
	}
	places := c.run.wire.pending()
	i := slices.IndexFunc(places, func(p place) bool { return p.step.sql && p.step.conn == conn })
	if i < 0 {
		return diverged("a client that waits for its statement", c.parkedAt())
	}
	return r.answer(c, places[i], st, reply, blocked, diverged)
}

// orphan lets a statement go on whose client is gone, or no longer waits.
func (r *replayer) orphan(c *replayClient, st *schedule.Step, diverged func(string, string) error) error {
	if r.now.sql.db != nil {
		for op := range maxOps {
			conn := op*connsPerOp + st.Conn
			owned := !c.crashed && slices.Contains(c.blocked, conn)
			if !owned && slices.Contains(r.now.sql.db.Runnable(), session(c.number, conn)) {
				_, _, err := r.grant(c, conn, st, diverged)
				return err
			}
		}
	}
	return diverged("a statement that can go on", "none")
}

// closeSessions tells the server which connections a client has hung up.
func (r *replayer) closeSessions(c *replayClient) {
	c.run.wire.mu.Lock()
	closed := slices.Clone(c.run.wire.closed)
	c.run.wire.mu.Unlock()
	for _, conn := range newlyClosed(c.hungUp, closed) {
		travels := slices.ContainsFunc(c.late, func(l lateStep) bool { return l.step.sql && l.step.conn == conn })
		if !travels {
			r.abandon(session(c.number, conn))
		}
	}
	c.hungUp = closed
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

// counter reads the counter through the scheme's own Read, on a moment that is
// then forgotten.
func (r *replayer) counter() (counter, error) {
	if _, ok := r.entry.Scheme.(schemes.Reader); !ok {
		return counter{}, nil
	}
	a := &automaton{entry: r.entry, times: r.s.Times, retries: -1, role: role{action: read, client: "reader", request: "reader.1"}}
	run := a.start()
	defer func() {
		run.cancel()
		run.wire.kill()
		r.runs = append(r.runs, run)
	}()
	run.settle()
	sql := r.now.sql
	for range maxSolo {
		if run.isDone() {
			return counter{run.result.value, run.result.outcome == model.Value}, nil
		}
		places := run.wire.pending()
		if len(places) == 0 {
			break
		}
		p := places[0]
		if p.call != nil {
			var reply string
			var err error
			if sql, reply, _, err = sql.exec(p.step, maxSlots-1, 0); err != nil {
				return counter{}, err
			}
			run.wire.answerSQL(p.call, reply)
		} else {
			res, err := r.engine.Exec(r.now.redis, splitArgs(p.step.args))
			if err != nil {
				return counter{}, err
			}
			p.conn.reply(res.Reply)
		}
		run.settle()
	}
	return counter{}, nil
}

// conclude says what the execution came to.
func (r *replayer) conclude(w *world) (schedule.End, error) {
	end := schedule.End{Final: r.stock}
	rests := r.now.sql.db == nil || len(r.now.sql.db.Waiting()) == 0
	for _, name := range r.order {
		c := r.clients[name]
		rests = rests && len(c.late) == 0 && (c.crashed || c.op == len(c.spec.Calls))
	}
	var ops []model.Operation
	for _, op := range r.history {
		if op.Open && op.label.Outcome == schedule.Unfinished && r.clients[op.label.Client].crashed {
			op.label.Outcome = model.Unknown
		}
		ops = append(ops, op.Operation)
		end.Outcomes = append(end.Outcomes, op.label)
	}
	if !rests {
		if r.lowest < 0 {
			end.Violates = append(end.Violates, schedule.Violation{Property: model.NegativeTransient, Amount: r.lowest})
		}
		return end, nil
	}
	at, _ := w.change(-1, func(moment) moment { return r.now })
	at = w.atRest(at)
	rest := model.Rest{Initial: r.s.Stock, Taken: r.taken, Lowest: &r.lowest}
	left, err := w.count(at)
	if err != nil {
		return end, err
	}
	if end.Final = (schedule.Stock{Known: left.known, Units: left.value}); left.known {
		rest.Counter = &left.value
	}
	if _, audited := r.entry.Scheme.(schemes.Auditor); audited {
		_, res, err := w.alone(at, orders, 0, prober)
		if err != nil {
			return end, err
		}
		if res.outcome != model.OK {
			return end, fmt.Errorf("%w: orders: %s", ErrScheme, res.err)
		}
		list := decodeOrders(res.orders)
		end.Orders, rest.Orders = &list, &list
		ops, _ = model.Settle(ops, list, 2*int64(len(r.s.Steps))+2)
	}
	_, res, err := w.alone(at, deduct, 1, prober)
	if err != nil {
		return end, err
	}
	rest.Probe = &res.outcome
	for _, f := range judgeHistory(ops, rest) {
		if f.Broken {
			end.Violates = append(end.Violates, schedule.Violation{Property: f.Property, Amount: f.Amount})
		}
	}
	return end, nil
}

package explore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// DivergenceError says where a replay left the execution it was to repeat.
type DivergenceError struct {
	Line     int // of the steps, from 1
	Step     WitnessStep
	Expected string
	Seen     string
}

func (e *DivergenceError) Error() string {
	return fmt.Sprintf("step %d (%s): expected %s, saw %s", e.Line, e.Step.Line(), e.Expected, e.Seen)
}

// Replay runs an execution again without anything the search remembers: the
// scheme's code of all clients together under one virtual clock, every command
// asked of the engine anew. Each command, reply, counter and answer must be the
// one recorded; the error is a *DivergenceError where it is not.
func Replay(entry schemes.Entry, w *Witness, engine redisstore.Engine) error {
	return replay(entry, w, engine, nil)
}

func replay(entry schemes.Entry, w *Witness, engine redisstore.Engine, trace func(sqlEvent)) (err error) {
	retries := -1
	if w.Retries == "default" {
		retries = 0
	}
	at, err := prepare(entry, w.Stock, engine)
	if err != nil {
		return err
	}
	bubble(func() {
		r := &replayer{entry: entry, w: w, engine: engine, retries: retries, now: at, clients: map[string]*replayClient{}, trace: trace}
		defer r.end()
		for i, c := range w.Clients {
			r.clients[c.Name] = &replayClient{spec: c, number: i, late: map[int]bool{}}
		}
		for i, step := range w.Steps {
			if err = r.do(i+1, step); err != nil {
				return
			}
		}
		err = r.compareEnd()
	})
	return err
}

// prepare puts the article on sale.
func prepare(entry schemes.Entry, stock int64, engine redisstore.Engine) (moment, error) {
	lab := NewLab()
	w := newWorld(engine, entry, false, true)
	w.solo = func(act action, qty int64, client string) (*automaton, error) {
		return lab.automaton(entry, role{act, qty, client, client + ".1", 0}, DefaultTimes, -1)
	}
	nothing, err := newMoment(entry)
	if err != nil {
		return moment{}, err
	}
	empty, _ := w.change(-1, func(moment) moment { return nothing })
	at, r, err := w.alone(empty, load, stock, prober)
	if err != nil {
		return moment{}, err
	}
	if r.outcome != model.OK {
		return moment{}, fmt.Errorf("%w: load: %s", ErrScheme, r.err)
	}
	return w.moments[at], nil
}

type replayer struct {
	entry   schemes.Entry
	w       *Witness
	engine  redisstore.Engine
	retries int
	now     moment
	before  []redisstore.State // what Redis held before each of its writes, latest last
	clients map[string]*replayClient
	runs    []*run
	trace   func(sqlEvent) // sees what happens to the database; may be nil
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
	spec    WitnessClient
	number  int
	op      int
	run     *run // of the present operation, nil before it begins
	crashed bool
	hungUp  []int
	late    map[int]bool // connections over which a statement still travels
	results []model.Outcome
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

// begin starts the client's next operation.
func (r *replayer) begin(c *replayClient) {
	call := c.spec.Calls[c.op]
	request := fmt.Sprintf("%s.%d", c.spec.Name, c.op+1)
	if c.spec.Resubmits != "" {
		request = c.spec.Resubmits
	}
	a := &automaton{entry: r.entry, times: r.w.Times, retries: r.retries,
		role: role{action(call.Op), call.Qty, c.spec.Name, request, c.op}}
	c.run = a.start()
	c.hungUp = nil
	r.runs = append(r.runs, c.run)
	c.run.settle()
}

func (r *replayer) do(line int, st WitnessStep) error {
	diverged := func(expected, seen string) error {
		return &DivergenceError{Line: line, Step: st, Expected: expected, Seen: seen}
	}
	c := r.clients[st.Client]
	if st.Client != "" && c == nil {
		return diverged("a client that takes part", st.Client)
	}
	var returned []string
	switch st.Kind {
	case StepCommand:
		if c.run == nil {
			if c.op >= len(c.spec.Calls) {
				return diverged("a step of "+c.spec.Name, "that it has nothing left to do")
			}
			r.begin(c)
		}
		places := c.run.wire.pending()
		p, ok := find(places, st)
		if !ok {
			return diverged(st.Words(), describe(steps(places), c.run.isDone()))
		}
		if err := r.command(c, p, st, diverged); err != nil {
			return err
		}
	case StepGranted, StepDeadlock:
		if err := r.granted(c, st, diverged); err != nil {
			return err
		}
	case StepArrives:
		if _, _, err := r.execute(c, st); err != nil {
			return err
		}
		r.travelled(c, st)
	case StepNever:
		r.travelled(c, st)
	case StepWait:
		time.Sleep(st.Wait)
		parked()
		r.now.redis = r.now.redis.After(st.Wait)
		for i := range r.before {
			r.before[i] = r.before[i].After(st.Wait)
		}
	case StepLoses:
		if st.Lost > len(r.before) {
			return diverged(fmt.Sprintf("%d writes to lose", st.Lost), fmt.Sprint(len(r.before)))
		}
		keep := len(r.before) - st.Lost
		r.now.redis = r.before[keep].WithoutScripts()
		r.before = r.before[:keep]
	case StepFlush:
		r.now.redis = r.now.redis.WithoutScripts()
	case StepResume, StepResubmit:
	default:
		return diverged("a kind of step that exists", string(st.Kind))
	}
	for _, name := range r.names() {
		c := r.clients[name]
		if c.run == nil || c.crashed {
			continue
		}
		c.run.settle()
		r.closeSessions(c)
		if c.run.isDone() && !r.held(name, line) {
			o := c.run.result.outcome
			c.results = append(c.results, o)
			c.op++
			c.run = nil
			returned = append(returned, fmt.Sprintf("%s.%d=%s", name, c.op, o))
		}
	}
	want := slices.Clone(st.Returned)
	slices.Sort(want)
	slices.Sort(returned)
	if !slices.Equal(want, returned) {
		return diverged("answers "+strings.Join(want, " "), strings.Join(returned, " "))
	}
	if st.Counter != nil {
		got, err := r.counter()
		if err != nil {
			return err
		}
		if !got.known || got.value != *st.Counter {
			return diverged(fmt.Sprintf("the counter at %d", *st.Counter), fmt.Sprint(got.value))
		}
	}
	return nil
}

func (r *replayer) names() []string {
	var names []string
	for name := range r.clients {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// held says whether a client is stopped between line and its next resume: it
// may have its answer and cannot give it.
func (r *replayer) held(name string, line int) bool {
	stopped := false
	for _, st := range r.w.Steps[:line] {
		if st.Client == name && st.Fault == faults.ClientPause {
			stopped = true
		}
		if st.Client == name && st.Kind == StepResume {
			stopped = false
		}
	}
	return stopped
}

// find is the parked step a witness means.
func find(places []place, st WitnessStep) (place, bool) {
	for _, p := range places {
		if slices.Equal(splitArgs(p.step.args), st.Command) && (!p.step.sql || p.step.conn == st.Conn) {
			return p, true
		}
	}
	return place{}, false
}

func (r *replayer) command(c *replayClient, p place, st WitnessStep, diverged func(string, string) error) error {
	cutOff := func() {
		if p.call != nil {
			c.run.wire.cutSQL(p.call)
		} else {
			p.conn.cut()
		}
		c.run.settle()
	}
	if st.Fault == faults.RequestLost || st.Fault == faults.RequestDelayed {
		if st.Fault == faults.RequestDelayed && p.step.sql {
			c.late[p.step.conn] = true
		}
		cutOff()
		return nil
	}
	reply, blocked, err := r.execute(c, st)
	if err != nil {
		return err
	}
	if blocked != st.Blocked || reply != st.Reply {
		return diverged("the answer "+st.Answer(), WitnessStep{Server: st.Server, Reply: reply, Blocked: blocked}.Answer())
	}
	return r.answer(c, p, st, reply, blocked, cutOff)
}

func (r *replayer) answer(c *replayClient, p place, st WitnessStep, reply string, blocked bool, cutOff func()) error {
	switch {
	case st.Fault == faults.ClientCrash:
		c.crashed = true
		c.results = append(c.results, model.Unknown)
		var all []int
		for _, conn := range allConns {
			all = append(all, session(c.number, conn))
		}
		r.abandon(all...)
	case st.Fault == faults.ReplyLost || st.Fault == faults.CommitReplyLost:
		cutOff()
	case blocked:
	case p.call != nil:
		c.run.wire.answerSQL(p.call, reply)
	default:
		p.conn.reply(reply)
	}
	return nil
}

// execute asks the servers.
func (r *replayer) execute(c *replayClient, st WitnessStep) (reply string, blocked bool, err error) {
	if st.Server == "sql" {
		r.now.sql, reply, blocked, err = r.now.sql.exec(step{sql: true, args: joinArgs(st.Command), conn: st.Conn}, c.number, 0)
		r.note(sqlEvent{StepCommand, session(c.number, st.Conn), st.Command, blocked, reply})
		return reply, blocked, err
	}
	res, err := r.engine.Exec(r.now.redis, st.Command)
	if err != nil {
		return "", false, err
	}
	if res.State.Encode() != r.now.redis.Encode() {
		r.before = append(r.before, r.now.redis)
	}
	r.now.redis = res.State
	// The acting client reads its reply before anybody's messages.
	if st.Kind == StepCommand && st.Fault == "" || st.Fault == faults.ClientPause {
		defer func() { r.spread(res.Messages) }()
	} else {
		r.spread(res.Messages)
	}
	return res.Reply, false, nil
}

// spread delivers messages to every client that listens.
func (r *replayer) spread(messages []redisstore.Message) {
	for _, m := range messages {
		for _, name := range r.names() {
			if c := r.clients[name]; c.run != nil && !c.crashed {
				c.run.wire.publish(m.Channel, m.Payload)
				c.run.settle()
			}
		}
	}
}

func (r *replayer) granted(c *replayClient, st WitnessStep, diverged func(string, string) error) error {
	number := session(c.number, st.Conn)
	var reply string
	var blocked bool
	var err error
	if !slices.Contains(r.now.sql.db.Runnable(), number) && st.Kind == StepGranted {
		return diverged("a statement that can go on", "one that cannot")
	}
	if r.now.sql, reply, blocked, err = r.now.sql.grant(number, st.Kind == StepDeadlock); err != nil {
		return err
	}
	r.note(sqlEvent{st.Kind, number, nil, blocked, reply})
	if len(st.Command) == 0 { // its client is gone
		return nil
	}
	if blocked != st.Blocked || reply != st.Reply {
		return diverged("the answer "+st.Answer(), WitnessStep{Server: "sql", Reply: reply, Blocked: blocked}.Answer())
	}
	p, ok := find(c.run.wire.pending(), st)
	if !ok {
		return diverged("a client that waits for "+st.Words(), "that it does not")
	}
	return r.answer(c, p, st, reply, blocked, func() { c.run.wire.cutSQL(p.call); c.run.settle() })
}

// travelled ends the connection a delayed statement came over.
func (r *replayer) travelled(c *replayClient, st WitnessStep) {
	if st.Server == "sql" {
		delete(c.late, st.Conn)
		r.abandon(session(c.number, st.Conn))
	}
}

// closeSessions tells the server which connections a client has hung up.
func (r *replayer) closeSessions(c *replayClient) {
	c.run.wire.mu.Lock()
	closed := slices.Clone(c.run.wire.closed)
	c.run.wire.mu.Unlock()
	for _, conn := range newlyClosed(c.hungUp, closed) {
		if !c.late[conn] {
			r.abandon(session(c.number, conn))
		}
	}
	c.hungUp = closed
}

// counter reads the counter through the scheme's own Read, on a moment that is
// then forgotten.
func (r *replayer) counter() (counter, error) {
	reader, ok := r.entry.Scheme.(schemes.Reader)
	if !ok {
		return counter{}, nil
	}
	_ = reader
	a := &automaton{entry: r.entry, times: r.w.Times, retries: -1, role: role{action: read, client: "reader", request: "reader.1"}}
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

// compareEnd holds the answers against those recorded.
func (r *replayer) compareEnd() error {
	for _, name := range r.names() {
		c := r.clients[name]
		var want []model.Outcome
		for _, o := range r.w.Outcomes {
			if o.Client == name {
				want = append(want, o.Outcome)
			}
		}
		got := c.results
		if !c.crashed && c.run != nil {
			got = append(got, model.Unknown) // the witness ends before the answer
		}
		if !slices.Equal(want, got) {
			return &DivergenceError{Line: len(r.w.Steps), Expected: fmt.Sprintf("%s answered %v", name, want), Seen: fmt.Sprint(got)}
		}
	}
	return nil
}

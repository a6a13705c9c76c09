package explore

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// Witness is one complete execution, step by step, with clients by name.
type Witness struct {
	Scheme, Workload string
	Retries          string // "off" or "default"
	Times            schemes.Config
	Stock            int64
	Clients          []WitnessClient
	Steps            []WitnessStep
	Outcomes         []schedule.Answer // of every operation that began
	Counter          *int64            // at the end; nil when it cannot be read
	Orders           *[]model.Order    // durable, at rest; nil where there are none to read
	Broken           []model.Finding
}

// WitnessClient is a client and what it runs.
type WitnessClient struct {
	Name  string
	Calls []faults.Call
	// Resubmits is the request this client submits a second time, or empty.
	Resubmits string
}

// StepKind says what a line of a witness is.
type StepKind string

// The kinds of line.
const (
	StepCommand  StepKind = "command"     // a client's command or statement, with the server's answer
	StepGranted  StepKind = "granted"     // a statement that was blocked goes on
	StepDeadlock StepKind = "deadlock"    // the server cancels a blocked statement
	StepArrives  StepKind = "arrives"     // a delayed request reaches the server
	StepNever    StepKind = "never"       // a delayed request turns out to be lost
	StepResume   StepKind = "resume"      // a paused client runs again
	StepWait     StepKind = "wait"        // time passes
	StepLoses    StepKind = "store-loses" // Redis loses its last writes and its scripts
	StepFlush    StepKind = "script-flush"
	StepResubmit StepKind = "resubmit" // another client gets the same request

	StepRestarts    StepKind = "restarts"     // a server dies and comes back
	StepFallsBehind StepKind = "falls-behind" // the link to Redis's replica breaks
	StepRefuses     StepKind = "refuses"      // the primary refuses writes
	StepTakesOver   StepKind = "takes-over"   // the replica becomes the primary
	StepFreezes     StepKind = "freezes"      // Redis stands still
	StepThaws       StepKind = "thaws"        // Redis goes on
	StepEvicts      StepKind = "evicts"       // Redis drops a key
	StepExpires     StepKind = "expires"      // the keys that were loaded expire
	StepLoads       StepKind = "loads"        // a job begins to load again
	StepReconciles  StepKind = "reconciles"   // a job begins to reconcile
)

// WitnessStep is one line of a witness.
type WitnessStep struct {
	Kind     StepKind
	Client   string
	Server   string   // "redis" or "sql"
	Conn     int      // for SQL: which of the client's connections
	Command  []string // words of the command; for SQL the statement, then its arguments
	Reply    string   // of the server, raw for Redis; empty when it never saw the step
	Blocked  bool     // the statement waits for a row
	Fault    faults.Kind
	Wait     time.Duration
	Lost     int               // writes or commits undone
	Setting  faults.Setting    // of the server that restarts
	Key      string            // that is evicted
	Returned []schedule.Answer // operations that were answered
	Woken    []string          // clients that got a message
	Counter  *int64            // afterwards
}

// trail is the way from the first state to state i.
func (s *searcher) trail(i uint32) []state {
	var ids []uint32
	for ; i != 0; i = s.parents.at(uint64(i)) {
		ids = append(ids, i)
	}
	states := []state{s.initial}
	for k := len(ids) - 1; k >= 0; k-- {
		states = append(states, *s.seen.at(ids[k]))
	}
	return states
}

// cast gives clients their names in the order in which they first act.
type casting struct {
	s     *searcher
	names []string // by position
	free  [][]string
}

func (s *searcher) newCasting() *casting {
	c := &casting{s: s, names: make([]string, s.clients), free: make([][]string, len(s.programs))}
	if !s.symmetry {
		for i := range c.names {
			c.names[i] = faults.ClientName(i)
		}
		return c
	}
	for i, who := range s.who {
		c.free[who] = append(c.free[who], faults.ClientName(i))
	}
	return c
}

func (c *casting) name(x *state, pos int) string {
	if c.names[pos-2] == "" {
		who := c.s.locals[x[pos]].who
		for c.s.programs[who].extra && len(c.free[who]) == 0 {
			who-- // what the extra client may run stands after what it came as
		}
		c.names[pos-2], c.free[who] = c.free[who][0], c.free[who][1:]
	}
	return c.names[pos-2]
}

// sort puts the clients of x in order and their names with them.
func (c *casting) sort(x *state) {
	if !c.s.symmetry {
		return
	}
	for i := 3; i < 2+c.s.clients; i++ {
		for j := i; j > 2 && x[j] < x[j-1]; j-- {
			x[j], x[j-1] = x[j-1], x[j]
			c.names[j-2], c.names[j-3] = c.names[j-3], c.names[j-2]
		}
	}
}

// witness tells the execution that leads to state i.
func (s *searcher) witness(i uint32) *Witness {
	states := s.trail(i)
	w := s.newWitness()
	x := states[0]
	c := s.newCasting()
	for _, next := range states[1:] {
		step, after := s.tell(c, x, next)
		w.Steps = append(w.Steps, step)
		x = after
	}
	s.conclude(w, c, x)
	return w
}

func (s *searcher) newWitness() *Witness {
	return &Witness{Scheme: s.cfg.Entry.Scheme.Name(), Workload: s.cfg.Workload.Name, Retries: s.cfg.Retries,
		Times: s.cfg.Times, Stock: s.cfg.Stock}
}

// tell finds what leads from x to the state next and says it.
func (s *searcher) tell(c *casting, x, next state) (WitnessStep, state) {
	var list []successor
	for i := 2; s.guided && i < 2+s.clients; i++ {
		if s.briefs[x[i]].moves {
			list = s.plainSteps(&x, i, list)
		}
	}
	leads := func(n successor) bool {
		s.sort(&n.state)
		return n.state == next
	}
	at := slices.IndexFunc(list, leads)
	if at < 0 {
		list = s.successors(&x, list[:0])
		at = slices.IndexFunc(list, leads)
	}
	if at >= 0 {
		n := &list[at]
		step := s.say(c, &x, n)
		y := n.state
		c.sort(&y)
		return step, y
	}
	fail(fmt.Errorf("state %v does not lead to %v: the search is broken", x, next))
	panic("unreachable")
}

func (s *searcher) say(c *casting, x *state, n *successor) WitnessStep {
	d := n.deed
	step := WitnessStep{}
	if d.actor > 0 {
		step.Client = c.name(x, int(d.actor))
	}
	at := s.vers[x[0]].at[0]
	command := func(cmd int32, op uint8) {
		st := s.world.step(cmd)
		step.Server = "redis"
		if st.sql {
			step.Server, step.Conn = "sql", int(op)*connsPerOp+st.conn
		}
		l := s.locals[x[d.actor]]
		rename := s.plain(l, op, step.Client)
		for _, word := range splitArgs(st.args) {
			step.Command = append(step.Command, rename.Replace(word))
		}
		e, err := s.exec(x[0], s.key(x[0], l, op, cmd))
		if err != nil {
			fail(err)
		}
		step.Reply, step.Blocked = redisstore.RenameReply(e.reply, rename.Replace), e.blocked
		if e.broken { // nothing but the connection's end is to be seen
			step.Fault = faults.RequestLost
		}
		if st.sql {
			step.Reply = rename.Replace(e.reply)
		}
	}
	switch d.what {
	case steps1:
		step.Kind = StepCommand
		command(s.infos[x[d.actor]].moves[d.index].cmd, s.locals[x[d.actor]].op)
		if d.kind != 0 {
			step.Fault = faultKinds[d.kind]
		}
		if step.Fault == faults.RequestLost || step.Fault == faults.RequestDelayed || step.Fault == faults.RedisFreeze {
			step.Reply = ""
		}
	case arrives:
		step.Kind = StepArrives
		d := s.locals[x[d.actor]].late[d.index]
		command(d.cmd-1, d.op)
	case vanishes:
		step.Kind = StepNever
		d := s.locals[x[d.actor]].late[d.index]
		command(d.cmd-1, d.op)
		step.Reply = ""
	case grants, cancels:
		step.Kind = StepGranted
		if d.what == cancels {
			step.Kind = StepDeadlock
		}
		l := s.locals[x[d.actor]]
		for _, st := range s.role(l).node(l.node).pending {
			if st.sql && st.conn == int(l.stuck)-1 {
				step.Server, step.Conn = "sql", int(l.op)*connsPerOp+st.conn
				for _, word := range splitArgs(st.args) {
					step.Command = append(step.Command, s.plain(l, l.op, step.Client).Replace(word))
				}
			}
		}
		e, err := s.world.grant(at, s.infos[x[d.actor]].stuck, d.what == cancels, s.kit.who(l))
		if err != nil {
			fail(err)
		}
		step.Reply, step.Blocked = s.plain(l, l.op, step.Client).Replace(e.reply), e.blocked
		if d.kind != 0 {
			step.Fault = faultKinds[d.kind]
		}
	case orphans:
		step.Kind, step.Server = StepGranted, "sql"
		step.Client = faults.ClientName(int(d.index) / maxConns)
		step.Conn = int(d.index) % maxConns
	case resumes:
		step.Kind = StepResume
	case jumps:
		step.Kind, step.Wait = StepWait, time.Duration(d.ms)*time.Millisecond
	case resubmits:
		p := &s.programs[s.locals[n.state[d.actor]].who]
		switch {
		case !p.job:
			step.Kind, step.Fault = StepResubmit, faults.DuplicateRequest
			step.Command = []string{strings.TrimPrefix(p.requests[0], clientPrefix)}
		case p.calls[0].Op == schedule.Reconcile:
			step.Kind, step.Fault = StepReconciles, faults.ReconcileOverlap
		default:
			step.Kind, step.Fault = StepLoads, faults.StockReloaded
		}
	case befalls:
		step = s.blows(x[0])[d.index].step
		step.Key = s.named(c, x).Replace(step.Key)
	case dies:
		step.Kind, step.Server, step.Fault, step.Lost = StepRestarts, "sql", faults.PostgresRestart, int(d.index)
		if step.Setting = faults.SyncCommitOn; step.Lost > 0 {
			step.Setting = faults.SyncCommitOff
		}
	}
	for i := 2; i < 2+s.clients; i++ {
		was, is := &s.locals[x[i]], &s.locals[n.state[i]]
		for op := was.op; op < is.op; op++ {
			name := c.name(x, i)
			step.Returned = append(step.Returned, schedule.Answer{Client: name, N: int(op) + 1, Outcome: outcomes[is.past[op].outcome-1]})
		}
		if i != int(d.actor) && d.what != jumps && d.what != dies && was.node != is.node && was.op == is.op && was.begun {
			step.Woken = append(step.Woken, c.name(x, i))
		}
	}
	if k := s.counter(s.vers[n.state[0]].at[0]); k.known {
		step.Counter = &k.value
	}
	return step
}

// plain turns our tokens into names a person uses: a, and a.1 for its request.
func (s *searcher) plain(l local, op uint8, client string) *strings.Replacer {
	p := &s.programs[l.who]
	return strings.NewReplacer(
		ownRequest, fmt.Sprintf("%s.%d", client, op+1),
		foreignRequest, faults.RequestID(p.origin, p.originOp), foreigner, faults.ClientName(p.origin),
		self, client, clientPrefix, "")
}

// named turns the tokens by which the stores know the clients into the clients'
// names: a key may carry that of any of them, whoever acts.
func (s *searcher) named(c *casting, x *state) *strings.Replacer {
	var names []string
	for i := 2; i < 2+s.clients; i++ {
		l := &s.locals[x[i]]
		if s.symmetry && l.slots[0] >= 0 {
			names = append(names, slotToken(int(l.slots[0])), c.name(x, i))
		}
	}
	return strings.NewReplacer(append(names, clientPrefix, "")...)
}

// conclude says what the execution came to.
func (s *searcher) conclude(w *Witness, c *casting, x state) {
	for i := 2; i < 2+s.clients; i++ {
		c.name(&x, i)
	}
	order := make([]int, s.clients)
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return c.names[order[a]] < c.names[order[b]] })
	for _, i := range order {
		l := &s.locals[x[2+i]]
		p := &s.programs[l.who]
		if l.status == dormant {
			continue
		}
		client := WitnessClient{Name: c.names[i], Calls: p.calls}
		if p.resubmits {
			client.Resubmits = strings.TrimPrefix(p.requests[0], clientPrefix)
		}
		w.Clients = append(w.Clients, client)
		for op := range p.calls {
			o := schedule.Answer{Client: c.names[i], N: op + 1}
			switch {
			case op < int(l.op):
				o.Outcome = outcomes[l.past[op].outcome-1]
			case op == int(l.op) && l.begun && l.status == crashed:
				o.Outcome = model.Unknown
			case op == int(l.op) && l.begun:
				o.Outcome = schedule.Unfinished
			default:
				continue // never began
			}
			w.Outcomes = append(w.Outcomes, o)
		}
	}
	at := s.vers[x[0]].at[0]
	if s.atRest(&x) {
		p := s.judge.profile(at)
		ops, rest := s.judge.history(&x, p)
		if p.counter.known {
			w.Counter = &p.counter.value
		}
		if s.judge.audited {
			orders := make([]model.Order, len(p.orders))
			named := map[string]string{} // requests by how the stores name them
			for i := range s.clients {
				l := &s.locals[x[2+i]]
				for op := range s.programs[l.who].calls {
					if slot := l.slots[0]; s.symmetry && slot >= 0 {
						named[fmt.Sprintf("%s.%d", slotToken(int(slot)), op+1)] = fmt.Sprintf("%s.%d", c.names[i], op+1)
					}
				}
			}
			for i, o := range p.orders {
				request, known := named[o.Request]
				if !known {
					request = strings.TrimPrefix(o.Request, clientPrefix)
				}
				orders[i] = model.Order{Request: request, Qty: o.Qty}
			}
			slices.SortFunc(orders, func(a, b model.Order) int { return strings.Compare(a.Request, b.Request) })
			w.Orders = &orders
		}
		low := s.cfg.Stock
		for _, step := range w.Steps {
			if step.Counter != nil {
				low = min(low, *step.Counter)
			}
		}
		rest.Lowest = &low
		for _, f := range judgeHistory(ops, rest) {
			if f.Broken {
				w.Broken = append(w.Broken, f)
			}
		}
		return
	}
	if k := s.counter(at); k.known {
		w.Counter = &k.value
		if k.value < 0 {
			w.Broken = append(w.Broken, model.Finding{Property: model.NegativeTransient, Evaluated: true, Broken: true,
				Amount: k.value, Detail: fmt.Sprintf("the counter is at %d", k.value)})
		}
	}
}

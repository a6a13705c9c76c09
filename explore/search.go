package explore

import (
	"context"
	"fmt"
	"slices"

	"stockproof/faults"
	"stockproof/model"
)

// deed says which change leads from a state to the next.
type deed struct {
	ms    int64
	index int32 // of its step or delayed command; the number of the blow, or of commits lost
	what  deedKind
	actor uint8 // position of the client
	kind  uint8 // of the fault, for a step
}

type deedKind uint8

const (
	steps1 deedKind = iota // a client makes a step
	arrives
	vanishes
	resumes
	jumps
	befalls // a server is hit
	dies    // the database is
	resubmits
	grants
	cancels
	orphans
)

// successor is a state reached, before its clients are sorted, and how many
// interchangeable clients reach it.
type successor struct {
	state state
	mult  uint8
	deed  deed
	place int16 // of the fault that was placed, -1
	fired int16 // of the fault that made its difference, -1
}

// searcher explores one configuration.
type searcher struct {
	asked memo[struct{}] // steps of clients that inquiries have taken up
	*kit
	symmetry bool
	clients  int     // locals in use
	who      []uint8 // program of each client
	initial  state

	seen      *visited
	parents   slab[uint32]
	edges     slab[edge]
	starts    slab[uint64]      // of each state's edges
	ends      []uint32          // states at rest
	forgotten map[uint32]uint32 // only for a mutant
	stalls    int               // states from which nothing can happen although somebody waits

	resting bool // the last state whose successors were listed is at rest
	guided  bool // what leads from state to state is asked of as little code as will do
	lab     *Lab // whose free cores may help; nil for none

	judge *judge
}

func (l *Lab) search(ctx context.Context, cfg Config, symmetry bool) (res *Result, err error) {
	defer rescue(&err)
	s, err := l.prepare(cfg, symmetry)
	if err != nil {
		return nil, err
	}
	l.searches.Add(1)
	defer l.searches.Add(-1)
	s.lab = l
	why := s.breadthFirst(ctx)
	return s.result(why, l.runs.Load()), nil
}

// rescue turns a failure in the middle of a search into an error.
func rescue(err *error) {
	switch p := recover().(type) {
	case nil:
	case failure:
		*err = p.err
	default:
		panic(p)
	}
}

// prepare makes a searcher that stands at the first state.
func (l *Lab) prepare(cfg Config, symmetry bool) (*searcher, error) {
	w, err := l.world(cfg, symmetry)
	if err != nil {
		return nil, err
	}
	return l.prepareIn(w, cfg, symmetry)
}

func (l *Lab) prepareIn(w *world, cfg Config, symmetry bool) (*searcher, error) {
	programs, who, err := l.cast(cfg, symmetry)
	if err != nil {
		return nil, err
	}
	s := &searcher{kit: newKit(cfg, w, programs), symmetry: symmetry, clients: len(who), who: who, seen: newVisited()}
	if err := s.begin(who); err != nil {
		return nil, err
	}
	s.judge = newJudge(s)
	s.forgotten = map[uint32]uint32{}
	return s, nil
}

// begin makes the first state: the article is on sale and nobody has come.
func (s *searcher) begin(who []uint8) error {
	h, err := s.onSale()
	if err != nil {
		return err
	}
	s.initial[0] = h
	for i, p := range who {
		s.initial[2+i] = s.newcomer(p)
	}
	s.sort(&s.initial)
	return nil
}

// onSale is the stores when the article is on sale.
func (k *kit) onSale() (uint32, error) {
	nothing, err := newMoment(k.cfg.Entry)
	if err != nil {
		return 0, err
	}
	empty, _ := k.world.change(-1, func(moment) moment { return nothing })
	at, r, err := k.world.alone(empty, load, k.cfg.Stock, prober)
	if err != nil {
		return 0, err
	}
	if r.outcome != model.OK {
		return 0, fmt.Errorf("%w: load: %s", ErrScheme, r.err)
	}
	v := versions{n: 1, track: k.loses > 0}
	v.at[0] = at
	k.loaded = k.world.moment(at).redis
	if slices.Contains(k.restarts, faults.Snapshot) {
		if err := noLease(k.loaded, k.cfg.Entry); err != nil {
			return 0, err
		}
	}
	return k.version(v), nil
}

// newcomer is a client of a program that has not come.
func (k *kit) newcomer(program uint8) uint32 {
	l := local{who: program, node: k.programs[program].roles[0].root.id}
	if k.programs[program].extra {
		l.status = dormant
	}
	for v := range l.slots {
		l.slots[v] = -1
	}
	return k.local(l)
}

// sort puts interchangeable clients in order.
func (s *searcher) sort(x *state) {
	if !s.symmetry {
		return
	}
	before := *x
	for i := 3; i < 2+s.clients; i++ {
		for j := i; j > 2 && x[j] < x[j-1]; j-- {
			x[j], x[j-1] = x[j-1], x[j]
		}
	}
	if s.mutant == tokensKept {
		for i := 2; i < 2+s.clients; i++ {
			l := s.locals[x[i]]
			l.slots = s.locals[before[i]].slots
			x[i] = s.local(l)
		}
	}
}

func (s *searcher) bytes() int64 {
	return s.seen.bytes() + s.parents.bytes(4) + s.edges.bytes(8) + s.starts.bytes(8) +
		int64(len(s.locals))*200 + int64(s.stepMemo.n)*400
}

// atRest says that nothing is in flight and nobody will do anything any more.
func (s *searcher) atRest(x *state) bool {
	for i := 2; i < 2+s.clients; i++ {
		if !s.briefs[x[i]].settled {
			return false
		}
	}
	return s.queue(x[0]).waiting == 0 && !s.verInfos[x[0]].frozen
}

// successors lists what can happen in a state. None: it is at rest.
func (s *searcher) successors(x *state, out []successor) []successor {
	n := 2 + s.clients
	ready, open, lates, buffered := false, false, 0, false
	frozen := s.verInfos[x[0]].frozen
	var deadline int64
	for i := 2; i < n; i++ {
		info := &s.briefs[x[i]]
		ready = ready || info.ready && (!frozen || info.beside)
		buffered = buffered || info.buffered
		open = open || !info.finished
		lates += int(info.late)
		if info.deadline > 0 && (deadline == 0 || info.deadline < deadline) {
			deadline = info.deadline
		}
	}
	q := s.queue(x[0])
	s.resting = !open && lates == 0 && q.waiting == 0 && !frozen
	if s.resting {
		return s.losses(x, s.begins(x, out), false)
	}
	left := s.cfg.MaxFaults - int(x.used())
	canJump := false
	for _, n := range q.runnable {
		if !s.owns(x, n) {
			h, _ := s.orphan(x[0], n) // without symmetry nobody has another number then
			out = append(out, successor{state: *x, mult: 1, place: -1, fired: -1, deed: deed{what: orphans, index: int32(n)}})
			out[len(out)-1].state[0] = h
		}
	}
	if (!ready && len(q.runnable) == 0 && len(q.deadlocked) == 0) || s.mutant == jumpTooEarly {
		if d := s.verInfos[x[0]].expiry; d > 0 && (deadline == 0 || d < deadline) {
			deadline = d
		}
		// What a server has buffered is executed before time passes again.
		canJump = deadline > 0 && (open || lates > 0) && (frozen || !buffered)
	}
	for i := 2; i < n; i++ {
		mult := uint8(1)
		if s.symmetry {
			if i > 2 && x[i] == x[i-1] {
				continue
			}
			for j := i + 1; j < n && x[j] == x[i]; j++ {
				if s.mutant != firstOnly {
					mult++
				}
			}
		}
		info := s.briefs[x[i]]
		if info.moves {
			list := s.step(x[0], x[i], x.epoch(), left > 0)
			for index := range list {
				v := &list[index]
				var o *successor
				out, o = another(out)
				o.mult, o.place, o.fired = mult, v.place, -1
				o.deed = deed{what: steps1, actor: uint8(i), index: v.move, kind: v.kind}
				s.apply(x, i, v, &o.state)
				if v.cost > 0 && v.kind != pauseKind && v.kind != delayKind { // nor a freeze, which has cost before
					o.fired = v.place
				}
			}
		}
		if info.stuck >= 0 {
			for _, kill := range []bool{false, true} {
				what, list := grants, q.runnable
				if kill {
					what, list = cancels, q.deadlocked
				}
				if !slices.Contains(list, int(info.stuck)) {
					continue
				}
				for index, v := range s.granted(x[0], x[i], x.epoch(), kill, left > 0) {
					out = append(out, successor{mult: mult, place: v.place, fired: -1,
						deed: deed{what: what, actor: uint8(i), index: int32(index), kind: v.kind}})
					o := &out[len(out)-1]
					s.apply(x, i, &v, &o.state)
					if v.cost > 0 && faultKinds[v.kind] != faults.ClientPause {
						o.fired = v.place
					}
				}
			}
		}
		for m := 0; m < int(info.late) && !frozen; m++ {
			v := s.arrive(x[0], x[i], x.epoch(), int32(m))
			out = append(out, successor{mult: mult, place: -1, fired: v.place, deed: deed{what: arrives, actor: uint8(i), index: int32(m)}})
			s.apply(x, i, &v, &out[len(out)-1].state)
			if !open && s.places[v.place].kind != faults.RedisFreeze {
				out = append(out, successor{state: *x, mult: mult, place: -1, fired: -1, deed: deed{what: vanishes, actor: uint8(i), index: int32(m)}})
				o := &out[len(out)-1]
				o.state[0], o.state[i], _ = s.vanish(x[0], x[i], m)
			}
		}
		if info.status == rested || (info.status == paused && !ready && !canJump) {
			l := &s.locals[x[i]]
			r := s.resumed(x[i], x.epoch())
			out = append(out, successor{state: *x, mult: mult, place: -1, fired: l.place, deed: deed{what: resumes, actor: uint8(i)}})
			o := &out[len(out)-1]
			o.state[i] = r.l
			o.state[1] = x[1]&^0xffff | r.epoch
		}
	}
	if canJump {
		out = append(out, successor{mult: 1, place: -1, fired: -1, deed: deed{what: jumps, ms: deadline}})
		s.jump(x, deadline, &out[len(out)-1].state)
	}
	return s.losses(x, s.begins(x, out), true)
}

// plainSteps lists the steps without a fault of one client.
func (s *searcher) plainSteps(x *state, actor int, out []successor) []successor {
	list := s.step(x[0], x[actor], x.epoch(), false)
	for index := range list {
		v := &list[index]
		var o *successor
		out, o = another(out)
		o.mult, o.place, o.fired = 1, v.place, -1 // to give up while a server stands still costs nothing more
		o.deed = deed{what: steps1, actor: uint8(actor), index: v.move, kind: v.kind}
		s.apply(x, actor, v, &o.state)
	}
	return out
}

// another makes room for one more successor; it may hold anything.
func another(out []successor) ([]successor, *successor) {
	if len(out) < cap(out) {
		out = out[:len(out)+1]
	} else {
		out = append(out, successor{})
	}
	return out, &out[len(out)-1]
}

// queue is what can go on in the database by itself.
type queue struct {
	runnable, deadlocked []int
	waiting              int
}

var noQueue = &queue{}

func (s *kit) queue(h uint32) *queue {
	if !s.cfg.Entry.Stores.SQL {
		return noQueue
	}
	if q := s.queueMemo[h]; q != nil {
		return q
	}
	q := &queue{}
	q.runnable, q.deadlocked, q.waiting = s.world.queue(s.vers[h].at[0])
	s.queueMemo[h] = q
	return q
}

// owns says whether a client waits for the statement of a session.
func (s *searcher) owns(x *state, session int) bool {
	for i := 2; i < 2+s.clients; i++ {
		if s.infos[x[i]].stuck == session {
			return true
		}
	}
	return false
}

// losses are what can go wrong with the servers themselves. After everything
// else is over a loss still matters: the counter is read then.
func (s *searcher) losses(x *state, out []successor, open bool) []successor {
	left := s.cfg.MaxFaults - int(x.used())
	for i, b := range s.blows(x[0]) {
		if int(b.cost) > left || b.during && !open {
			continue
		}
		out = append(out, successor{mult: 1, place: b.place, fired: b.fired, deed: deed{what: befalls, index: int32(i)}})
		s.strike(x, &b, &out[len(out)-1].state)
	}
	return s.restartsOfDatabase(x, open, out)
}

// strike makes a fault of the servers happen.
func (s *searcher) strike(x *state, b *blow, out *state) {
	*out = *x
	out[0] = b.h
	for i := 2; i < 2+s.clients; i++ {
		out[i] = s.shifted(x[i], b.shift)
	}
	out[1] += uint32(b.cost) << 16
	s.untrack(out)
}

// untrack forgets past versions once no loss can come any more.
func (s *searcher) untrack(x *state) {
	if s.loses == 0 || int(x.used()) < s.cfg.MaxFaults {
		return
	}
	h, sh := s.untracked(x[0])
	if sh == 0 {
		return
	}
	x[0] = h
	for i := 2; i < 2+s.clients; i++ {
		x[i] = s.shifted(x[i], sh)
	}
}

// apply is the state after the client at position actor made a step.
func (s *searcher) apply(x *state, actor int, v *variant, out *state) {
	*out = *x
	out[0], out[actor] = v.h, v.l
	ep := v.epoch
	if v.shift != 0 {
		for i := 2; i < 2+s.clients; i++ {
			if i != actor {
				out[i] = s.shifted(out[i], v.shift)
			}
		}
	}
	if v.messages != 0 && s.mutant != messagesLost {
		for i := 2; i < 2+s.clients; i++ {
			r := s.told(out[i], v.messages, ep)
			out[i], ep = r.l, r.epoch
		}
	}
	out[1] = x[1]&^0xffff + uint32(v.cost)<<16 | ep
	if v.cost > 0 {
		s.untrack(out)
	}
}

// jump is the state after d milliseconds.
func (s *searcher) jump(x *state, d int64, out *state) {
	*out = *x
	a := s.agedVersions(x[0], d)
	out[0] = a.h
	ep := x.epoch()
	for i := 2; i < 2+s.clients; i++ {
		r := s.aged(s.shifted(x[i], a.shift), d, ep)
		out[i], ep = r.l, r.epoch
	}
	out[1] = x[1]&^0xffff | ep
}

// countPlaces counts placements.
func (k *kit) countPlaces() (placed, fired int) {
	for i := range k.places {
		if k.placed[i] {
			placed++
		}
		if k.fired[i] {
			fired++
		}
	}
	return placed, fired
}

package explore

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"stockproof/explore/counters"
	"stockproof/faults"
	"stockproof/model"
)

// anyControl is the finite part of a sale with any number of clients: the
// stores, the faults used, and what of those who are gone still matters. Sums
// are in units and stop at anySystem.most.
type anyControl struct {
	h         uint32 // versions of the stores
	used      uint8  // faults, 0 when they are not counted
	sold      uint8  // answered sold
	restocked uint8  // answered ok
	maybe     uint8  // restocks that stayed unknown
	double    bool   // a request took more than its quantity and will not give back
}

// anySystem is a sale in which clients are counted, as package counters wants
// it. A client that has finished, with nothing of it in flight, is gone.
type anySystem struct {
	*kit
	exact     bool // those who have not come are counted too, and will come
	unbounded bool // faults are not counted
	most      uint8

	controls []anyControl
	ids      map[anyControl]uint32
	settled  map[settledKey]gained
	audited  bool               // the scheme writes orders
	ordered  map[int32][]string // requests with an order, by moment
	others   map[othersKey]uint32

	aways    [][]away // number 0 is none
	awayIDs  map[string]int32
	attached map[stand]stand
	detached map[stand]stand

	found map[model.Property]bool
	rests map[int32]counter // by moment
}

// settledKey is a client before and after a change, and, where there are orders,
// the stores afterwards.
type settledKey struct{ before, after, h uint32 }

type othersKey struct {
	local    uint32
	shift    int32
	messages int32
	advance  int64
}

// gained is what a client's change adds to the sums, and the client without
// what is counted by now; local 0 is one that is gone.
type gained struct {
	local                  uint32
	sold, restocked, maybe uint8
	double                 bool
}

// errAnsweredInPassing: an operation is answered sold by what another client
// did, and the number of those it happens to at once is not known.
var errAnsweredInPassing = errors.New("operations are answered by what other clients do")

// errEndless: the counter goes on and on with the number of clients, so that the
// store is not finite as far as can be seen.
var errEndless = errors.New("the store is not finite as far as can be seen, its counter goes further with every client")

// control numbers a control state.
func (s *anySystem) control(c anyControl) uint32 {
	c.sold, c.restocked, c.maybe = min(c.sold, s.most), min(c.restocked, s.most), min(c.maybe, s.most)
	if id, ok := s.ids[c]; ok {
		return id
	}
	id := uint32(len(s.controls))
	s.controls = append(s.controls, c)
	s.ids[c] = id
	return id
}

// settle takes from a client that changed what is counted by now.
//
// A deduct that stays unknown is a sale where its order is found, as when a
// history is settled.
func (s *anySystem) settle(before, after, h uint32) gained {
	key := settledKey{before: before, after: after}
	if s.audited {
		key.h = h
	}
	if g, ok := s.settled[key]; ok {
		return g
	}
	var g gained
	was, l := s.locals[before], s.locals[after]
	calls := s.programs[l.who].calls
	doubtful := func(op uint8) bool { // it has an order or will never have one
		return s.audited && calls[op].Op == model.Deduct && s.hasOrder(h, l, op)
	}
	for op := was.op; op < l.op; op++ {
		q := uint8(min(calls[op].Qty, int64(s.most)))
		switch outcome := outcomes[l.past[op].outcome-1]; {
		case calls[op].Op == model.Deduct && outcome == model.Sold:
			g.sold += q
		case calls[op].Op == model.Restock && outcome == model.OK:
			g.restocked += q
		case calls[op].Op == model.Restock && outcome == model.Unknown:
			g.maybe += q
		}
	}
	if l.status == crashed && was.status != crashed && l.begun && calls[l.op].Op == model.Restock {
		g.maybe += uint8(min(calls[l.op].Qty, int64(s.most)))
	}
	travels := func(op uint8) bool {
		return slices.ContainsFunc(l.late[:], func(d late) bool { return d.cmd != 0 && d.op == op })
	}
	if was.slots[0] >= 0 && l.slots[0] < 0 && !s.unbounded && l.place == 0 {
		l.place = s.place(placement{who: l.who, n: -1}) // the stores have forgotten it
	}
	for op := range calls {
		o := uint8(op)
		took := &l.past[op].taken
		over := o < l.op
		if o == l.op && l.status == crashed {
			took, over = &l.taken, true
		}
		unknown := over && (o == l.op || l.past[op].outcome == outcomeIndex(model.Unknown))
		if over && !travels(o) {
			g.double = g.double || calls[op].Op == model.Deduct && int64(*took) > calls[op].Qty
			if *took = 0; unknown && doubtful(o) {
				g.sold += uint8(min(calls[op].Qty, int64(s.most)))
			}
			unknown = false
		}
		l.past[op] = ended{taken: l.past[op].taken}
		if unknown && o < l.op && s.audited {
			l.past[op].outcome = outcomeIndex(model.Unknown)
		}
	}
	l.call = 0
	if int(l.op) < len(calls) && l.status != crashed {
		n, err := s.alike.state(s.role(l), s.role(l).node(l.node))
		if err != nil {
			fail(err)
		}
		l.node = n.id
	}
	g.local = s.local(l)
	if s.briefs[g.local].settled {
		g.local = 0
	}
	s.settled[key] = g
	return g
}

// marked is a client that a fault has hit. What hits a few has to be told from
// what befalls any number, or the few would be taken for many.
func (s *anySystem) marked(id uint32, place int16) uint32 {
	l := s.locals[id]
	if s.unbounded || l.status == crashed || int(l.op) == len(s.programs[l.who].calls) {
		return id
	}
	l.place = place
	return s.local(l)
}

// few says that only a few clients can be in a local state: they are counted
// one by one.
func (s *anySystem) few(local uint32) bool {
	l := &s.locals[local]
	return l.slots[0] >= 0 || restockedBy(s.programs[l.who].calls) > 0 || (l.place > 0 || l.late[0].cmd != 0) && !s.unbounded
}

// nowhere are the stores of which nothing is known.
const nowhere = math.MaxUint32

// hasOrder says whether a client's operation has an order.
func (s *anySystem) hasOrder(h uint32, l local, op uint8) bool {
	if h == nowhere {
		fail(errAnsweredInPassing)
	}
	at := s.vers[h].at[0]
	list, ok := s.ordered[at]
	if !ok {
		_, r, err := s.world.alone(at, orders, 0, prober)
		if err != nil {
			fail(err)
		}
		if r.outcome != model.OK {
			fail(fmt.Errorf("%w: orders: %s", ErrScheme, r.err))
		}
		for _, o := range decodeOrders(r.orders) {
			list = append(list, o.Request)
		}
		s.ordered[at] = list
	}
	return l.slots[0] >= 0 && slices.Contains(list, fmt.Sprintf("%s.%d", slotToken(int(l.slots[0])), op+1))
}

// passing is a client after what another one, or time, did to it.
func (s *anySystem) passing(key othersKey) uint32 {
	if to, ok := s.others[key]; ok {
		return to
	}
	to := s.shifted(key.local, key.shift)
	if key.advance > 0 {
		to = s.aged(to, key.advance, 0).l
	}
	if key.messages != 0 {
		to = s.told(to, key.messages, 0).l
	}
	g := s.settle(key.local, to, nowhere)
	if g.sold+g.restocked+g.maybe > 0 {
		fail(errAnsweredInPassing)
	}
	// A double deduction of somebody who is answered in passing was one before.
	if g.double {
		fail(errAnsweredInPassing)
	}
	s.others[key] = g.local
	return g.local
}

// act is what happens in one move: an actor, with its sessions attached, becomes
// the local to, and the stores become h. before is what attaching meant for
// everybody else, shift and messages what the act means for them.
type act struct {
	actor, from, to, h uint32
	cost               uint8
	before             int32
	shift, messages    int32
	place              int16
}

func (s *anySystem) move(c anyControl, a act) counters.Move {
	m := counters.Move{Actor: a.actor}
	to := a.to
	if a.actor != 0 && a.cost > 0 {
		to = s.marked(to, a.place)
	}
	if a.actor != 0 && a.messages != 0 {
		to = s.told(to, a.messages, 0).l
	}
	c.h = a.h
	changes := []othersKey{{shift: a.before}, {shift: a.shift, messages: a.messages}}
	if a.cost > 0 && !s.unbounded {
		c.used += a.cost
		if s.loses > 0 && int(c.used) >= s.cfg.MaxFaults {
			var sh int32
			c.h, sh = s.untracked(c.h)
			to = s.shifted(to, sh)
			changes = append(changes, othersKey{shift: sh})
		}
	}
	if a.actor != 0 {
		g := s.settle(a.from, to, c.h)
		c.sold += g.sold
		c.restocked += g.restocked
		c.maybe += g.maybe
		c.double = c.double || g.double
		if m.Become = g.local; g.local != 0 {
			d := s.detach(c.h, g.local)
			c.h, m.Become = d.h, d.l
			changes = append(changes, othersKey{shift: d.shift})
		}
	}
	changes = slices.DeleteFunc(changes, func(k othersKey) bool { return k.shift == 0 && k.messages == 0 })
	if len(changes) > 0 {
		m.Others = func(l uint32) uint32 {
			for _, k := range changes {
				if k.local = l; l != 0 {
					l = s.passing(k)
				}
			}
			return l
		}
	}
	m.Control = s.control(c)
	return m
}

// coming says that a client has not begun anything.
func (s *anySystem) coming(l uint32) bool {
	return s.briefs[l].status == live && s.locals[l].op == 0 && !s.locals[l].begun
}

// Moves lists what can happen; it is searcher.successors for clients that are
// counted. Where that asks whether all clients are done, those who have not
// come may be clients that never do, unless they are counted.
func (s *anySystem) Moves(control uint32, present []uint32) (out []counters.Move) {
	c := s.controls[control]
	left := s.cfg.MaxFaults - int(c.used)
	ready, open, flying := false, false, false
	var deadline int64
	for _, l := range present {
		b := &s.briefs[l]
		ready = ready || b.ready
		open = open || !b.finished && (s.exact || !s.coming(l))
		flying = flying || b.late > 0
		if b.deadline > 0 && (deadline == 0 || b.deadline < deadline) {
			deadline = b.deadline
		}
	}
	canJump := false
	q := s.queue(c.h)
	stirs := len(q.runnable) > 0 || len(q.deadlocked) > 0
	for _, n := range q.runnable {
		if !slices.ContainsFunc(present, func(l uint32) bool { return int(s.briefs[l].stuck) == n }) {
			h, sh := s.orphan(c.h, n)
			out = append(out, s.move(c, act{h: h, shift: sh}))
		}
	}
	for _, l := range present {
		if at := s.attach(c.h, l); at.l != l {
			q := s.queue(at.h)
			stirs = stirs || slices.Contains(q.runnable, int(s.briefs[at.l].stuck)) || slices.Contains(q.deadlocked, int(s.briefs[at.l].stuck))
		}
	}
	if !ready && !stirs || s.mutant == jumpTooEarly {
		if d := s.verInfos[c.h].expiry; d > 0 && (deadline == 0 || d < deadline) {
			deadline = d
		}
		canJump = deadline > 0 && (open || flying || !s.exact)
	}
	for _, l := range present {
		at := s.attach(c.h, l)
		b := &s.briefs[at.l]
		become := func(v variant) counters.Move {
			return s.move(c, act{actor: l, from: at.l, to: v.l, h: v.h, cost: v.cost, before: at.shift, shift: v.shift, messages: v.messages, place: v.place})
		}
		if b.moves {
			for _, v := range s.step(at.h, at.l, 0, left > 0) {
				s.struckBy(v)
				out = append(out, become(v))
			}
		}
		q := s.queue(at.h)
		for _, kill := range []bool{false, true} {
			list := q.runnable
			if kill {
				list = q.deadlocked
			}
			if b.stuck < 0 || !slices.Contains(list, int(b.stuck)) {
				continue
			}
			for _, v := range s.granted(at.h, at.l, 0, kill, left > 0) {
				s.struckBy(v)
				out = append(out, become(v))
			}
		}
		for i := range int(b.late) {
			v := s.arrive(at.h, at.l, 0, int32(i))
			s.fired[v.place] = true
			out = append(out, become(v))
			if !open {
				h, to, sh := s.vanish(at.h, at.l, i)
				m := become(variant{h: h, l: to, shift: sh})
				m.Absent = true
				out = append(out, m)
			}
		}
		if b.status == rested || (b.status == paused && !ready && !canJump) {
			place := s.locals[l].place
			s.fired[place] = true
			m := become(variant{h: at.h, l: s.marked(s.resumed(at.l, 0).l, place)})
			m.Absent = b.status == paused
			out = append(out, m)
		}
	}
	if canJump {
		a := s.agedVersions(c.h, deadline)
		m := s.move(c, act{h: a.h})
		m.Absent = true
		m.Others = func(l uint32) uint32 {
			return s.passing(othersKey{local: l, shift: a.shift, advance: deadline})
		}
		out = append(out, m)
	}
	if left <= 0 {
		return out
	}
	if s.loses > 0 {
		for j := 1; j < int(s.vers[c.h].n); j++ {
			h, sh := s.hit(c.h, j)
			s.struck(placement{kind: faults.StoreLoses, n: j})
			out = append(out, s.move(c, act{h: h, cost: 1, shift: sh}))
		}
	}
	if s.flushes && s.verInfos[c.h].scripts && (open || !s.exact) {
		h, sh := s.hit(c.h, 0)
		s.struck(placement{kind: faults.ScriptFlush})
		out = append(out, s.move(c, act{h: h, cost: 1, shift: sh}))
	}
	return out
}

// struckBy notes the fault of a client's step, if it is one.
func (s *anySystem) struckBy(v variant) {
	if v.cost > 0 {
		s.placed[v.place] = true
		s.fired[v.place] = s.fired[v.place] || v.kind != pauseKind && v.kind != delayKind
	}
}

// struck notes a fault of the store.
func (s *anySystem) struck(p placement) {
	i := s.place(p)
	s.placed[i], s.fired[i] = true, true
}

// resting says that nothing is in flight and nobody who came will do anything.
func (s *anySystem) resting(marking []counters.Place) bool {
	for _, p := range marking {
		if s.exact || !s.coming(p.Local) {
			return false
		}
	}
	return true
}

// rested is the counter when every lease is over.
func (s *anySystem) rested(at int32) counter {
	c, ok := s.rests[at]
	if !ok {
		c = s.counter(s.world.atRest(at))
		s.rests[at] = c
	}
	return c
}

// strayed is how far below zero, and above what may be on sale, the counter is
// followed: a store that gets there is not taken to be finite.
const strayed = 12

// look judges one state. It answers an error when the store turns out not to be
// finite.
func (s *anySystem) look(control uint32, marking []counters.Place) error {
	c := s.controls[control]
	at := s.vers[c.h].at[0]
	now := s.verInfos[c.h].counter
	if now.known && now.value < 0 {
		s.found[model.NegativeTransient] = true
	}
	if now.known && (now.value < -strayed || now.value > int64(s.most)+strayed) {
		return fmt.Errorf("%w: it was met at %d", errEndless, now.value)
	}
	if !s.resting(marking) || s.queue(c.h).waiting > 0 {
		return nil
	}
	promised := s.cfg.Stock + int64(c.restocked) + int64(c.maybe)
	rest := s.rested(at)
	if int64(c.sold) > promised {
		s.found[model.Oversell] = true
	}
	if rest.known && rest.value < 0 {
		s.found[model.NegativePermanent] = true
	}
	// A sum that has stopped may stand for any larger one.
	if rest.known && (rest.value+int64(c.sold) > promised || c.sold == s.most) {
		s.found[model.PhantomUnits] = true
	}
	if c.double {
		s.found[model.DoubleDeduct] = true
	}
	return nil
}

// namesRequests says whether a command of the scheme names the request it belongs to.
func (s *anySystem) namesRequests() bool {
	s.world.mu.Lock()
	defer s.world.mu.Unlock()
	for _, m := range s.world.mentions {
		if m.request || m.foreign {
			return true
		}
	}
	return false
}

package explore

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/faults"
)

// follow moves a client along its automaton.
func (k *kit) follow(l local, e event) (local, *node) {
	a := k.role(l)
	from := a.node(l.node)
	n, err := a.step(from, e)
	if err != nil {
		fail(err)
	}
	if k.alike != nil {
		k.alike.met(from, e)
	}
	l.node = n.id
	return l, n
}

// finish ends the present operation if the node says so and the client runs.
func (k *kit) finish(l local, n *node, ep epoch) (local, epoch) {
	if !n.done || l.status != live {
		return l, ep
	}
	l.past[l.op] = ended{outcome: outcomeIndex(n.result.outcome), call: l.call, ret: ep.now, taken: l.taken}
	l.op++
	l.node, l.call, l.taken, l.begun = 0, 0, 0, false
	if roles := k.programs[l.who].roles; int(l.op) < len(roles) {
		l.node = roles[l.op].root.id
	}
	if k.mutant == orderForgotten {
		return l, ep
	}
	return l, ep.returns()
}

// took adds what a step took from the counter.
func (k *kit) took(l *local, before, after int32) {
	if before == after || k.role(*l).role.action != deduct {
		return
	}
	l.taken += k.taken(k.role(*l).role, before, after)
}

// taken is how many units a step of a role took. A step that writes a computed
// value over somebody else's restock makes the counter fall by more than its
// request asked for; it is one deduction all the same.
func (k *kit) taken(r role, before, after int32) int8 {
	b, a := k.counter(before), k.counter(after)
	if !b.known || !a.known {
		return 0
	}
	return int8(min(b.value-a.value, r.qty))
}

// step answers every way in which the parked steps of a client can go, faults
// among them when one may still happen: where none may, the code is not asked
// what it would make of one.
func (k *kit) step(h, lid, ew uint32, faulty bool) []variant {
	key := stepKey(h, lid, ew, of(allMoves, faulty))
	if at, ok := k.stepMemo.get(key); ok {
		return k.variantSlab[at.from:at.to]
	}
	var all []variant
	for m := range k.infos[lid].moves {
		from := len(all)
		all = append(all, k.variants(h, lid, epochOf(ew), m, faulty)...)
		for i := from; i < len(all); i++ {
			all[i].move = int32(m)
		}
	}
	return k.keep(key, all)
}

// span is a part of the slab in which variants are kept: one large piece of
// memory without pointers costs the garbage collector nothing.
type span struct{ from, to uint32 }

func (k *kit) keep(key memoKey, v []variant) []variant {
	at := span{from: uint32(len(k.variantSlab))}
	k.variantSlab = append(k.variantSlab, v...)
	at.to = uint32(len(k.variantSlab))
	k.stepMemo.put(key, at)
	return v
}

func (k *kit) variants(h, lid uint32, ep epoch, index int, faulty bool) []variant {
	l := k.locals[lid]
	mv := k.infos[lid].moves[index]
	if !l.begun {
		ep = ep.calls()
		l.begun, l.call = true, ep.now
	}
	eff, err := k.world.exec(k.key(h, l, l.op, mv.cmd))
	if err != nil {
		fail(err)
	}
	out := k.executed(nil, h, l, ep, mv.index, eff, faulty)
	if !faulty {
		return out
	}
	if k.allowed[faults.RequestLost] {
		out = append(out, k.lost(faults.RequestLost, h, l, ep, mv, -1))
	}
	if k.allowed[faults.RequestDelayed] && k.infos[lid].late < maxLate {
		conn := -1
		if st := k.world.step(mv.cmd); st.sql {
			conn = st.conn
		}
		out = append(out, k.lost(faults.RequestDelayed, h, l, ep, mv, conn))
	}
	return out
}

// key is the question what a command of a client does.
func (k *kit) key(h uint32, l local, op uint8, cmd int32) execKey {
	p := &k.programs[l.who]
	q := execKey{at: k.vers[h].at[0], cmd: cmd, slot: int8(p.index), op: int8(op), from: int8(p.origin), orig: int8(p.originOp)}
	if k.world.symmetry {
		q.slot = l.slots[0]
	}
	return q
}

// client is a client's number in the stores, -1 when they do not know it.
func (k *kit) client(l local) int {
	if k.world.symmetry {
		return int(l.slots[0])
	}
	return k.programs[l.who].index
}

// after is a client's number in the stores after an effect of its own.
func (k *kit) after(l local, eff effect) int {
	switch {
	case !k.world.symmetry:
		return k.programs[l.who].index
	case l.slots[0] >= 0:
		return int(eff.inv[l.slots[0]])
	}
	return int(eff.slot)
}

// named gives a client that the stores did not know before its new slot.
func (k *kit) named(l local, was local, me int) local {
	if was.slots[0] < 0 && k.world.symmetry {
		l.slots[0] = int8(me)
	}
	return l
}

// conns are a client's connections as the database numbers them.
func conns(op uint8, relative []int) []int {
	var list []int
	for _, c := range relative {
		list = append(list, int(op)*connsPerOp+c)
	}
	return list
}

// fault starts a variant that is a fault at the client's present step.
func (k *kit) fault(kind faults.Kind, l local) variant {
	n := k.role(l).node(l.node)
	return variant{kind: kindIndex(kind), cost: 1, place: k.place(placement{kind, l.who, l.op, n.steps + 1})}
}

// land is where a step of client number me leaves the stores: after its effect,
// the client's connections that it closed, and everything of a client that
// died. The last of its answers is the client's number then.
func (k *kit) land(h uint32, to int32, inv [maxSlots]int8, me int, hungUp []int) (uint32, shift, int32, int) {
	to, again := k.world.hangUp(to, me, hungUp)
	if k.world.symmetry && again != identity() {
		for i, n := range inv {
			if n >= 0 {
				inv[i] = again[n]
			}
		}
		if me >= 0 {
			me = int(again[me])
		}
	}
	h, sh, id := k.forward(h, to, inv)
	return h, sh, id, me
}

// stop is the end of a step for a client that goes on: it takes the event,
// hangs up what it closes, and perhaps has its answer.
func (k *kit) stop(h uint32, l local, ep epoch, e event, to int32, inv [maxSlots]int8, me, keep int) (variant, local, *node) {
	was := k.role(l).node(l.node)
	after, n := k.follow(l, e)
	hungUp := newlyClosed(was.closed, n.closed)
	if keep >= 0 {
		hungUp = slices.DeleteFunc(hungUp, func(c int) bool { return c == keep })
	}
	h2, sh, id, me := k.land(h, to, inv, me, conns(l.op, hungUp))
	after.slots = sh.apply(l.slots)
	after = k.named(after, l, me)
	if n.done && me >= 0 {
		k.noTransaction(h2, me, l.op, n.closed)
	}
	return variant{h: h2, epoch: ep.word(), shift: id, place: -1}, after, n
}

// noTransaction refuses schemes that answer and keep a transaction open: the
// next operation would meet it.
func (k *kit) noTransaction(h uint32, me int, op uint8, closed []int) {
	db := k.world.moment(k.vers[h].at[0]).sql.db
	if db == nil {
		return
	}
	for c := range connsPerOp {
		if db.InTransaction(session(me, int(op)*connsPerOp+c)) && !slices.Contains(closed, c) {
			fail(fmt.Errorf("%w: %s leaves a transaction open when it answers", ErrScheme, k.cfg.Entry.Scheme.Name()))
		}
	}
}

// executed lists the ways in which a step ends that the server has executed,
// or has begun to; those with a fault when it is to be faulty.
func (k *kit) executed(out []variant, h uint32, l local, ep epoch, index int, eff effect, faulty bool) []variant {
	at := k.vers[h].at[0]
	st := k.role(l).node(l.node).pending[index]
	l.stuck = 0
	k.took(&l, at, eff.to)
	me := k.after(l, eff)

	if eff.blocked {
		h2, sh, id := k.forward(h, eff.to, eff.inv)
		waits := l
		waits.slots = sh.apply(l.slots)
		waits = k.named(waits, l, me)
		waits.stuck = int8(st.conn) + 1
		out = append(out, variant{h: h2, l: k.local(waits), epoch: ep.word(), shift: id, place: -1})
	} else {
		v, told, n := k.stop(h, l, ep, event{kind: replied, index: index, text: eff.reply}, eff.to, eff.inv, me, -1)
		v.messages = eff.messages
		fin, ep2 := k.finish(told, n, ep)
		v.l, v.epoch = k.local(fin), ep2.word()
		out = append(out, v)
		if faulty && k.allowed[faults.ClientPause] && !n.done {
			p := k.fault(faults.ClientPause, l)
			p.h, p.shift, p.messages, p.epoch = v.h, v.shift, v.messages, ep.word()
			told.status, told.place = paused, p.place
			if k.mutant == pauseForgotten {
				told.status, told.place = live, 0
			}
			p.l = k.local(told)
			out = append(out, p)
		}
	}
	if !faulty {
		return out
	}
	if k.allowed[faults.ClientCrash] {
		v := k.fault(faults.ClientCrash, l)
		var hungUp []int
		if k.cfg.Entry.Stores.SQL {
			hungUp = allConns
		}
		h2, sh, id, gone := k.land(h, eff.to, eff.inv, me, hungUp)
		dead := l
		if k.mutant == crashBefore {
			h2, sh, id, gone = k.land(h, at, identity(), k.client(l), hungUp)
			eff.messages = 0
		}
		dead.slots = sh.apply(l.slots)
		dead = k.named(dead, l, gone)
		dead.status, dead.node, dead.stuck = crashed, 0, 0
		v.h, v.l, v.epoch, v.shift, v.messages = h2, k.local(dead), ep.word(), id, eff.messages
		out = append(out, v)
	}
	replyLost := func(kind faults.Kind) {
		f := k.fault(kind, l)
		v, told, n := k.stop(h, l, ep, event{kind: cut, index: index}, eff.to, eff.inv, me, -1)
		fin, ep2 := k.finish(told, n, ep)
		f.h, f.l, f.epoch, f.shift, f.messages = v.h, k.local(fin), ep2.word(), v.shift, eff.messages
		out = append(out, f)
	}
	if k.allowed[faults.ReplyLost] {
		replyLost(faults.ReplyLost)
	}
	if k.allowed[faults.CommitReplyLost] && st.sql && isCommit(st) {
		replyLost(faults.CommitReplyLost)
	}
	return out
}

func isCommit(s step) bool { return strings.EqualFold(splitArgs(s.args)[0], "commit") }

// lost is a step the server does not see, at least not now. keep is the
// connection over which it still travels, -1 for none.
func (k *kit) lost(kind faults.Kind, h uint32, l local, ep epoch, mv move, keep int) variant {
	f := k.fault(kind, l)
	op := l.op
	v, told, n := k.stop(h, l, ep, event{kind: cut, index: mv.index}, k.vers[h].at[0], identity(), k.client(l), keep)
	told, ep2 := k.finish(told, n, ep)
	if kind == faults.RequestDelayed && k.mutant != delayForgotten {
		told = withLate(told, late{cmd: mv.cmd + 1, place: f.place, op: op})
	}
	f.h, f.l, f.epoch, f.shift = v.h, k.local(told), ep2.word(), v.shift
	return f
}

// granted lists the ways in which a blocked statement goes on, or is cancelled
// in a deadlock; see step.
func (k *kit) granted(h, lid, ew uint32, kill, faulty bool) []variant {
	what := goesOn
	if kill {
		what = cancelled
	}
	key := stepKey(h, lid, ew, of(what, faulty))
	if at, ok := k.stepMemo.get(key); ok {
		return k.variantSlab[at.from:at.to]
	}
	l := k.locals[lid]
	n := k.role(l).node(l.node)
	index := slices.IndexFunc(n.pending, func(s step) bool { return s.sql && s.conn == int(l.stuck)-1 })
	eff, err := k.world.grant(k.vers[h].at[0], k.infos[lid].stuck, kill, k.who(l))
	if err != nil {
		fail(err)
	}
	return k.keep(key, k.executed(nil, h, l, epochOf(ew), index, eff, faulty))
}

// who are the names by which a client goes in the database.
func (k *kit) who(l local) execKey {
	return execKey{slot: int8(k.client(l)), op: int8(l.op)}
}

// orphan lets a statement go on whose client is gone.
func (k *kit) orphan(h uint32, session int) (uint32, int32) {
	eff, err := k.world.grant(k.vers[h].at[0], session, false, execKey{slot: -1})
	if err != nil {
		fail(err)
	}
	h2, _, id := k.forward(h, eff.to, eff.inv)
	return h2, id
}

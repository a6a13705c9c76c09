package explore

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/faults"
)

// placement is where a fault was put: kind, program, operation, n-th step.
type placement struct {
	kind faults.Kind
	who  uint8
	op   uint8
	n    int
}

// versions are the present moment of the stores and those a store that loses
// writes may fall back to, latest first.
type versions struct {
	at    [maxVersion]int32
	n     uint8
	track bool // a loss is still possible
}

// variant is one way in which a step can go.
type variant struct {
	h, l     uint32
	epoch    uint32
	shift    int32
	messages int32
	cost     uint8
	kind     uint8 // index in faultKinds
	place    int16
	move     int32 // which of the client's moves it is a way of
}

// faultKinds fixes a small number for each kind.
var faultKinds = []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost,
	faults.RequestDelayed, faults.DuplicateRequest, faults.CommitReplyLost, faults.StoreLoses, faults.ScriptFlush}

var (
	pauseKind = kindIndex(faults.ClientPause)
	delayKind = kindIndex(faults.RequestDelayed)
)

func kindIndex(k faults.Kind) uint8 {
	for i, known := range faultKinds {
		if k == known {
			return uint8(i)
		}
	}
	return 0
}

// stepKey is a client, by its local, in versions of the stores and an epoch,
// and what of it is asked: see the constants.
func stepKey(h, l, epoch uint32, what int) memoKey {
	return memoKey{uint64(h)<<32 | uint64(l), uint64(epoch)<<32 | uint64(what)}
}

const (
	allMoves  = 1 // what its parked steps can come to
	goesOn    = 2 // … its blocked statement
	cancelled = 3 // … in a deadlock
	lateMove  = 4 // and above: its delayed commands
)

// localKey is a local, in an epoch where that matters, and what happens to it;
// arg is never 0.
func localKey(l, epoch uint32, arg int64) memoKey {
	return memoKey{uint64(l)<<32 | uint64(epoch), uint64(arg)}
}

type localResult struct{ l, epoch uint32 }

// failure carries an error out of the middle of a search.
type failure struct{ err error }

func fail(err error) { panic(failure{err}) }

// kit is everything a search looks up: interned locals, versions, shifts, and
// what follows from what. It belongs to one goroutine.
type kit struct {
	cfg      Config
	world    *world
	programs []program
	allowed  map[faults.Kind]bool
	flushes  bool // scripts may be flushed
	resubmit bool // requests may be submitted again
	loses    int  // how many writes a store may lose, 0 for none
	mutant   mutant

	locals   []local
	localIDs map[local]uint32
	infos    []*info
	briefs   []brief

	vers     []versions
	verIDs   map[versions]uint32
	verInfos []verInfo

	shifts   []shift
	shiftIDs map[shift]int32

	places   []placement
	placeIDs map[placement]int16
	placed   []bool
	fired    []bool

	stepMemo    memo[span]
	variantSlab []variant
	lateMemo    memo[variant]
	shiftMemo   memo[uint32]
	tellMemo    memo[localResult]
	ageMemo     memo[localResult]
	ageVerMemo  memo[agedVersions]
	queueMemo   map[uint32]*queue
	counterMemo []counterMemo
}

// verInfo is what the search asks of versions in every state.
type verInfo struct {
	expiry  int64 // ms until a key of the present expires, 0 for never
	scripts bool  // the script cache is not empty
	counter counter
	struck  [maxVersion]struck // after a flush, and after the loss of 1, 2, … writes
}

type struck struct {
	known bool
	h     uint32
	shift int32
}

// hit is what a fault of the store makes of versions: a flush, or with j > 0
// the loss of j writes.
func (k *kit) hit(h uint32, j int) (uint32, int32) {
	if s := k.verInfos[h].struck[j]; s.known {
		return s.h, s.shift
	}
	s := struck{known: true}
	if j == 0 {
		s.h, s.shift = k.flushed(h)
	} else {
		s.h, s.shift = k.fallen(h, j)
	}
	k.verInfos[h].struck[j] = s
	return s.h, s.shift
}

type agedVersions struct {
	h     uint32
	shift int32
}

type counterMemo struct {
	asked bool
	counter
}

func newKit(cfg Config, w *world, programs []program) *kit {
	k := &kit{cfg: cfg, mutant: cfg.mutant, world: w, programs: programs, allowed: map[faults.Kind]bool{},
		localIDs: map[local]uint32{}, verIDs: map[versions]uint32{}, shiftIDs: map[shift]int32{}, placeIDs: map[placement]int16{},
		queueMemo: map[uint32]*queue{}}
	for _, f := range cfg.Faults {
		k.allowed[f] = true
	}
	k.flushes, k.resubmit = k.allowed[faults.ScriptFlush], k.allowed[faults.DuplicateRequest]
	if cfg.MaxFaults > 0 && k.allowed[faults.StoreLoses] {
		k.loses = maxVersion - 1
	}
	k.locals = append(k.locals, local{})
	k.infos = append(k.infos, nil)
	k.briefs = append(k.briefs, brief{})
	k.shifts = append(k.shifts, shift{})
	return k
}

func (k *kit) local(l local) uint32 {
	if id, ok := k.localIDs[l]; ok {
		return id
	}
	id := uint32(len(k.locals))
	k.locals = append(k.locals, l)
	i := k.describe(l)
	k.infos = append(k.infos, i)
	k.briefs = append(k.briefs, i.brief(l))
	k.localIDs[l] = id
	return id
}

func (k *kit) role(l local) *automaton { return k.programs[l.who].roles[l.op] }

func (k *kit) describe(l local) *info {
	i := &info{begunOps: l.op, stuck: -1}
	for _, d := range l.late {
		if d.cmd != 0 {
			i.late++
		}
	}
	done := int(l.op) == len(k.programs[l.who].calls)
	i.finished = l.status == crashed || l.status == dormant || (l.status == live && done)
	i.settled = i.finished && i.late == 0
	if i.finished {
		return i
	}
	n := k.role(l).node(l.node)
	i.arrived = l.status == live && l.begun
	if l.begun {
		i.begunOps++
	}
	i.channels = n.channels
	if l.status == live {
		for index, s := range n.pending {
			if l.stuck == 0 || !s.sql || s.conn != int(l.stuck)-1 {
				i.moves = append(i.moves, move{index, k.world.stepID(s)})
			}
		}
	}
	if l.stuck > 0 {
		i.stuck = session(k.programs[l.who].index, int(l.op)*connsPerOp+int(l.stuck)-1)
	}
	i.ready = i.arrived && len(i.moves) > 0
	if i.arrived && !i.ready {
		var err error
		if i.deadline, err = k.role(l).deadline(n); err != nil {
			fail(err)
		}
	}
	return i
}

func (k *kit) version(v versions) uint32 {
	if id, ok := k.verIDs[v]; ok {
		return id
	}
	id := uint32(len(k.vers))
	k.vers = append(k.vers, v)
	k.verIDs[v] = id
	m := k.world.moment(v.at[0])
	d, _ := m.redis.NextExpiry()
	k.verInfos = append(k.verInfos, verInfo{expiry: d.Milliseconds(), scripts: len(m.redis.Scripts) > 0, counter: k.counter(v.at[0])})
	return id
}

func (k *kit) shiftID(s shift) int32 {
	if id, ok := k.shiftIDs[s]; ok {
		return id
	}
	id := int32(len(k.shifts))
	k.shifts = append(k.shifts, s)
	k.shiftIDs[s] = id
	return id
}

func (k *kit) place(p placement) int16 {
	if id, ok := k.placeIDs[p]; ok {
		return id
	}
	id := int16(len(k.places))
	k.places = append(k.places, p)
	k.placeIDs[p] = id
	k.placed = append(k.placed, false)
	k.fired = append(k.fired, false)
	return id
}

// forward is the versions and the shift after the present became to.
//
// Only what Redis holds can be lost: a write to the database makes no version.
func (k *kit) forward(h uint32, to int32, inv [maxSlots]int8) (uint32, shift, int32) {
	v := k.vers[h]
	was, is := k.world.moment(v.at[0]), k.world.moment(to)
	sh := shift{source: [maxVersion]int8{0, 1, 2, 3}}
	for i := range sh.inv {
		sh.inv[i] = identity()
	}
	sh.inv[0] = inv
	if v.track && was.redisID != is.redisID {
		next := versions{track: true, n: min(v.n+1, uint8(k.loses)+1)}
		next.at[0] = to
		for i := 1; i < int(next.n); i++ {
			next.at[i] = v.at[i-1]
			sh.source[i] = int8(i - 1)
		}
		return k.version(next), sh, k.shiftID(sh)
	}
	v.at[0] = to
	same := true
	for slot := 0; slot < was.slots; slot++ {
		same = same && int(inv[slot]) == slot
	}
	if same {
		return k.version(v), sh, 0
	}
	return k.version(v), sh, k.shiftID(sh)
}

// counter reads the scheme's counter at a moment.
func (k *kit) counter(at int32) counter {
	for int(at) >= len(k.counterMemo) {
		k.counterMemo = append(k.counterMemo, counterMemo{})
	}
	m := &k.counterMemo[at]
	if !m.asked {
		c, err := k.world.count(at)
		if err != nil {
			fail(err)
		}
		k.counterMemo[at] = counterMemo{true, c}
		return c
	}
	return m.counter
}

// follow moves a client along its automaton.
func (k *kit) follow(l local, e event) (local, *node) {
	a := k.role(l)
	n, err := a.step(a.node(l.node), e)
	if err != nil {
		fail(err)
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

// step answers every way in which the parked steps of a client can go.
func (k *kit) step(h, lid, ew uint32) []variant {
	key := stepKey(h, lid, ew, allMoves)
	if at, ok := k.stepMemo.get(key); ok {
		return k.variantSlab[at.from:at.to]
	}
	var all []variant
	for m := range k.infos[lid].moves {
		from := len(all)
		all = append(all, k.variants(h, lid, epochOf(ew), m)...)
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

func (k *kit) variants(h, lid uint32, ep epoch, index int) []variant {
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
	out := k.executed(nil, h, l, ep, mv.index, eff)
	if k.cfg.MaxFaults == 0 {
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

// named gives a client that the stores did not know its new slot.
func (k *kit) named(l local, eff effect) local {
	if l.slots[0] < 0 && k.world.symmetry {
		l.slots[0] = eff.slot
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

// land is where a step leaves the stores: after its effect, the client's
// connections that it closed, and everything of a client that died.
func (k *kit) land(h uint32, l local, to int32, inv [maxSlots]int8, hungUp []int) (uint32, shift, int32) {
	to = k.world.hangUp(to, k.programs[l.who].index, hungUp)
	return k.forward(h, to, inv)
}

// stop is the end of a step for a client that goes on: it takes the event,
// hangs up what it closes, and perhaps has its answer.
func (k *kit) stop(h uint32, l local, ep epoch, e event, to int32, inv [maxSlots]int8, keep int) (variant, local, *node) {
	was := k.role(l).node(l.node)
	after, n := k.follow(l, e)
	hungUp := newlyClosed(was.closed, n.closed)
	if keep >= 0 {
		hungUp = slices.DeleteFunc(hungUp, func(c int) bool { return c == keep })
	}
	h2, sh, id := k.land(h, l, to, inv, conns(l.op, hungUp))
	after.slots = sh.apply(l.slots)
	if n.done {
		k.noTransaction(h2, l, n.closed)
	}
	return variant{h: h2, epoch: ep.word(), shift: id, place: -1}, after, n
}

// noTransaction refuses schemes that answer and keep a transaction open: the
// next operation would meet it.
func (k *kit) noTransaction(h uint32, l local, closed []int) {
	db := k.world.moment(k.vers[h].at[0]).sql.db
	if db == nil {
		return
	}
	for c := range connsPerOp {
		if db.InTransaction(session(k.programs[l.who].index, int(l.op)*connsPerOp+c)) && !slices.Contains(closed, c) {
			fail(fmt.Errorf("%w: %s leaves a transaction open when it answers", ErrScheme, k.cfg.Entry.Scheme.Name()))
		}
	}
}

// executed lists the ways in which a step ends that the server has executed,
// or has begun to.
func (k *kit) executed(out []variant, h uint32, l local, ep epoch, index int, eff effect) []variant {
	at := k.vers[h].at[0]
	st := k.role(l).node(l.node).pending[index]
	l.stuck = 0
	k.took(&l, at, eff.to)

	if eff.blocked {
		h2, sh, id := k.forward(h, eff.to, eff.inv)
		waits := l
		waits.slots = sh.apply(l.slots)
		waits.stuck = int8(st.conn) + 1
		out = append(out, variant{h: h2, l: k.local(waits), epoch: ep.word(), shift: id, place: -1})
	} else {
		v, told, n := k.stop(h, l, ep, event{kind: replied, index: index, text: eff.reply}, eff.to, eff.inv, -1)
		told = k.named(told, eff)
		v.messages = eff.messages
		fin, ep2 := k.finish(told, n, ep)
		v.l, v.epoch = k.local(fin), ep2.word()
		out = append(out, v)
		if k.cfg.MaxFaults > 0 && k.allowed[faults.ClientPause] && !n.done {
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
	if k.cfg.MaxFaults == 0 {
		return out
	}
	if k.allowed[faults.ClientCrash] {
		v := k.fault(faults.ClientCrash, l)
		var hungUp []int
		if k.cfg.Entry.Stores.SQL {
			hungUp = allConns
		}
		h2, sh, id := k.land(h, l, eff.to, eff.inv, hungUp)
		dead := l
		if k.mutant == crashBefore {
			h2, sh, id = k.land(h, l, at, identity(), hungUp)
			eff.messages = 0
		}
		dead.slots = sh.apply(l.slots)
		dead = k.named(dead, eff)
		dead.status, dead.node, dead.stuck = crashed, 0, 0
		v.h, v.l, v.epoch, v.shift, v.messages = h2, k.local(dead), ep.word(), id, eff.messages
		out = append(out, v)
	}
	replyLost := func(kind faults.Kind) {
		f := k.fault(kind, l)
		v, told, n := k.stop(h, l, ep, event{kind: cut, index: index}, eff.to, eff.inv, -1)
		told = k.named(told, eff)
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
	v, told, n := k.stop(h, l, ep, event{kind: cut, index: mv.index}, k.vers[h].at[0], identity(), keep)
	told, ep2 := k.finish(told, n, ep)
	if kind == faults.RequestDelayed && k.mutant != delayForgotten {
		told = withLate(told, late{cmd: mv.cmd + 1, place: f.place, op: op})
	}
	f.h, f.l, f.epoch, f.shift = v.h, k.local(told), ep2.word(), v.shift
	return f
}

// granted lists the ways in which a blocked statement goes on, or is cancelled
// in a deadlock.
func (k *kit) granted(h, lid, ew uint32, kill bool) []variant {
	what := goesOn
	if kill {
		what = cancelled
	}
	key := stepKey(h, lid, ew, what)
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
	return k.keep(key, k.executed(nil, h, l, epochOf(ew), index, eff))
}

// who are the names by which a client goes in the database.
func (k *kit) who(l local) execKey {
	return execKey{slot: int8(k.programs[l.who].index), op: int8(l.op)}
}

// orphan lets a statement go on whose client is gone.
func (k *kit) orphan(h uint32, session int) uint32 {
	eff, err := k.world.grant(k.vers[h].at[0], session, false, execKey{slot: -1})
	if err != nil {
		fail(err)
	}
	h2, _, _ := k.forward(h, eff.to, eff.inv)
	return h2
}

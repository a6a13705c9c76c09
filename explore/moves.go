package explore

import (
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
}

// faultKinds fixes a small number for each kind.
var faultKinds = []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost,
	faults.RequestDelayed, faults.DuplicateRequest, faults.CommitReplyLost, faults.StoreLoses, faults.ScriptFlush}

func kindIndex(k faults.Kind) uint8 {
	for i, known := range faultKinds {
		if k == known {
			return uint8(i)
		}
	}
	return 0
}

type stepKey struct {
	h, l, epoch uint32
	index       int32
}

type localKey struct {
	l, epoch uint32
	arg      int64
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
	loses    int // how many writes a store may lose, 0 for none
	mutant   mutant

	locals   []local
	localIDs map[local]uint32
	infos    []*info

	vers   []versions
	verIDs map[versions]uint32

	shifts   []shift
	shiftIDs map[shift]int32

	places   []placement
	placeIDs map[placement]int16
	placed   []bool
	fired    []bool

	stepMemo    map[stepKey][]variant
	lateMemo    map[stepKey]variant
	shiftMemo   map[localKey]uint32
	tellMemo    map[localKey]localResult
	ageMemo     map[localKey]localResult
	ageVerMemo  map[localKey]agedVersions
	expiryMemo  map[uint32]int64
	counterMemo []counterMemo
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
		stepMemo: map[stepKey][]variant{}, lateMemo: map[stepKey]variant{}, shiftMemo: map[localKey]uint32{},
		tellMemo: map[localKey]localResult{}, ageMemo: map[localKey]localResult{}, ageVerMemo: map[localKey]agedVersions{}, expiryMemo: map[uint32]int64{}}
	for _, f := range cfg.Faults {
		k.allowed[f] = true
	}
	if cfg.MaxFaults > 0 && k.allowed[faults.StoreLoses] {
		k.loses = maxVersion - 1
	}
	k.locals = append(k.locals, local{})
	k.infos = append(k.infos, nil)
	k.shifts = append(k.shifts, shift{})
	return k
}

func (k *kit) local(l local) uint32 {
	if id, ok := k.localIDs[l]; ok {
		return id
	}
	id := uint32(len(k.locals))
	k.locals = append(k.locals, l)
	k.infos = append(k.infos, k.describe(l))
	k.localIDs[l] = id
	return id
}

func (k *kit) role(l local) *automaton { return k.programs[l.who].roles[l.op] }

func (k *kit) describe(l local) *info {
	i := &info{begunOps: l.op}
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
			i.moves = append(i.moves, move{index, k.world.stepID(s)})
		}
	}
	i.ready = i.arrived && len(i.moves) > 0
	if i.arrived && !i.ready {
		i.deadline = n.deadline
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
	l.past[l.op] = ended{outcome: outcomeIndex(n.result.outcome), call: l.call, ret: ep.now, pair: l.pair, taken: l.taken}
	l.op++
	l.node, l.call, l.taken, l.pair, l.begun = 0, 0, 0, 0, false
	if roles := k.programs[l.who].roles; int(l.op) < len(roles) {
		l.node = roles[l.op].root.id
	}
	return l, ep.returns()
}

// took adds what a step took from the counter.
func (k *kit) took(l *local, before, after int32) {
	if before == after || k.role(*l).role.action != deduct {
		return
	}
	if b, a := k.counter(before), k.counter(after); b.known && a.known {
		l.taken += int8(b.value - a.value)
	}
}

// step answers every way in which the index-th parked step of a client can go.
func (k *kit) step(h, lid, ew uint32, index int32) []variant {
	key := stepKey{h, lid, ew, index}
	if v, ok := k.stepMemo[key]; ok {
		return v
	}
	v := k.variants(h, lid, epochOf(ew), int(index))
	k.stepMemo[key] = v
	return v
}

func (k *kit) variants(h, lid uint32, ep epoch, index int) []variant {
	l := k.locals[lid]
	mv := k.infos[lid].moves[index]
	n := k.role(l).node(l.node)
	if !l.begun {
		ep = ep.calls()
		l.begun, l.call = true, ep.now
	}
	at := k.vers[h].at[0]
	eff, err := k.world.exec(execKey{at, mv.cmd, l.slots[0]})
	if err != nil {
		fail(err)
	}
	h2, sh, shiftID := k.forward(h, eff.to, eff.inv)
	done := l // the client after its step was executed, before it knows
	done.slots = sh.apply(l.slots)
	done.slots[0] = eff.slot
	k.took(&done, at, eff.to)

	var out []variant
	add := func(kind faults.Kind, h uint32, l local, ep epoch, shift, messages int32) *variant {
		v := variant{h: h, epoch: ep.word(), shift: shift, messages: messages, kind: kindIndex(kind), place: -1}
		if kind != faults.None {
			v.cost = 1
			v.place = k.place(placement{kind, l.who, l.op, n.steps + 1})
		}
		out = append(out, v)
		return &out[len(out)-1]
	}

	reply := event{kind: replied, index: mv.index, text: eff.reply}
	told, told2 := k.follow(done, reply)
	fin, ep2 := k.finish(told, told2, ep)
	add(faults.None, h2, fin, ep2, shiftID, eff.messages).l = k.local(fin)

	if k.cfg.MaxFaults == 0 {
		return out
	}
	if k.allowed[faults.ClientCrash] {
		dead := done
		dead.status, dead.node = crashed, 0
		add(faults.ClientCrash, h2, l, ep, shiftID, eff.messages).l = k.local(dead)
	}
	if k.allowed[faults.ClientPause] && !told2.done {
		v := add(faults.ClientPause, h2, l, ep, shiftID, eff.messages)
		stopped := told
		stopped.status, stopped.place = paused, v.place
		if k.mutant == pauseForgotten {
			stopped = told
		}
		v.l = k.local(stopped)
	}
	if k.allowed[faults.RequestLost] {
		lost, m := k.follow(l, event{kind: cut, index: mv.index})
		lost, ep2 := k.finish(lost, m, ep)
		add(faults.RequestLost, h, l, ep2, 0, 0).l = k.local(lost)
	}
	if k.allowed[faults.ReplyLost] {
		lost, m := k.follow(done, event{kind: cut, index: mv.index})
		lost, ep2 := k.finish(lost, m, ep)
		add(faults.ReplyLost, h2, l, ep2, shiftID, eff.messages).l = k.local(lost)
	}
	if k.allowed[faults.RequestDelayed] && k.infos[lid].late < maxLate {
		lost, m := k.follow(l, event{kind: cut, index: mv.index})
		op := lost.op
		lost, ep2 := k.finish(lost, m, ep)
		v := add(faults.RequestDelayed, h, l, ep2, 0, 0)
		if k.mutant != delayForgotten {
			lost = withLate(lost, late{cmd: mv.cmd + 1, place: v.place, op: op})
		}
		v.l = k.local(lost)
	}
	return out
}

// withLate adds a delayed command, keeping the list in order.
func withLate(l local, d late) local {
	for i := range l.late {
		if l.late[i].cmd == 0 {
			l.late[i] = d
			break
		}
	}
	return sortLate(l)
}

func sortLate(l local) local {
	less := func(a, b late) bool { // the empty ones last
		if a.cmd == 0 || b.cmd == 0 {
			return a.cmd != 0 && b.cmd == 0
		}
		if a.cmd != b.cmd {
			return a.cmd < b.cmd
		}
		return a.place < b.place
	}
	for i := 1; i < len(l.late); i++ {
		for j := i; j > 0 && less(l.late[j], l.late[j-1]); j-- {
			l.late[j], l.late[j-1] = l.late[j-1], l.late[j]
		}
	}
	return l
}

// arrive executes the index-th delayed command of a client.
func (k *kit) arrive(h, lid, ew uint32, index int32) variant {
	key := stepKey{h, lid, ew, index}
	if v, ok := k.lateMemo[key]; ok {
		return v
	}
	l := k.locals[lid]
	d := l.late[index]
	at := k.vers[h].at[0]
	eff, err := k.world.exec(execKey{at, d.cmd - 1, l.slots[0]})
	if err != nil {
		fail(err)
	}
	h2, sh, shiftID := k.forward(h, eff.to, eff.inv)
	l.slots = sh.apply(l.slots)
	l.slots[0] = eff.slot
	l.late[index] = late{}
	l = sortLate(l)
	if at != eff.to && k.programs[l.who].roles[d.op].role.action == deduct {
		if b, a := k.counter(at), k.counter(eff.to); b.known && a.known {
			if d.op == l.op {
				l.taken += int8(b.value - a.value)
			} else {
				l.past[d.op].taken += int8(b.value - a.value)
			}
		}
	}
	v := variant{h: h2, l: k.local(l), epoch: ew, shift: shiftID, messages: eff.messages, place: d.place}
	k.lateMemo[key] = v
	return v
}

// vanish drops a delayed command that never arrives.
func (k *kit) vanish(lid uint32, index int) uint32 {
	l := k.locals[lid]
	l.late[index] = late{}
	return k.local(sortLate(l))
}

// shifted is a local after the stores changed under it.
func (k *kit) shifted(lid uint32, id int32) uint32 {
	if id == 0 {
		return lid
	}
	key := localKey{l: lid, arg: int64(id)}
	if v, ok := k.shiftMemo[key]; ok {
		return v
	}
	l := k.locals[lid]
	sh := &k.shifts[id]
	l.slots = sh.apply(l.slots)
	v := k.local(l)
	k.shiftMemo[key] = v
	return v
}

// told is a local after messages were published: it gets those of the channels
// it listens on at that moment, whether it runs or is stopped.
func (k *kit) told(lid uint32, messages int32, ew uint32) localResult {
	i := k.infos[lid]
	if len(i.channels) == 0 || i.finished {
		return localResult{lid, ew}
	}
	key := localKey{lid, ew, int64(messages)}
	if v, ok := k.tellMemo[key]; ok {
		return v
	}
	l, ep := k.locals[lid], epochOf(ew)
	for _, m := range k.world.messageList(messages) {
		if int(l.op) == len(k.programs[l.who].calls) || !listens(k.role(l).node(l.node), m.Channel) {
			continue
		}
		next, n := k.follow(l, event{kind: told, text: joinArgs([]string{m.Channel, m.Payload})})
		l, ep = k.finish(next, n, ep)
	}
	v := localResult{k.local(l), ep.word()}
	k.tellMemo[key] = v
	return v
}

func listens(n *node, channel string) bool {
	for _, c := range n.channels {
		if c == channel {
			return true
		}
	}
	return false
}

// aged is a local after d milliseconds. Who has not arrived, or will never do
// anything any more, does not notice.
func (k *kit) aged(lid uint32, d int64, ew uint32) localResult {
	i := k.infos[lid]
	l := k.locals[lid]
	if i.finished || (l.status == live && !l.begun) {
		return localResult{lid, ew}
	}
	key := localKey{lid, ew, d}
	if v, ok := k.ageMemo[key]; ok {
		return v
	}
	ep := epochOf(ew)
	var n *node
	if !k.role(l).node(l.node).done { // a stopped client may have its answer already
		l, n = k.follow(l, event{kind: elapsed, advance: d})
	}
	if l.status == paused {
		l.status = rested
	}
	if n != nil {
		l, ep = k.finish(l, n, ep)
	}
	v := localResult{k.local(l), ep.word()}
	k.ageMemo[key] = v
	return v
}

// resumed is a stopped client that runs again.
func (k *kit) resumed(lid, ew uint32) localResult {
	l := k.locals[lid]
	l.status, l.place = live, 0
	l, ep := k.finish(l, k.role(l).node(l.node), epochOf(ew))
	return localResult{k.local(l), ep.word()}
}

// agedVersions lets d milliseconds pass on the servers, in every version.
func (k *kit) agedVersions(h uint32, d int64) agedVersions {
	key := localKey{l: h, arg: d}
	if v, ok := k.ageVerMemo[key]; ok {
		return v
	}
	v := k.vers[h]
	sh := shift{source: [maxVersion]int8{0, 1, 2, 3}}
	for i := range sh.inv {
		sh.inv[i] = identity()
	}
	for i := 0; i < int(v.n); i++ {
		a := k.world.age(v.at[i], d)
		v.at[i], sh.inv[i] = a.to, a.inv
	}
	r := agedVersions{k.version(v), k.shiftID(sh)}
	k.ageVerMemo[key] = r
	return r
}

// fallen is the store after it lost its last writes: j of them, and its
// scripts.
func (k *kit) fallen(h uint32, j int) (uint32, int32) {
	v := k.vers[h]
	sh := shift{}
	next := versions{track: v.track, n: v.n - uint8(j)}
	sqlNow := k.world.moment(v.at[0]).sql
	for i := range sh.source {
		sh.source[i], sh.inv[i] = -1, identity()
		if i < int(next.n) {
			sh.source[i] = int8(i + j)
			next.at[i] = v.at[i+j]
		}
	}
	next.at[0], sh.inv[0] = k.world.change(next.at[0], func(m moment) moment {
		m.redis = m.redis.WithoutScripts()
		m.sql = sqlNow
		return m
	})
	return k.version(next), k.shiftID(sh)
}

// flushed is the store without its script cache.
func (k *kit) flushed(h uint32) (uint32, int32) {
	at, inv := k.world.change(k.vers[h].at[0], func(m moment) moment {
		m.redis = m.redis.WithoutScripts()
		return m
	})
	v := k.vers[h]
	v.at[0] = at
	sh := shift{source: [maxVersion]int8{0, 1, 2, 3}}
	for i := range sh.inv {
		sh.inv[i] = identity()
	}
	sh.inv[0] = inv
	return k.version(v), k.shiftID(sh)
}

// untracked forgets what the store could fall back to, once no loss can come.
func (k *kit) untracked(h uint32) (uint32, int32) {
	v := k.vers[h]
	if !v.track {
		return h, 0
	}
	sh := shift{source: [maxVersion]int8{0, -1, -1, -1}}
	sh.inv[0] = identity()
	return k.version(versions{at: [maxVersion]int32{v.at[0]}, n: 1}), k.shiftID(sh)
}

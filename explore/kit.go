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
	withFault = 1 << 8
)

// of is what is asked of a client: with the faults that may happen, or without.
func of(what int, faulty bool) int {
	if faulty {
		return what | withFault
	}
	return what
}

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
	alike    *alike // nil where every history of a client is a state of its own

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
		i.stuck = session(k.client(l), int(l.op)*connsPerOp+int(l.stuck)-1)
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

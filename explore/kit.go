package explore

import (
	"slices"

	"stockproof/engines/redisstore"
	"stockproof/faults"
)

// ofServers are the faults that are a change of Redis and nothing else.
var ofServers = []faults.Kind{faults.StoreLoses, faults.ScriptFlush, faults.RedisRestart, faults.RedisFailover, faults.RedisFreeze,
	faults.KeyEvicted, faults.KeyExpired}

// placement is where a fault was put: kind, program, operation, n-th step.
type placement struct {
	kind faults.Kind
	who  uint8
	op   uint8
	n    int    // of a store: writes or commits that are lost
	key  string // of a store: the setting, or the key that is evicted
}

// versions are the present moment of the stores and those a store that loses
// writes may fall back to, latest first; and how the servers are.
type versions struct {
	at     [maxVersion]int32 // at replicaAt what the replica holds, unless the link is whole
	n      uint8             // moments before replicaAt
	track  bool              // a loss is still possible
	frozen bool              // Redis stands still
	link   link
	lag    uint8 // writes that the replica lacks
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
	faults.RequestDelayed, faults.DuplicateRequest, faults.CommitReplyLost, faults.StoreLoses, faults.ScriptFlush,
	faults.RedisRestart, faults.RedisFailover, faults.RedisFreeze, faults.KeyEvicted, faults.KeyExpired, faults.PostgresRestart,
	faults.StockReloaded, faults.ReconcileOverlap}

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
	resubmit bool // requests may be submitted again, or a job begin
	struck   bool // a server may be hit
	loses    int  // how many writes a store may lose, 0 for none
	forgets  bool // the database may lose commits
	noticing bool // the primary refuses writes once it has noticed that its replica is behind
	restarts []faults.Setting
	database []faults.Setting // under which it restarts
	loaded   redisstore.State // when the article had been loaded
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
	frozen  bool
	counter counter
	blows   []blow // nil until it is asked
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
	k.resubmit = extras(cfg) > 0
	tracks, forgets := cfg.tracks()
	if k.forgets = forgets; tracks || forgets {
		k.loses = replicaAt - 1
	}
	k.restarts, k.database = cfg.placesOf(faults.RedisRestart), cfg.placesOf(faults.PostgresRestart)
	k.noticing = slices.Contains(cfg.placesOf(faults.RedisFailover), faults.MinReplicas)
	for _, f := range ofServers {
		k.struck = k.struck || cfg.MaxFaults > 0 && k.allowed[f]
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
			i.buffered = i.buffered || k.places[d.place].kind == faults.RedisFreeze
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
				i.beside = i.beside || s.sql
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
	k.verInfos = append(k.verInfos, verInfo{expiry: d.Milliseconds(), frozen: v.frozen, counter: k.counter(v.at[0])})
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
// A write to the database makes a version only where the database can lose it.
func (k *kit) forward(h uint32, to int32, inv [maxSlots]int8) (uint32, shift, int32) {
	v := k.vers[h]
	was, is := k.world.moment(v.at[0]), k.world.moment(to)
	sh := stay()
	sh.inv[0] = inv
	if v.link.lags() && !sameKeys(was.redis, is.redis) {
		v.lag++
	}
	if v.track && (was.redisID != is.redisID || k.forgets && k.world.committed(v.at[0]) != k.world.committed(to)) {
		next := v
		next.n = min(v.n+1, uint8(k.loses)+1)
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

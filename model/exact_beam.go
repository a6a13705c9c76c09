package model

import "slices"

// beam runs an engine over a history. Where the frontier was cut and then no
// state was left, it goes back and looks harder.
type beam struct {
	*engine
	limits  Limits
	initial int64
	past    backlog // since the oldest checkpoint
	pos     int     // items the engine was given
	points  []checkpoint
	tries   int      // at the place that resists
	hardest int      // position of that place
	easy    int      // position from which the first level will do again
	kept    int      // steps left by the last compaction
	least   []uint64 // by kind, the unknowns that every state of the last complete checkpoint had used
	out     *Judgement
}

// checkpoint is an engine as it was before an item.
type checkpoint struct {
	pos      int
	complete bool
	slots    []pending
	free     []int32
	heap     []int32
	checks   []int32
	kinds    []kind
	words    int
	counters int
	moves    []uint64
	checkMsk []uint64
	front    []uint64
	n        int
	unit     bool
	steps    int
}

// checkpointEvery is how many items lie between two checkpoints.
var checkpointEvery = 64

// Of the newest checkpoints all are kept, as far as any level but the last goes
// back; of the older ones one in so many.
const densePoints, sparsePoints = 64, 16

// levels are how hard to look: the first everywhere, each other one where the
// one before found no way, from so many operations before that place. Not only
// the width changes from one to the next, also what is cut: a beam that was
// misled once is misled again by the same preference.
var levels = []level{
	{width: 16, solutions: 8, nodes: 200, risk: 2},
	{width: 8, solutions: 2, nodes: 40, excursions: true, risk: 2, back: 64},
	{width: 16, solutions: 3, nodes: 60, excursions: true, risk: 8, back: 128},
	{width: 32, solutions: 4, nodes: 100, excursions: true, risk: 2, back: 64},
	{width: 64, solutions: 8, nodes: 300, excursions: true, risk: 8, back: 128},
	{width: 128, solutions: 8, nodes: 500, excursions: true, risk: 2, back: 256},
	{width: 128, solutions: 16, nodes: 500, excursions: true, risk: 16, back: 512},
	{width: 128, solutions: 16, nodes: 500, excursions: true, risk: 1, back: 512},
	{width: 512, solutions: 16, nodes: 1000, excursions: true, risk: 4, back: 1024},
	{width: 512, solutions: 32, nodes: 1000, excursions: true, risk: 32, back: 1024},
	{width: 2048, solutions: 64, nodes: 10_000, excursions: true, risk: 4, back: 2048},
	{width: 4096, solutions: 4096, nodes: 200_000, excursions: true, risk: 2, back: 1 << 40},
}

// unitLevels are for moves by one unit, where visiting a value costs little.
var unitLevels = []level{
	{width: 64, solutions: 8, nodes: 1000, excursions: true, risk: 2},
	{width: 1024, solutions: 64, nodes: 10_000, excursions: true, risk: 2, back: 256},
	{width: 1024, solutions: 64, nodes: 10_000, excursions: true, risk: 8, back: 4096},
	{width: 16384, solutions: 4096, nodes: 200_000, excursions: true, risk: 2, back: 4096},
	{width: 16384, solutions: 4096, nodes: 200_000, excursions: true, risk: 2, back: 1 << 40},
}

func newBeam(initial int64, limits Limits) *beam {
	b := &beam{engine: newEngine(initial, limits.Order, unitLevels[0]), limits: limits, initial: initial}
	b.most = limits.Work
	b.points = append(b.points, b.save(checkpoint{}))
	return b
}

func (b *beam) decided() bool { return b.out != nil }

func (b *beam) add(it item) {
	if b.out != nil {
		return
	}
	b.past.push(it)
	b.run()
}

func (b *beam) finish() Judgement {
	for b.out == nil {
		if b.run(); b.out == nil && b.drain() {
			b.out = &Judgement{Ruling: Legal, Method: "frontier"}
			if b.keep {
				b.out.Order = b.order()
			}
		}
	}
	b.out.Work = b.work
	return *b.out
}

// drain lets everything return.
func (b *beam) drain() bool {
	for len(b.heap) > 0 {
		if !b.answer() {
			b.resist()
			return false
		}
	}
	return true
}

// run gives the engine what is in the buffer.
func (b *beam) run() {
next:
	for b.out == nil && b.pos < b.past.end {
		it := b.past.at(b.pos)
		for b.due(it.call) {
			if !b.answer() {
				b.resist()
				continue next
			}
		}
		switch last := b.points[len(b.points)-1].pos; {
		case len(b.heap) == 0 && b.pos-b.points[0].pos >= checkpointEvery && b.pos > last:
			b.quiet()
			b.checkpoint()
		case b.pos%checkpointEvery == 0 && b.pos > last:
			b.checkpoint()
		}
		b.call(it)
		b.pos++
		if b.work > b.limits.Work {
			b.undecided()
		}
	}
}

func (b *beam) levels() []level {
	if b.unit {
		return unitLevels
	}
	return levels
}

// patience is how many levels are tried again before a weaker history is: the
// narrow ones are cheaper than that.
func (b *beam) patience() int {
	if b.unit {
		return 1
	}
	return 3
}

// checkpoint remembers the engine; a complete frontier makes all earlier ones
// unnecessary.
func (b *beam) checkpoint() {
	if b.pos >= b.easy {
		b.tries, b.level = 0, b.levels()[0]
	}
	var spare checkpoint // its memory is used again
	if b.complete {
		spare = b.points[0]
		b.past.drop(b.pos)
		b.points = b.points[:0]
		b.lowest()
	} else if old := len(b.points) - densePoints; old > 0 && b.points[old].pos%(sparsePoints*checkpointEvery) != 0 {
		spare = b.points[old]
		b.points = slices.Delete(b.points, old, old+1)
	}
	b.points = append(b.points, b.save(spare))
	b.compact()
}

// lowest notes, of a complete frontier, how many unknowns of each kind every
// state has used.
func (b *beam) lowest() {
	b.least = b.least[:0]
	for c := header + b.words; c < b.stride(); c++ {
		low := b.state(0)[c]
		for i := range b.n {
			low = min(low, b.state(i)[c])
		}
		b.least = append(b.least, low)
	}
}

// quiet makes a frontier that was cut complete again where nothing is pending,
// if a state is left that used no unknown since the frontier was complete that
// it did not have to: it dominates every state there can be. Without unknowns
// there is only one.
func (b *beam) quiet() {
	for i := 0; i < b.n && !b.complete; i++ {
		row, dominates := b.state(i), true
		for c, used := range row[header+b.words:] {
			// A kind that is new since then has been used by nobody.
			dominates = dominates && (c < len(b.least) && used == b.least[c] || c >= len(b.least) && used == 0)
		}
		if dominates {
			copy(b.state(0), row)
			b.n, b.complete = 1, true
			b.front = b.front[:b.stride()]
		}
	}
}

// resist is what happens when no state is left.
func (b *beam) resist() {
	if b.complete {
		b.refuted()
		return
	}
	if b.pos > b.hardest {
		b.tries = 0
	}
	b.hardest = max(b.hardest, b.pos)
	top := len(b.levels()) - 1
	if b.tries == b.patience() && b.relaxed(b.limits.Work/10_000) {
		return
	}
	b.tries++
	if b.tries > top || b.work > b.limits.Work {
		if !b.relaxed(b.limits.Work / 4) {
			b.undecided()
		}
		return
	}
	b.level = b.levels()[b.tries]
	at := len(b.points) - 1
	for at > 0 && b.points[at].pos > b.hardest-b.level.back {
		at--
	}
	b.load(b.points[at])
	b.points = b.points[:at+1]
	b.easy = b.hardest + checkpointEvery
}

func (b *beam) undecided() {
	b.out = &Judgement{Ruling: Undecided, Method: "frontier", Resisted: [2]int{b.index(b.points[0].pos), b.index(b.pos - 1)}}
}

// index is the index of the operation at a position.
func (b *beam) index(pos int) int {
	if b.past.end == b.past.first {
		return 0
	}
	return int(b.past.at(min(max(pos, b.past.first), b.past.end-1)).index)
}

func (b *beam) refuted() {
	r := &Refutation{Op: int(b.failed.index)}
	r.Lowest, r.Highest = b.bounds()
	b.out = &Judgement{Ruling: Illegal, Method: "frontier", Refutation: r}
}

// bounds are the values the stock may have had before the operation that
// failed.
func (e *engine) bounds() (lo, hi int64) {
	for i := range e.n {
		l, h := e.reach(e.state(i))
		if i == 0 || l < lo {
			lo = l
		}
		hi = max(hi, h)
	}
	return lo, hi
}

// save copies the engine into a checkpoint that is not needed any more.
func (b *beam) save(into checkpoint) checkpoint {
	e := b.engine
	kinds := into.kinds
	c := checkpoint{pos: b.pos, complete: e.complete, words: e.words, counters: e.counters, n: e.n, unit: e.unit, steps: len(e.steps),
		slots: append(into.slots[:0], e.slots...), free: append(into.free[:0], e.free...), heap: append(into.heap[:0], e.heap...),
		checks: append(into.checks[:0], e.checks...), moves: append(into.moves[:0], e.moveMask...), checkMsk: append(into.checkMsk[:0], e.checkMask...),
		front: append(into.front[:0], e.front[:e.n*e.stride()]...), kinds: make([]kind, len(e.kinds))}
	copy(c.kinds, kinds)
	for i, k := range e.kinds {
		pending := append(c.kinds[i].pending[:0], k.pending...)
		c.kinds[i] = k
		c.kinds[i].pending = pending
	}
	for i := range c.kinds {
		// What is loaded from here must not append where the engine goes on.
		c.kinds[i].unknown = slices.Clip(c.kinds[i].unknown)
	}
	return c
}

func (b *beam) load(c checkpoint) {
	e := b.engine
	b.pos, e.complete, e.words, e.counters, e.n, e.unit = c.pos, c.complete, c.words, c.counters, c.n, c.unit
	e.slots, e.free, e.heap, e.checks = slices.Clone(c.slots), slices.Clone(c.free), slices.Clone(c.heap), slices.Clone(c.checks)
	e.kinds, e.moveMask, e.checkMask, e.front = slices.Clone(c.kinds), slices.Clone(c.moves), slices.Clone(c.checkMsk), slices.Clone(c.front)
	clear(e.byMove)
	for i := range e.kinds {
		e.kinds[i].pending = slices.Clone(c.kinds[i].pending)
		e.byMove[e.kinds[i].delta] = int32(i)
	}
	if e.keep {
		e.steps = e.steps[:c.steps]
	}
}

// order follows the steps of one state that is left.
func (e *engine) order() []int {
	var order []int
	for at := int32(uint32(e.state(0)[1])); at != none; at = e.steps[at].parent {
		order = append(order, int(e.steps[at].op))
	}
	slices.Reverse(order)
	return order
}

// compact forgets the steps that lead to no state that may still be needed.
func (b *beam) compact() {
	if !b.keep || len(b.steps) < 1<<16 || len(b.points) > 1 || len(b.steps) < 2*b.kept {
		return
	}
	b.kept = b.engine.forget(b.points[0].front)
	b.points[0].steps = len(b.steps)
}

// forget drops steps that no state of the frontier needs; the rows of its
// checkpoint are renamed with it.
func (e *engine) forget(saved []uint64) int {
	live := make([]bool, len(e.steps))
	for i := range e.n {
		for at := int32(uint32(e.state(i)[1])); at != none && !live[at]; at = e.steps[at].parent {
			live[at] = true
		}
	}
	names := make([]int32, len(e.steps))
	kept := e.steps[:0]
	for i, s := range e.steps {
		if live[i] {
			if s.parent != none {
				s.parent = names[s.parent]
			}
			names[i] = int32(len(kept))
			kept = append(kept, s)
		}
	}
	e.steps = kept
	stride := e.stride()
	for _, rows := range [][]uint64{e.front[:e.n*stride], saved} {
		for i := 1; i < len(rows); i += stride {
			if old := int32(uint32(rows[i])); old != none {
				rows[i] = asWord(names[old])
			}
		}
	}
	return len(kept)
}

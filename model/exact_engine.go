package model

import (
	"math"
	"math/bits"
	"slices"
	"sort"
)

// none marks the absence of a log entry or a slot.
const none = int32(-1)

// pending is an operation that was called and has not returned.
type pending struct {
	item
	kind int32 // of a move; none for a check
}

// kind is all moves of the same quantity in the same direction: they are
// interchangeable.
type kind struct {
	delta   int64
	pending []int32 // slots of the definite ones, in order of return
	open    int     // how many unknown ones were called
	unknown []int32 // their indexes, in order of call, where steps are kept
	column  int     // where a state counts the unknowns it used; 0 while there are none
}

// step is one operation of a linearization.
type step struct{ parent, op int32 }

// engine is a frontier of states between two events. A state is a row of
// words: value, last step, one bit for each slot that is linearized (a move) or
// discharged (a check), and the unknowns used by kind.
type engine struct {
	slots  []pending
	free   []int32
	heap   []int32 // slots by return
	checks []int32 // slots of pending checks
	kinds  []kind
	byMove map[int64]int32

	words     int // of slots in a row
	counters  int
	moveMask  []uint64
	checkMask []uint64
	front     []uint64
	n         int  // rows in front
	complete  bool // every reachable state is in front or dominated there
	unit      bool // every move so far is by one unit

	next    []uint64
	closure []uint64
	row     []uint64
	solver  solver

	visited  [][2]int64 // what one state was taken to for waiting checks
	kindMask []uint64   // slots of each kind, while a burst is expanded

	now           int64 // when something returned last
	costs, sorted []int64

	keep   bool // keep steps
	steps  []step
	level  level
	work   int64
	most   int64 // work from which on a burst is cut short
	failed item  // the check or move at which no state was left
}

// level says how hard to look. Cutting anything makes the frontier incomplete,
// and then an empty one proves nothing.
type level struct {
	width      int   // states kept
	solutions  int   // ways to reach a value
	nodes      int   // partial ways looked at
	excursions bool  // visit the values of checks that need not be answered yet
	risk       int64 // how bad a waiting check is when states are cut
	back       int   // how many operations to go back to try this
}

const header = 2 // words of a row before the bits

func newEngine(initial int64, keep bool, l level) *engine {
	e := &engine{byMove: map[int64]int32{}, complete: true, unit: true, keep: keep, level: l, words: 1, most: math.MaxInt64}
	e.moveMask, e.checkMask = make([]uint64, 1), make([]uint64, 1)
	e.front = make([]uint64, e.stride())
	e.front[0] = uint64(initial)
	e.front[1] = asWord(none)
	e.n = 1
	return e
}

func asWord(i int32) uint64 { return uint64(uint32(i)) }

func (e *engine) stride() int           { return header + e.words + e.counters }
func (e *engine) state(i int) []uint64  { s := e.stride(); return e.front[i*s : (i+1)*s : (i+1)*s] }
func bit(row []uint64, slot int32) bool { return row[header+slot>>6]>>(slot&63)&1 == 1 }

// relayout makes room for more words or counters in every row.
func (e *engine) relayout(words, counters int) {
	old := e.stride()
	rows := make([]uint64, 0, e.n*(header+words+counters))
	for i := range e.n {
		r := e.front[i*old : (i+1)*old]
		rows = append(rows, r[:header+e.words]...)
		rows = append(rows, make([]uint64, words-e.words)...)
		rows = append(rows, r[header+e.words:]...)
		rows = append(rows, make([]uint64, counters-e.counters)...)
	}
	e.front = rows
	for len(e.moveMask) < words {
		e.moveMask, e.checkMask = append(e.moveMask, 0), append(e.checkMask, 0)
	}
	e.words, e.counters = words, counters
}

func (e *engine) log(row []uint64, op int32) {
	if !e.keep {
		return
	}
	e.steps = append(e.steps, step{int32(uint32(row[1])), op})
	row[1] = asWord(int32(len(e.steps) - 1))
}

// kindOf is the kind of a move, made when it is new.
func (e *engine) kindOf(delta int64) int32 {
	if k, ok := e.byMove[delta]; ok {
		return k
	}
	k := int32(len(e.kinds))
	e.kinds = append(e.kinds, kind{delta: delta})
	e.byMove[delta] = k
	e.unit = e.unit && (delta == 1 || delta == -1)
	return k
}

// call lets an operation begin.
func (e *engine) call(it item) {
	if it.open {
		k := &e.kinds[e.kindOf(it.delta)]
		if k.column == 0 {
			e.relayout(e.words, e.counters+1)
			k.column = e.counters
		}
		k.open++
		if e.keep {
			k.unknown = append(k.unknown, it.index)
		}
		return
	}
	slot := e.slot()
	p := &e.slots[slot]
	p.item, p.kind = it, none
	w, mask := slot>>6, uint64(1)<<(slot&63)
	if it.delta == 0 {
		e.checkMask[w] |= mask
		e.checks = append(e.checks, slot)
		for i := range e.n {
			if row := e.state(i); int64(row[0]) >= it.lo && int64(row[0]) <= it.hi {
				row[header+w] |= mask
				e.log(row, it.index)
			}
		}
	} else {
		e.moveMask[w] |= mask
		p.kind = e.kindOf(it.delta)
		k := &e.kinds[p.kind]
		at := len(k.pending)
		k.pending = append(k.pending, slot)
		for ; at > 0 && e.slots[k.pending[at-1]].ret > it.ret; at-- {
			k.pending[at] = k.pending[at-1]
		}
		k.pending[at] = slot
	}
	e.push(slot)
}

func (e *engine) slot() int32 {
	if n := len(e.free); n > 0 {
		s := e.free[n-1]
		e.free = e.free[:n-1]
		return s
	}
	s := int32(len(e.slots))
	e.slots = append(e.slots, pending{})
	if int(s) >= 64*e.words {
		e.relayout(2*e.words, e.counters)
	}
	return s
}

// due says whether something returns before a time.
func (e *engine) due(before int64) bool {
	return len(e.heap) > 0 && e.slots[e.heap[0]].ret < before
}

// answer lets the operation that returns first return. It says whether a state
// is left; when none is, the frontier from before is still there.
func (e *engine) answer() bool {
	slot := e.heap[0]
	e.now = e.slots[slot].ret
	stride, w, mask := e.stride(), slot>>6, uint64(1)<<(slot&63)
	all := true
	for i := range e.n {
		all = all && bit(e.state(i), slot)
	}
	e.work += int64(e.n)
	if !all {
		e.next = e.next[:0]
		e.maskKinds()
		for i := range e.n {
			row := e.state(i)
			if bit(row, slot) {
				e.next = e.insert(e.next, row)
			} else {
				e.expand(row, slot)
			}
		}
		if len(e.next) == 0 {
			e.failed = e.slots[slot].item
			return false
		}
		e.front, e.next = e.next, e.front
		e.n = len(e.front) / stride
	}
	e.pop()
	e.release(slot)
	// Every state has the bit now, so without it none dominates another either.
	for i := range e.n {
		e.state(i)[header+w] &^= mask
	}
	if e.n > e.level.width {
		e.cut()
	}
	return true
}

// release frees the slot of what has returned.
func (e *engine) release(slot int32) {
	w, mask := slot>>6, uint64(1)<<(slot&63)
	if p := &e.slots[slot]; p.kind == none {
		e.checkMask[w] &^= mask
		e.checks = without(e.checks, slot)
	} else {
		e.moveMask[w] &^= mask
		e.kinds[p.kind].pending = without(e.kinds[p.kind].pending, slot)
	}
	e.free = append(e.free, slot)
}

func without(list []int32, x int32) []int32 {
	for i, v := range list {
		if v == x {
			return append(list[:i], list[i+1:]...)
		}
	}
	return list
}

// dominates says whether whatever can follow b can follow a: a has linearized
// and used nothing that b has not, and has discharged every check b has.
func (e *engine) dominates(a, b []uint64) bool {
	for w := range e.words {
		x, y := a[header+w], b[header+w]
		if x&^y&e.moveMask[w] != 0 || y&^x&e.checkMask[w] != 0 {
			return false
		}
	}
	for c := header + e.words; c < len(a); c++ {
		if a[c] > b[c] {
			return false
		}
	}
	return true
}

// insert adds a row to a set unless one there dominates it, and drops those it
// dominates.
func (e *engine) insert(set, row []uint64) []uint64 {
	stride := e.stride()
	e.work++
	for i := 0; i < len(set); i += stride {
		if e.dominates(set[i:i+stride], row) {
			return set
		}
	}
	e.work += int64(len(set) / stride / 16)
	for i := 0; i < len(set); {
		if e.dominates(row, set[i:i+stride]) {
			last := len(set) - stride
			copy(set[i:i+stride], set[last:])
			set = set[:last]
		} else {
			i += stride
		}
	}
	return append(set, row...)
}

// cut drops the worst states above the width.
func (e *engine) cut() {
	stride := e.stride()
	// What was linearized early is a commitment, the cheaper the sooner it had
	// to come anyway; an unknown that was used is gone for good; a check that
	// waits is a risk.
	now, far := e.now, int64(1)
	for _, s := range e.heap {
		far = max(far, e.slots[s].ret-now)
	}
	e.costs, e.sorted = e.costs[:0], e.sorted[:0]
	for i := range e.n {
		row, cost := e.state(i), int64(0)
		for w := range e.words {
			for set := row[header+w] & e.moveMask[w]; set != 0; set &= set - 1 {
				cost += e.slots[64*w+bits.TrailingZeros64(set)].ret - now
			}
			cost += e.level.risk * far / 2 * int64(bits.OnesCount64(^row[header+w]&e.checkMask[w]))
		}
		for c := header + e.words; c < stride; c++ {
			cost += far * int64(row[c])
		}
		e.costs = append(e.costs, cost)
	}
	e.sorted = append(e.sorted, e.costs...)
	slices.Sort(e.sorted)
	limit := e.sorted[e.level.width-1]
	room := e.level.width - sort.Search(e.n, func(i int) bool { return e.sorted[i] >= limit })
	kept := e.next[:0]
	for i, cost := range e.costs {
		if cost < limit || cost == limit && room > 0 {
			if cost == limit {
				room--
			}
			kept = append(kept, e.state(i)...)
		}
	}
	e.front, e.next = kept, e.front
	e.n = len(kept) / stride
	e.complete = false
}

// push and pop keep the slots in a heap by return.
func (e *engine) push(slot int32) {
	h := append(e.heap, slot)
	i := len(h) - 1
	for i > 0 {
		up := (i - 1) / 2
		if e.slots[h[up]].ret <= e.slots[slot].ret {
			break
		}
		h[i] = h[up]
		i = up
	}
	h[i] = slot
	e.heap = h
}

func (e *engine) pop() {
	h := e.heap
	last := h[len(h)-1]
	h = h[:len(h)-1]
	e.heap = h
	if len(h) == 0 {
		return
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && e.slots[h[down+1]].ret < e.slots[h[down]].ret {
			down++
		}
		if e.slots[last].ret <= e.slots[h[down]].ret {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
}

package model

import (
	"math"
	"math/bits"
	"slices"
)

// expand adds to next every state worth having after the operation in slot has
// taken effect at the end of a burst of others.
func (e *engine) expand(row []uint64, slot int32) {
	x := &e.slots[slot]
	stride := e.stride()
	e.closure = append(e.closure[:0], row...)
	for at := 0; at < len(e.closure); at += stride {
		if at > 0 && e.work > e.most {
			e.complete = false
			return
		}
		e.land(e.closure[at:at+stride], slot)
		if len(e.checks) == 0 {
			continue
		}
		e.visited = e.visited[:0]
		for _, c := range e.checks {
			row := e.closure[at : at+stride]
			if c == slot || bit(row, c) {
				continue
			}
			value, check := int64(row[0]), &e.slots[c]
			if e.unit && x.kind == none && (value > x.hi) != (check.lo > x.hi) {
				continue // x is on the way there
			}
			if goal := e.goal(value, check); slices.Contains(e.visited, goal) {
				continue // another check took this state to the same value
			} else {
				e.visited = append(e.visited, goal)
			}
			if !e.level.excursions {
				e.complete = false
				break
			}
			for _, counts := range e.solve(row, check.lo, check.hi, x.kind) {
				e.apply(e.closure[at:at+stride], counts)
				if bit(e.row, slot) {
					e.next = e.insert(e.next, e.row)
				} else if !e.among(e.closure, e.row) {
					e.closure = append(e.closure, e.row...)
				}
			}
		}
		if len(e.closure) > 2*e.level.width*stride || e.work > e.most {
			e.complete = false
			for at += stride; at < len(e.closure); at += stride {
				e.land(e.closure[at:at+stride], slot)
			}
		}
	}
}

// goal is what a state has to reach for a check that waits: its range, or, where
// every move is by one unit, the end of the range that is met first.
func (e *engine) goal(value int64, check *pending) [2]int64 {
	if e.unit && check.lo <= check.hi {
		end := min(max(value, check.lo), check.hi)
		return [2]int64{end, end}
	}
	return [2]int64{check.lo, check.hi}
}

// among says whether a row of a set dominates this one.
func (e *engine) among(set, row []uint64) bool {
	stride := e.stride()
	e.work += int64(len(set) / stride)
	for i := 0; i < len(set); i += stride {
		if e.dominates(set[i:i+stride], row) {
			return true
		}
	}
	return false
}

// land lets the operation in slot take effect, with as few others before it as
// make it possible.
func (e *engine) land(row []uint64, slot int32) {
	x := &e.slots[slot]
	if x.kind == none {
		for _, counts := range e.solve(row, x.lo, x.hi, none) {
			e.apply(row, counts)
			e.next = e.insert(e.next, e.row)
		}
		return
	}
	if int64(row[0])+x.delta >= 0 {
		e.row = append(e.row[:0], row...)
		e.take(slot)
		e.next = e.insert(e.next, e.row)
		return
	}
	for _, counts := range e.solve(row, -x.delta, math.MaxInt64, x.kind) {
		e.apply(row, counts)
		e.take(slot)
		e.next = e.insert(e.next, e.row)
	}
}

// take linearizes the move in slot in the row that is being made.
func (e *engine) take(slot int32) {
	x := &e.slots[slot]
	e.row[0] = uint64(int64(e.row[0]) + x.delta)
	e.row[header+slot>>6] |= 1 << (slot & 63)
	e.log(e.row, x.index)
	e.discharge()
}

// discharge marks the checks that the value of the row being made satisfies.
func (e *engine) discharge() {
	value := int64(e.row[0])
	for _, c := range e.checks {
		if p := &e.slots[c]; p.lo <= value && value <= p.hi && !bit(e.row, c) {
			e.row[header+c>>6] |= 1 << (c & 63)
			e.log(e.row, p.index)
		}
	}
}

// apply makes a row from another by so many moves of each kind: what raises the
// stock first, and of one kind definite ones first, the next to return first.
func (e *engine) apply(row []uint64, counts []uint32) {
	e.row = append(e.row[:0], row...)
	for _, raise := range [2]bool{true, false} {
		for k, n := range counts {
			kind := &e.kinds[k]
			if n == 0 || (kind.delta > 0) != raise {
				continue
			}
			for _, s := range kind.pending {
				if n == 0 {
					break
				}
				if !bit(e.row, s) {
					e.row[header+s>>6] |= 1 << (s & 63)
					e.row[0] = uint64(int64(e.row[0]) + kind.delta)
					e.log(e.row, e.slots[s].index)
					n--
				}
			}
			for ; n > 0; n-- {
				used := &e.row[header+e.words+kind.column-1]
				e.row[0] = uint64(int64(e.row[0]) + kind.delta)
				if e.keep {
					e.log(e.row, kind.unknown[*used])
				}
				*used++
			}
		}
	}
	e.discharge()
}

// available is how many moves of a kind a state can still make.
func (e *engine) available(row []uint64, k int) uint32 {
	kind := &e.kinds[k]
	n := 0
	for _, s := range kind.pending {
		if !bit(row, s) {
			n++
		}
	}
	if kind.column > 0 {
		n += kind.open - int(row[header+e.words+kind.column-1])
	}
	return uint32(n)
}

// maskKinds notes which slots hold a definite move of each kind.
func (e *engine) maskKinds() {
	e.kindMask = e.kindMask[:0]
	for k := range e.kinds {
		at := len(e.kindMask)
		for range e.words {
			e.kindMask = append(e.kindMask, 0)
		}
		for _, s := range e.kinds[k].pending {
			e.kindMask[at+int(s>>6)] |= 1 << (s & 63)
		}
	}
}

// left is available while a burst is expanded.
func (e *engine) left(row []uint64, k int) uint32 {
	kind, n := &e.kinds[k], 0
	for w, mask := range e.kindMask[k*e.words : (k+1)*e.words] {
		n += bits.OnesCount64(mask &^ row[header+w])
	}
	if kind.column > 0 {
		n += kind.open - int(row[header+e.words+kind.column-1])
	}
	return uint32(n)
}

// nextDue is when the move of a kind returns that a state makes next.
func (e *engine) nextDue(row []uint64, k int) int64 {
	for _, s := range e.kinds[k].pending {
		if !bit(row, s) {
			return e.slots[s].ret
		}
	}
	return math.MaxInt64
}

// reach is the lowest and highest value a state can move to.
func (e *engine) reach(row []uint64) (lo, hi int64) {
	lo, hi = int64(row[0]), int64(row[0])
	for k := range e.kinds {
		if d := e.kinds[k].delta * int64(e.available(row, k)); d < 0 {
			lo += d
		} else {
			hi += d
		}
	}
	return max(lo, 0), hi
}

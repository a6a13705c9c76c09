package model

import (
	"hash/maphash"
	"math"
	"unsafe"
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
		for _, c := range e.checks {
			row := e.closure[at : at+stride]
			if c == slot || bit(row, c) {
				continue
			}
			value, check := int64(row[0]), &e.slots[c]
			if e.unit && x.kind == none && (value > x.hi) != (check.lo > x.hi) {
				continue // x is on the way there
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
				e.log(e.row, kind.unknown[*used])
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
		n += len(kind.unknown) - int(row[header+e.words+kind.column-1])
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

// solver finds the smallest sets of moves that bring the stock into a range.
type solver struct {
	avail, unit []uint32
	order       []int32 // kinds there are moves of, by when the next one returns
	due         []int64
	counts      []uint32 // one vector of kinds a node
	nodes       []node
	table       []int32
	stamps      []uint32
	stamp       uint32
	found       [][]uint32
	seed        maphash.Seed
	seeded      bool
}

// node is a set of moves on the way: its sum, and the set it came from.
type node struct {
	sum    int64
	parent int32
}

// solve lists the vectors of moves, by kind, that bring a state into lo … hi
// and of which no part does. No move of the barred kind is among them. The
// result is good until the next call.
//
// A set without a part that sums to zero can be ordered so that each next move
// goes towards the range, and no partial sum comes twice; so those orders are
// the only ones looked at.
func (e *engine) solve(row []uint64, lo, hi int64, barred int32) [][]uint32 {
	s, value := &e.solver, int64(row[0])
	s.found = s.found[:0]
	if hi < 0 || lo > hi {
		return nil
	}
	if e.unit {
		return e.solveUnit(row, lo, hi, barred)
	}
	kinds := len(e.kinds)
	s.avail, s.order, s.due = s.avail[:0], s.order[:0], s.due[:0]
	for k := range kinds {
		n := uint32(0)
		if int32(k) != barred {
			n = e.available(row, k)
		}
		s.avail = append(s.avail, n)
		if n > 0 {
			// What had to come first anyway comes first.
			at := len(s.order)
			s.order = append(s.order, int32(k))
			s.due = append(s.due, e.nextDue(row, k))
			for ; at > 0 && s.due[at-1] > s.due[at]; at-- {
				s.due[at-1], s.due[at] = s.due[at], s.due[at-1]
				s.order[at-1], s.order[at] = s.order[at], s.order[at-1]
			}
		}
	}
	s.reset(kinds)
	bound := e.level.nodes
	for at := 0; at < len(s.nodes); at++ {
		sum := s.nodes[at].sum
		if v := value + sum; v >= lo && v <= hi {
			if s.minimal(at, kinds) {
				s.found = append(s.found, s.vector(at, kinds))
				if len(s.found) == e.level.solutions {
					e.complete = e.complete && at == len(s.nodes)-1
					break
				}
			}
			continue
		}
		up := value+sum < lo
		for _, k := range s.order {
			delta := e.kinds[k].delta
			if (delta > 0) != up || s.counts[at*kinds+int(k)] == s.avail[k] || s.repeats(int32(at), sum+delta) {
				continue
			}
			s.extend(at, int(k), kinds, delta)
		}
		e.work++
		if len(s.nodes) > bound || e.work > e.most {
			e.complete = false
			bound = math.MaxInt
			// What is there already may still be a solution.
			for at++; at < len(s.nodes); at++ {
				if v := value + s.nodes[at].sum; v >= lo && v <= hi && s.minimal(at, kinds) {
					s.found = append(s.found, s.vector(at, kinds))
					if len(s.found) == e.level.solutions {
						break
					}
				}
			}
		}
	}
	return s.found
}

// solveUnit is solve where every move is by one unit: there is one way.
func (e *engine) solveUnit(row []uint64, lo, hi int64, barred int32) [][]uint32 {
	s, value := &e.solver, int64(row[0])
	need, delta := int64(0), int64(1)
	switch {
	case value < lo:
		need = lo - value
	case value > hi:
		need, delta = value-hi, -1
	}
	for len(s.unit) < len(e.kinds) {
		s.unit = append(s.unit, 0)
	}
	clear(s.unit)
	if need > 0 {
		k, ok := e.byMove[delta]
		if !ok || k == barred || int64(e.available(row, int(k))) < need {
			return nil
		}
		s.unit[k] = uint32(need)
	}
	s.found = append(s.found, s.unit[:len(e.kinds)])
	return s.found
}

func (s *solver) vector(at, kinds int) []uint32 { return s.counts[at*kinds : (at+1)*kinds] }

// reset starts with the empty set.
func (s *solver) reset(kinds int) {
	if !s.seeded {
		s.seed, s.seeded = maphash.MakeSeed(), true
	}
	if len(s.table) == 0 {
		s.table, s.stamps = make([]int32, 1024), make([]uint32, 1024)
	}
	s.stamp++
	s.nodes = append(s.nodes[:0], node{0, none})
	s.counts = s.counts[:0]
	for range kinds {
		s.counts = append(s.counts, 0)
	}
}

// repeats says whether a sum came before on the way to a node.
func (s *solver) repeats(at int32, sum int64) bool {
	for ; at != none; at = s.nodes[at].parent {
		if s.nodes[at].sum == sum {
			return true
		}
	}
	return false
}

// minimal says whether no part of the node's set was found before.
func (s *solver) minimal(at, kinds int) bool {
	v := s.vector(at, kinds)
next:
	for _, f := range s.found {
		for k, n := range f {
			if n > v[k] {
				continue next
			}
		}
		return false
	}
	return true
}

// extend adds a node with one more move, unless that set is there already.
func (s *solver) extend(at, k, kinds int, delta int64) {
	n := len(s.nodes)
	s.counts = append(s.counts, s.counts[at*kinds:(at+1)*kinds]...)
	s.counts[n*kinds+k]++
	if 2*n >= len(s.table) {
		s.table, s.stamps = make([]int32, 2*len(s.table)), make([]uint32, 2*len(s.table))
		s.stamp = 1
		for i := range n {
			s.place(int32(i), kinds)
		}
	}
	if s.place(int32(n), kinds) {
		s.nodes = append(s.nodes, node{s.nodes[at].sum + delta, int32(at)})
	} else {
		s.counts = s.counts[:n*kinds]
	}
}

// place puts a node into the table; false when its set is there already.
func (s *solver) place(n int32, kinds int) bool {
	v := s.vector(int(n), kinds)
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
	mask := uint64(len(s.table) - 1)
	for h := maphash.Bytes(s.seed, raw) & mask; ; h = (h + 1) & mask {
		if s.stamps[h] != s.stamp {
			s.stamps[h], s.table[h] = s.stamp, n
			return true
		}
		if string32(s.vector(int(s.table[h]), kinds), v) {
			return false
		}
	}
}

func string32(a, b []uint32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

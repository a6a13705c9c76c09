package model

import (
	"hash/maphash"
	"math"
	"math/bits"
	"unsafe"
)

// solver finds the smallest sets of moves that bring the stock into a range.
type solver struct {
	avail, unit []uint32
	order       []int32 // kinds there are moves of, by when the next one returns
	due         []int64
	nodes       []node
	found       [][]uint32

	// Where the numbers of moves of all kinds fit one word, with a bit to spare
	// for each kind, a set is that word.
	packed   bool
	shift    []uint8
	spare    uint64   // the bit above each number
	keys     []uint64 // of found
	unpacked []uint32
	cells    []cell
	room     uint // bits of an index of cells

	// Where they do not fit, a set is a vector of kinds.
	counts []uint32 // one vector a node
	table  []int32
	stamps []uint32
	stamp  uint32
	seed   maphash.Seed
	seeded bool
}

// node is a set of moves on the way: its sum, and the set it came from.
type node struct {
	sum    int64
	key    uint64
	seen   uint64 // sums on the way here, modulo 64
	parent int32
}

// cell is a place for a packed set.
type cell struct {
	key   uint64
	stamp uint32
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
			n = e.left(row, k)
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
			if (delta > 0) != up || s.full(at, k, kinds) || s.repeats(int32(at), sum+delta) {
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
		if !ok || k == barred || int64(e.left(row, int(k))) < need {
			return nil
		}
		s.unit[k] = uint32(need)
	}
	s.found = append(s.found, s.unit[:len(e.kinds)])
	return s.found
}

// vector is the set of a node, by kind.
func (s *solver) vector(at, kinds int) []uint32 {
	if !s.packed {
		return s.counts[at*kinds : (at+1)*kinds]
	}
	from := len(s.unpacked)
	for k := range kinds {
		s.unpacked = append(s.unpacked, s.number(at, int32(k)))
	}
	return s.unpacked[from:]
}

// number is how many moves of a kind are in a packed set.
func (s *solver) number(at int, k int32) uint32 {
	if s.avail[k] == 0 {
		return 0
	}
	return uint32(s.nodes[at].key >> s.shift[k] & (1<<bits.Len32(s.avail[k]) - 1))
}

// full says whether all moves of a kind there are are in the set of a node.
func (s *solver) full(at int, k int32, kinds int) bool {
	if s.packed {
		return s.number(at, k) == s.avail[k]
	}
	return s.counts[at*kinds+int(k)] == s.avail[k]
}

// packBits is how many bits a packed set has.
var packBits = 64

// pack says whether sets fit one word, and lays it out.
func (s *solver) pack() bool {
	s.shift, s.spare = s.shift[:0], 0
	at := 0
	for _, n := range s.avail {
		s.shift = append(s.shift, uint8(at&63))
		if n > 0 {
			at += bits.Len32(n) + 1
			if at > packBits {
				return false
			}
			s.spare |= 1 << (at - 1)
		}
	}
	return true
}

// reset starts with the empty set.
func (s *solver) reset(kinds int) {
	s.nodes = append(s.nodes[:0], node{seen: 1, parent: none})
	if s.packed = s.pack(); s.packed {
		s.keys, s.unpacked = s.keys[:0], s.unpacked[:0]
		if len(s.cells) == 0 {
			s.room = 10
			s.cells = make([]cell, 1<<s.room)
		}
		if s.stamp++; s.stamp == 0 {
			s.forget()
		}
		return
	}
	if !s.seeded {
		s.seed, s.seeded = maphash.MakeSeed(), true
	}
	if len(s.table) == 0 {
		s.table, s.stamps = make([]int32, 1024), make([]uint32, 1024)
	}
	if s.stamp++; s.stamp == 0 {
		s.forget()
	}
	s.counts = s.counts[:0]
	for range kinds {
		s.counts = append(s.counts, 0)
	}
}

// forget empties the tables when the stamps have been used up.
func (s *solver) forget() {
	clear(s.cells)
	clear(s.stamps)
	s.stamp = 1
}

// repeats says whether a sum came before on the way to a node.
func (s *solver) repeats(at int32, sum int64) bool {
	if s.nodes[at].seen>>(sum&63)&1 == 0 {
		return false
	}
	for ; at != none; at = s.nodes[at].parent {
		if s.nodes[at].sum == sum {
			return true
		}
	}
	return false
}

// minimal says whether no part of the node's set was found before; then it is
// found.
func (s *solver) minimal(at, kinds int) bool {
	if s.packed {
		key := s.nodes[at].key
		for _, f := range s.keys {
			if ((key|s.spare)-f)&s.spare == s.spare {
				return false
			}
		}
		s.keys = append(s.keys, key)
		return true
	}
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
	if s.packed {
		if 2*n >= len(s.cells) {
			s.room++
			s.cells = make([]cell, 1<<s.room)
			for _, d := range s.nodes[1:] {
				s.placeKey(d.key)
			}
		}
		if key := s.nodes[at].key + 1<<s.shift[k]; s.placeKey(key) {
			s.grow(at, delta, key)
		}
		return
	}
	s.counts = append(s.counts, s.counts[at*kinds:(at+1)*kinds]...)
	s.counts[n*kinds+k]++
	if 2*n >= len(s.table) {
		s.table, s.stamps = make([]int32, 2*len(s.table)), make([]uint32, 2*len(s.table))
		for i := range n {
			s.place(int32(i), kinds)
		}
	}
	if s.place(int32(n), kinds) {
		s.grow(at, delta, 0)
	} else {
		s.counts = s.counts[:n*kinds]
	}
}

// grow adds a node one move from another.
func (s *solver) grow(at int, delta int64, key uint64) {
	from := &s.nodes[at]
	sum := from.sum + delta
	s.nodes = append(s.nodes, node{sum: sum, key: key, seen: from.seen | 1<<(sum&63), parent: int32(at)})
}

// placeKey puts a packed set into the table; false when it is there already.
func (s *solver) placeKey(key uint64) bool {
	mask := uint64(len(s.cells) - 1)
	for h := key * 0x9e3779b97f4a7c15 >> (64 - s.room); ; h = (h + 1) & mask {
		switch c := &s.cells[h]; {
		case c.stamp != s.stamp:
			c.key, c.stamp = key, s.stamp
			return true
		case c.key == key:
			return false
		}
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

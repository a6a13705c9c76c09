package model

import (
	"math"
	"math/bits"
	"slices"
)

// deducts decides histories in which the stock can only fall and nobody reads
// it before everything is over, for any quantities. Everything that was sold takes effect at its call. At
// the return r of a sold-out(q) the unknowns called by then must have taken at
// least initial - sold called by r - q + 1 units, and all of them together may
// take no more than initial - sold. The sums they can have are a set of bits,
// from which those that are too small are dropped at each sold-out; at the read
// at rest only one is left.
type deducts struct {
	initial, spare int64 // spare: units the unknowns may have
	limits         Limits
	waiting        []item // sold-outs by return, a heap
	sold           int64  // called so far
	need           int64  // the unknowns called so far took at least so much
	sums           []uint64
	origin         []int32 // unknown by which a sum was first reached
	all            []item  // to tell where it went wrong, or the order; not when brief
	n              int64   // operations
	work           int64
}

// mostSums bounds the set of sums, in bits.
const mostSums = 1 << 27

// newDeducts is nil when the sums would not fit.
func newDeducts(initial int64, shape Shape, limits Limits) *deducts {
	spare := initial - shape.Sold
	d := &deducts{initial: initial, spare: spare, limits: limits}
	if !limits.Brief {
		d.all = make([]item, 0, shape.N)
	}
	if spare >= 0 {
		size := min(spare, shape.Doubtful) + 1
		if size > mostSums {
			return nil
		}
		d.sums = make([]uint64, (size+63)/64)
		d.sums[0] = 1
		if limits.Brief {
			d.limits.Order = false
		}
		if d.limits.Order {
			d.origin = make([]int32, size)
		}
		d.spare = size - 1
	}
	return d
}

func (d *deducts) decided() bool { return false }

func (d *deducts) add(it item) {
	d.n++
	if !d.limits.Brief {
		d.all = append(d.all, it)
	}
	if d.spare < 0 {
		return // oversold whatever comes; finish finds where
	}
	for len(d.waiting) > 0 && d.waiting[0].ret < it.call {
		d.answer()
	}
	switch {
	case it.delta == 0:
		d.push(it)
	case it.open:
		d.doubt(it)
	default:
		d.sold -= it.delta
	}
}

// answer lets the next sold-out return.
func (d *deducts) answer() {
	so := d.pop()
	if need := d.initial - d.sold - so.hi; need > d.need {
		d.drop(need)
		d.need = need
	}
	if so.lo > 0 { // the read at rest: no unknown comes after it
		d.dropAbove(d.initial - d.sold - so.lo)
	}
}

// drop takes out the sums below need.
func (d *deducts) drop(need int64) {
	if need > d.spare {
		clear(d.sums)
		return
	}
	clear(d.sums[:need/64])
	d.sums[need/64] &= math.MaxUint64 << (need % 64)
}

// dropAbove takes out the sums above most.
func (d *deducts) dropAbove(most int64) {
	if most < 0 {
		clear(d.sums)
		return
	}
	if most < d.spare {
		d.sums[most/64] &= math.MaxUint64 >> (63 - most%64)
		clear(d.sums[most/64+1:])
	}
}

// doubt adds a quantity that may or may not be taken.
func (d *deducts) doubt(it item) {
	q := -it.delta
	if q > d.spare {
		return
	}
	words, shift := int(q/64), uint(q%64)
	last := uint64(math.MaxUint64) >> (63 - d.spare%64)
	d.work += int64(len(d.sums))/16 + 1
	lowest := max(int(d.need/64), 0)
	for w := len(d.sums) - 1; w >= lowest+words && w >= words; w-- {
		add := d.sums[w-words] << shift
		if shift > 0 && w > words {
			add |= d.sums[w-words-1] >> (64 - shift)
		}
		if w == len(d.sums)-1 {
			add &= last
		}
		if add &^= d.sums[w]; add == 0 {
			continue
		}
		d.sums[w] |= add
		for ; d.origin != nil && add != 0; add &= add - 1 {
			d.origin[64*w+bits.TrailingZeros64(add)] = int32(len(d.all) - 1)
		}
	}
}

func (d *deducts) finish() Judgement {
	for len(d.waiting) > 0 && d.spare >= 0 {
		d.answer()
	}
	j := Judgement{Method: "sums", Work: d.work + d.n}
	sum := d.smallest()
	if sum < 0 {
		j.Ruling = Illegal
		if !d.limits.Brief {
			j.Refutation = d.refute()
		}
		return j
	}
	j.Ruling = Legal
	if d.limits.Order {
		j.Order = d.order(sum)
	}
	return j
}

// smallest is the smallest sum left, -1 when there is none.
func (d *deducts) smallest() int64 {
	for w, word := range d.sums {
		if word != 0 {
			return int64(64*w + bits.TrailingZeros64(word))
		}
	}
	return -1
}

// order lists what was sold and the unknowns of a sum at their calls, and each
// sold-out at its return.
func (d *deducts) order(sum int64) []int {
	taken := map[int32]bool{}
	for sum > 0 {
		// A sum that was dropped is never reached again, so each still has the
		// way it was first reached by.
		at := d.origin[sum]
		taken[at] = true
		sum += d.all[at].delta
	}
	var order []int
	d.waiting = d.waiting[:0]
	for i, it := range d.all {
		for len(d.waiting) > 0 && d.waiting[0].ret < it.call {
			order = append(order, int(d.pop().index))
		}
		switch {
		case it.delta == 0:
			d.push(it)
		case !it.open || taken[int32(i)]:
			order = append(order, int(it.index))
		}
	}
	for len(d.waiting) > 0 {
		order = append(order, int(d.pop().index))
	}
	return order
}

// refute finds the return at which the history became impossible: the first
// one whose prefix is. In a prefix, what has not returned is unknown.
func (d *deducts) refute() *Refutation {
	var ends []item
	for _, it := range d.all {
		if !it.open {
			ends = append(ends, it)
		}
	}
	slices.SortStableFunc(ends, func(a, b item) int { return cmpInt(a.ret, b.ret) })
	at, _ := slices.BinarySearchFunc(ends, true, func(end item, _ bool) int {
		if d.prefix(end.ret).smallest() < 0 {
			return 1
		}
		return -1
	})
	at = min(at, len(ends)-1)
	x := ends[at]
	r := &Refutation{Op: int(x.index)}
	called, sold, doubtful := int64(0), int64(0), int64(0)
	for _, it := range d.all {
		switch {
		case it.delta == 0 || it.call > x.ret:
		case it.open || it.ret > x.ret || it.index == x.index:
			if it.index != x.index {
				doubtful -= it.delta
			}
		default:
			sold -= it.delta
		}
	}
	called = sold + doubtful
	r.Lowest, r.Highest = max(d.initial-called, 0), d.initial-sold
	return r
}

// prefix is the history as it was known right after a time.
func (d *deducts) prefix(until int64) *deducts {
	var shape Shape
	var items []item
	for _, it := range d.all {
		if it.call > until {
			break
		}
		switch {
		case it.delta == 0 && it.ret > until:
			continue
		case it.delta != 0 && (it.open || it.ret > until):
			it.open = true
			shape.Doubtful -= it.delta
		case it.delta != 0:
			shape.Sold -= it.delta
		}
		items = append(items, it)
	}
	p := newDeducts(d.initial, shape, Limits{})
	if p == nil { // more sums than fit: not known to be impossible
		return &deducts{sums: []uint64{1}}
	}
	for _, it := range items {
		p.add(it)
	}
	for len(p.waiting) > 0 && p.spare >= 0 {
		p.answer()
	}
	return p
}

func (d *deducts) push(it item) {
	h := append(d.waiting, it)
	i := len(h) - 1
	for ; i > 0 && h[(i-1)/2].ret > it.ret; i = (i - 1) / 2 {
		h[i] = h[(i-1)/2]
	}
	h[i] = it
	d.waiting = h
}

func (d *deducts) pop() item {
	h := d.waiting
	top, last := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	d.waiting = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		down := 2*i + 1
		if down >= len(h) {
			break
		}
		if down+1 < len(h) && h[down+1].ret < h[down].ret {
			down++
		}
		if last.ret <= h[down].ret {
			break
		}
		h[i] = h[down]
		i = down
	}
	h[i] = last
	return top
}

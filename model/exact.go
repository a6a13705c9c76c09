package model

import (
	"fmt"
	"math"
	"slices"
)

// Ruling is what a checker says of a history.
type Ruling string

// The rulings.
const (
	Legal   Ruling = "linearizable"
	Illegal Ruling = "non-linearizable"
	// Undecided: the work allowed was used up. It is never a pass.
	Undecided Ruling = "undecided"
)

// Judgement is a ruling with its reasons.
type Judgement struct {
	Ruling Ruling
	// Order is a linearization, by index of the operation: every definite
	// operation, and the unknown ones that took effect. Only when Legal and when
	// it was asked for.
	Order []int
	// Refutation says where an Illegal history stopped being possible.
	Refutation *Refutation
	// Resisted are the indexes of the first and the last operation of the
	// window that was not decided; only when Undecided.
	Resisted [2]int
	// Method names the part of the checker that decided.
	Method string
	// Work is how many states were looked at: the same on every machine.
	Work int64
}

// Refutation is the operation at whose return no state was left.
type Refutation struct {
	Op int // index of the operation
	// Lowest and Highest bound the units that may have been in stock when it
	// returned, given every answer before it.
	Lowest, Highest int64
	// Relaxed says what could be left out of the history with the rest still
	// impossible; empty when nothing was.
	Relaxed string
}

// Limits bound the work of a decision.
type Limits struct {
	Work  int64 // states looked at before the answer is Undecided; 0 is DefaultWork
	Order bool  // keep the linearization: 8 bytes an operation and more
	// Brief asks for the ruling only, perhaps without a refutation: then memory
	// does not grow with the length of a history in which the stock only falls.
	Brief bool
}

// DefaultWork is enough for every history of a million operations measured.
const DefaultWork = 2_000_000_000

// Shape is what has to be known of a whole history before it can be decided
// while it is read.
type Shape struct {
	N        int   // operations
	Restocks bool  // it has restocks that may have been applied
	Reads    int   // answered reads
	Sold     int64 // units answered sold
	Doubtful int64 // units of unknown deducts

	read int64 // call of the last read
	over int64 // when the last of the others was called or, if it did, returned
	some bool  // there are others
}

// Add takes an operation into account.
func (s *Shape) Add(o Operation) {
	s.N++
	it, counts := itemOf(o, 0)
	switch {
	case !counts:
		return
	case o.Op == Read:
		s.Reads++
		s.read = o.Call
		return
	case it.open:
		s.until(it.call)
	default:
		s.until(it.ret)
	}
	switch {
	case o.Op == Restock:
		s.Restocks = true
	case o.Outcome == Sold:
		s.Sold += o.Qty
	case o.Outcome == Unknown:
		s.Doubtful += o.Qty
	}
}

func (s *Shape) until(at int64) {
	if !s.some || at > s.over {
		s.some, s.over = true, at
	}
}

// DeductsOnly says whether the stock can only fall and nobody read it, but
// perhaps once when everything was over.
func (s Shape) DeductsOnly() bool {
	return !s.Restocks && (s.Reads == 0 || s.Reads == 1 && (!s.some || s.read > s.over))
}

// ShapeOf is the shape of a history.
func ShapeOf(ops []Operation) (s Shape) {
	for _, o := range ops {
		s.Add(o)
	}
	return s
}

// Checker decides whether a history is linearizable for the stock, operation by
// operation in order of call. What it does, and why that is exact, is proved in
// exact.md beside this file.
type Checker struct {
	algorithm interface {
		add(item)
		finish() Judgement
		decided() bool
	}
	n    int
	last int64
}

// NewChecker makes a checker for a history of a known shape. The operations
// must be added in order of call.
func NewChecker(initial int64, shape Shape, limits Limits) *Checker {
	if limits.Work == 0 {
		limits.Work = DefaultWork
	}
	c := &Checker{last: math.MinInt64}
	if shape.DeductsOnly() {
		if d := newDeducts(initial, shape, limits); d != nil {
			c.algorithm = d
			return c
		}
	}
	c.algorithm = newBeam(initial, limits)
	return c
}

// Add takes the next operation. It panics when the operation was called before
// the one added last: the caller sorts.
func (c *Checker) Add(o Operation) {
	if o.Call < c.last {
		panic(fmt.Sprintf("model: operation %d was called at %d, before %d", c.n, o.Call, c.last))
	}
	c.last = o.Call
	if it, ok := itemOf(o, c.n); ok {
		c.algorithm.add(it)
	}
	c.n++
}

// Decided says whether the rest of the history can change nothing any more.
func (c *Checker) Decided() bool { return c.algorithm.decided() }

// Judge ends the history.
func (c *Checker) Judge() Judgement { return c.algorithm.finish() }

// Judge decides a whole history, in whatever order its operations are.
func Judge(initial int64, ops []Operation, limits Limits) Judgement {
	c := NewChecker(initial, ShapeOf(ops), limits)
	order := byCall(ops)
	for _, i := range order {
		c.Add(ops[i])
		if c.Decided() {
			break
		}
	}
	j := c.Judge()
	for k := range j.Order {
		j.Order[k] = order[j.Order[k]]
	}
	if j.Refutation != nil {
		r := *j.Refutation
		r.Op = order[r.Op]
		j.Refutation = &r
	}
	if j.Ruling == Undecided {
		j.Resisted = [2]int{order[j.Resisted[0]], order[j.Resisted[1]]}
	}
	return j
}

// byCall lists the indexes of the operations in order of call.
func byCall(ops []Operation) []int {
	order := make([]int, len(ops))
	for i := range order {
		order[i] = i
	}
	if !slices.IsSortedFunc(ops, func(a, b Operation) int { return cmpInt(a.Call, b.Call) }) {
		slices.SortStableFunc(order, func(a, b int) int { return cmpInt(ops[a].Call, ops[b].Call) })
	}
	return order
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// item is an operation as the checker sees it: either it moves the stock by
// delta, or it is a check that the stock is in lo … hi.
type item struct {
	call, ret int64
	delta     int64 // units; 0 for a check
	lo, hi    int64 // of a check
	index     int32
	open      bool // a move that may never happen
}

// itemOf is the item of an operation; ok is false when it constrains nothing.
// Busy and failed operations are no-ops, as is an unknown read. A read of
// fewer than no units is a check that nothing satisfies.
func itemOf(o Operation, index int) (it item, ok bool) {
	it = item{call: o.Call, ret: o.Return, index: int32(index)}
	switch {
	case o.Outcome == Busy || o.Outcome == Failed || o.Op == Read && o.Outcome == Unknown:
		return it, false
	case o.Op == Read:
		it.lo, it.hi = o.Value, o.Value
	case o.Op == Restock:
		it.delta = o.Qty
	case o.Outcome == SoldOut:
		it.lo, it.hi = 0, o.Qty-1
	default:
		it.delta = -o.Qty
	}
	if o.Outcome == Unknown {
		it.open, it.ret = true, math.MaxInt64
	}
	return it, true
}

// Confirm says whether an order of operations is a linearization: every
// definite operation is in it once, nothing comes after an operation that was
// called after its return, and porcupine's Step accepts it one by one. It
// shares nothing with the checker that found the order.
func Confirm(initial int64, ops []Operation, order []int) error {
	in := make([]bool, len(ops))
	m := quantityModel(initial)
	if unitQuantities(ops) {
		m = unitModel(initial)
	}
	state := m.Init()
	latest := int64(math.MinInt64)
	for k, i := range order {
		if i < 0 || i >= len(ops) || in[i] {
			return fmt.Errorf("position %d: operation %d is not there or there twice", k, i)
		}
		in[i] = true
		o := ops[i]
		latest = max(latest, o.Call)
		if o.Outcome != Unknown && o.Return < latest {
			return fmt.Errorf("position %d: %s returned before something ahead of it was called", k, o)
		}
		switch { // an unknown operation that is in the order took effect
		case o.Outcome == Unknown && o.Op == Deduct:
			o.Outcome = Sold
		case o.Outcome == Unknown && o.Op == Restock:
			o.Outcome = OK
		}
		ok, next := m.Step(state, o, o.Outcome)
		if !ok {
			return fmt.Errorf("position %d: %s does not fit %s", k, o, m.DescribeState(state))
		}
		state = next
	}
	for i, o := range ops {
		if _, counts := itemOf(o, i); counts && o.Outcome != Unknown && !in[i] {
			return fmt.Errorf("%s is missing", o)
		}
	}
	return nil
}

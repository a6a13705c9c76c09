package model

import (
	"fmt"
	"sort"
)

// Rest is what is known of a run when nothing is in flight any more, every
// live client is done and every lease is over. A nil field was not observed;
// the laws that need it are then not evaluated, which is never a pass.
type Rest struct {
	Initial int64
	Counter *int64           // units the stored counter promises
	Lowest  *int64           // lowest value the counter was seen at, step by step
	Orders  *[]Order         // durable orders; nil where the scheme writes none
	Taken   map[string]int64 // net units each request took from the counter
	Probe   *Outcome         // answer of a deduct of one unit after everything
}

// Finding is what a law says of one run.
type Finding struct {
	Property  Property
	Evaluated bool // false: the run did not show what the law needs
	Broken    bool
	Amount    int64  // in the unit of PropertyInfo; 0 unless Broken
	Detail    string // why it is broken, or why it was not evaluated
}

// Laws evaluates every property except non-linearizable (see package
// histories) on a settled history. Time n log n, always decided.
func Laws(ops []Operation, rest Rest) []Finding {
	t := add(ops)
	return []Finding{
		oversell(t, rest),
		negativeTransient(rest),
		negativePermanent(rest),
		lostUnits(t, rest),
		phantomUnits(t, rest),
		doubleDeduct(ops, rest),
		doubleSale(ops, rest),
		orderMismatch(ops, rest),
		falseSoldOut(ops, rest.Initial),
		unsold(ops, rest),
		stuck(rest),
	}
}

// totals are sums over a history, in units.
type totals struct {
	sold            int64
	restocked       int64 // certainly
	maybeRestocked  int64 // unknown restocks
	busyDeductUnits int64
}

func add(ops []Operation) (t totals) {
	for _, o := range ops {
		switch {
		case o.Op == Deduct && o.Outcome == Sold:
			t.sold += o.Qty
		case o.Op == Deduct && o.Outcome == Busy:
			t.busyDeductUnits += o.Qty
		case o.Op == Restock && o.Outcome == OK:
			t.restocked += o.Qty
		case o.Op == Restock && o.Outcome == Unknown:
			t.maybeRestocked += o.Qty
		}
	}
	return t
}

func kept(p Property) Finding { return Finding{Property: p, Evaluated: true} }

func broken(p Property, amount int64, format string, args ...any) Finding {
	return Finding{Property: p, Evaluated: true, Broken: true, Amount: amount, Detail: fmt.Sprintf(format, args...)}
}

func notEvaluated(p Property, why string) Finding { return Finding{Property: p, Detail: why} }

func oversell(t totals, rest Rest) Finding {
	s := rest.Initial + t.restocked + t.maybeRestocked
	if t.sold > s {
		return broken(Oversell, t.sold-s, "sold %d of %d", t.sold, s)
	}
	return kept(Oversell)
}

const noCounter = "the counter was not read"

func negativeTransient(rest Rest) Finding {
	switch {
	case rest.Lowest == nil:
		return notEvaluated(NegativeTransient, "the counter was not watched step by step")
	case *rest.Lowest < 0:
		return broken(NegativeTransient, *rest.Lowest, "the counter was seen at %d", *rest.Lowest)
	}
	return kept(NegativeTransient)
}

func negativePermanent(rest Rest) Finding {
	switch {
	case rest.Counter == nil:
		return notEvaluated(NegativePermanent, noCounter)
	case *rest.Counter < 0:
		return broken(NegativePermanent, *rest.Counter, "the counter rests at %d", *rest.Counter)
	}
	return kept(NegativePermanent)
}

func lostUnits(t totals, rest Rest) Finding {
	if rest.Counter == nil {
		return notEvaluated(LostUnits, noCounter)
	}
	if lost := rest.Initial + t.restocked - *rest.Counter - t.sold; lost > 0 {
		return broken(LostUnits, lost, "of %d units %d were sold and the counter rests at %d",
			rest.Initial+t.restocked, t.sold, *rest.Counter)
	}
	return kept(LostUnits)
}

func phantomUnits(t totals, rest Rest) Finding {
	if rest.Counter == nil {
		return notEvaluated(PhantomUnits, noCounter)
	}
	s := rest.Initial + t.restocked + t.maybeRestocked
	if extra := *rest.Counter + t.sold - s; extra > 0 {
		return broken(PhantomUnits, extra, "of %d units %d were sold and the counter rests at %d", s, t.sold, *rest.Counter)
	}
	return kept(PhantomUnits)
}

// doubleDeduct needs the effect of each request on the counter. A request that
// was given back has a net effect of zero. What a request may take is its
// quantity once, however often it was submitted.
func doubleDeduct(ops []Operation, rest Rest) Finding {
	if rest.Taken == nil {
		return notEvaluated(DoubleDeduct, "the effect of each request was not watched")
	}
	var extra int64
	var which string
	seen := map[string]bool{}
	for _, o := range ops {
		if o.Op != Deduct || seen[o.Request] {
			continue
		}
		seen[o.Request] = true
		if taken := rest.Taken[o.Request]; taken > o.Qty {
			extra += taken - o.Qty
			which = fmt.Sprintf("request %s wanted %d and took %d", o.Request, o.Qty, taken)
		}
	}
	if extra > 0 {
		return broken(DoubleDeduct, extra, "%s", which)
	}
	return kept(DoubleDeduct)
}

// doubleSale counts a request that was answered sold more than once, or has
// more than one durable order.
func doubleSale(ops []Operation, rest Rest) Finding {
	count := func(requests []string) (extra int64, which string) {
		times := map[string]int64{}
		for _, r := range requests {
			if times[r]++; r != "" && times[r] > 1 {
				extra++
				which = r
			}
		}
		return extra, which
	}
	var answered, ordered []string
	for _, o := range ops {
		if o.Op == Deduct && o.Outcome == Sold {
			answered = append(answered, o.Request)
		}
	}
	if rest.Orders != nil {
		for _, o := range *rest.Orders {
			ordered = append(ordered, o.Request)
		}
	}
	if extra, which := count(answered); extra > 0 {
		return broken(DoubleSale, extra, "request %s was answered sold more than once", which)
	}
	if extra, which := count(ordered); extra > 0 {
		return broken(DoubleSale, extra, "request %s has more than one order", which)
	}
	return kept(DoubleSale)
}

// orderMismatch compares request by request: too many orders for one buyer do
// not make up for a missing one.
func orderMismatch(ops []Operation, rest Rest) Finding {
	if rest.Orders == nil {
		return notEvaluated(OrderMismatch, "the scheme writes no orders")
	}
	balance := map[string]int64{}
	for _, o := range *rest.Orders {
		balance[o.Request] += o.Qty
	}
	for _, o := range ops {
		if o.Op == Deduct && o.Outcome == Sold {
			balance[o.Request] -= o.Qty
		}
	}
	var missing, surplus int64
	for _, b := range balance {
		if b < 0 {
			missing -= b
		} else {
			surplus += b
		}
	}
	if missing+surplus > 0 {
		return broken(OrderMismatch, missing+surplus, "%d units sold without an order, %d units ordered without a sale", missing, surplus)
	}
	return kept(OrderMismatch)
}

// falseSoldOut compares each sold-out with the fewest units any linearization
// can leave at some point of its interval: everything that may have been
// deducted by then (called, and sold or unknown) is, and only restocks that
// had certainly returned by then are counted. That bound ignores that sales
// need stock too, so it can miss a false answer but never accuses a true one.
//
// Within the interval the bound falls when a deduct is called and rises when
// a restock returns, so it is lowest just before a restock returns or at the
// operation's own return; equal times are concurrent.
func falseSoldOut(ops []Operation, initial int64) Finding {
	least := newLeast(ops, initial)
	var count int64
	var detail string
	for _, o := range ops {
		if o.Op != Deduct || o.Outcome != SoldOut {
			continue
		}
		if low := least.during(o); low >= o.Qty {
			count++
			detail = fmt.Sprintf("%s, but at least %d units were unsold during all of it", o, low)
		}
	}
	if count > 0 {
		return broken(FalseSoldOut, count, "%s", detail)
	}
	return kept(FalseSoldOut)
}

// least answers how few units there can have been, as falseSoldOut counts them.
type least struct {
	initial                   int64
	deductTimes, deductSums   []int64 // by call
	restockTimes, restockSums []int64 // by return
}

func newLeast(ops []Operation, initial int64) least {
	type event struct{ at, units int64 }
	var deducts, restocks []event
	for _, o := range ops {
		switch {
		case o.Op == Deduct && (o.Outcome == Sold || o.Outcome == Unknown):
			deducts = append(deducts, event{o.Call, o.Qty})
		case o.Op == Restock && o.Outcome == OK:
			restocks = append(restocks, event{o.Return, o.Qty})
		}
	}
	prefix := func(events []event) (times []int64, sums []int64) {
		sort.Slice(events, func(i, j int) bool { return events[i].at < events[j].at })
		sum := int64(0)
		for _, e := range events {
			sum += e.units
			times, sums = append(times, e.at), append(sums, sum)
		}
		return times, sums
	}
	l := least{initial: initial}
	l.deductTimes, l.deductSums = prefix(deducts)
	l.restockTimes, l.restockSums = prefix(restocks)
	return l
}

// at is the bound at a time, where only restocks that returned before it count.
func (l least) at(t int64) int64 {
	upTo := func(times, sums []int64, t int64) int64 { // sum of events at ≤ t
		if i := sort.Search(len(times), func(i int) bool { return times[i] > t }); i > 0 {
			return sums[i-1]
		}
		return 0
	}
	return l.initial + upTo(l.restockTimes, l.restockSums, t-1) - upTo(l.deductTimes, l.deductSums, t)
}

// during is the lowest bound in the interval of an operation.
func (l least) during(o Operation) int64 {
	low := min(l.at(o.Call), l.at(o.Return))
	times := l.restockTimes
	for i := sort.Search(len(times), func(i int) bool { return times[i] >= o.Call }); i < len(times) && times[i] <= o.Return; i++ {
		low = min(low, l.at(times[i]))
	}
	return low
}

// leastDuring is the fewest units any linearization can leave at some point of
// an operation's interval.
func leastDuring(ops []Operation, initial int64, o Operation) int64 {
	return newLeast(ops, initial).during(o)
}

func unsold(ops []Operation, rest Rest) Finding {
	if rest.Counter == nil {
		return notEvaluated(Unsold, noCounter)
	}
	if left := min(*rest.Counter, add(ops).busyDeductUnits); left > 0 {
		return broken(Unsold, left, "%d units are left and buyers of %d units were answered busy", *rest.Counter, add(ops).busyDeductUnits)
	}
	return kept(Unsold)
}

func stuck(rest Rest) Finding {
	switch {
	case rest.Probe == nil:
		return notEvaluated(Stuck, "no probe was made")
	case *rest.Probe != Sold && *rest.Probe != SoldOut:
		return broken(Stuck, 1, "a probe after recovery was answered %s", *rest.Probe)
	}
	return kept(Stuck)
}

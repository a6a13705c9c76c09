package model

import (
	"math"
	"slices"
)

// Window is a part of a history that is impossible by itself, and so makes the
// whole impossible.
type Window struct {
	Initial int64 // units when it begins, before what is pending then
	Ops     []Operation
	// First and Last are the indexes, in the whole history, of the first and the
	// last operation called in the window.
	First, Last int
}

// WindowOf finds the shortest of several windows that end where a history became
// impossible, doubling their length up to most operations. ok is false when
// none of them is impossible without what came before it.
func WindowOf(initial int64, ops []Operation, r Refutation, most int) (w Window, ok bool) {
	until := ops[r.Op].Return
	order := byCall(ops)
	end, _ := slices.BinarySearchFunc(order, until, func(i int, t int64) int {
		if ops[i].Call <= t {
			return -1
		}
		return 1
	})
	for n := 8; ; n *= 2 {
		at := max(end-n, 0)
		w = cutWindow(initial, ops, ops[order[at]].Call, until)
		w.First, w.Last = order[at], order[end-1]
		if len(w.Ops) > most {
			return Window{}, false
		}
		if Judge(w.Initial, w.Ops, Limits{Work: 5_000_000}).Ruling == Illegal {
			return w, true
		}
		if at == 0 {
			return Window{}, false
		}
	}
}

// cutWindow is what a history says of the time from … until. What had returned
// before is the stock it begins with; a move that was pending may take effect
// now; a check that was pending is left out, because it may have been right
// before. Of what had not returned by the end, see Prefix.
//
// If the whole is linearizable, so is this: let the pending moves that had
// taken effect by from do so first, what raises the stock before what lowers
// it, and the others where they did. After the first the stock is what it was, so
// none of them took it below zero on the way, and from there on nothing differs.
// (What the window begins with may be negative, until a restock that was
// pending takes effect.)
func cutWindow(initial int64, ops []Operation, from, until int64) Window {
	w := Window{Initial: initial}
	for i, o := range ops {
		it, counts := itemOf(o, i)
		ret := it.ret
		if it.open {
			ret = math.MaxInt64
		}
		switch {
		case !counts || o.Call > until:
			continue
		case ret < from:
			w.Initial += it.delta
			continue
		case it.delta == 0 && (o.Call < from || ret > until):
			continue
		case ret > until:
			o.Outcome, o.Open = Unknown, true
		}
		o.Call = max(o.Call, from)
		w.Ops = append(w.Ops, o)
	}
	return w
}

package model

import (
	"fmt"
	"slices"
)

// Explain says in words where a history became impossible.
func Explain(initial int64, ops []Operation, r Refutation) string {
	x := ops[r.Op]
	text := fmt.Sprintf("operation %d (%s)", r.Op+1, x)
	if x.Request != "" {
		text = fmt.Sprintf("operation %d (request %s, %s)", r.Op+1, x.Request, x)
	}
	text += fmt.Sprintf(" ran between %s and %s; ", Time(x.Call), Time(x.Return))
	if readAtRest(ops, r.Op) {
		// Everything until then had an order, or that would have failed first.
		text = fmt.Sprintf("only with the read at rest, which shows %d, no order fits; ", x.Value)
	}
	switch low := leastDuring(ops, initial, x); {
	case x.Outcome == SoldOut && low >= x.Qty:
		text += fmt.Sprintf("at least %d units were unsold during all of it", low)
	case x.Outcome == Sold && r.Highest < x.Qty:
		text += fmt.Sprintf("at most %d units can have been left for it", max(r.Highest, 0))
	case r.Lowest == r.Highest:
		text += fmt.Sprintf("the stock can only have been %d", r.Lowest)
	default:
		text += fmt.Sprintf("the stock can have been between %d and %d, but in no order that fits all answers until then", r.Lowest, r.Highest)
	}
	if r.Relaxed != "" {
		text += " (even without asking for " + r.Relaxed + ")"
	}
	return text
}

// Time is a time of a history for people: milliseconds where it has them.
func Time(ns int64) string {
	if ns >= 100_000 || ns <= -100_000 {
		return fmt.Sprintf("%.4g ms", float64(ns)/1e6)
	}
	return fmt.Sprintf("%d ns", ns)
}

// Minimal finds answers that alone make a history impossible: the indexes of
// operations such that whatever the others did (a sale or restock may have
// happened or not, a check is not looked at), no order fits, and leaving any one
// of them open as well would make one fit. minimal is false when budget
// decisions were not enough to show the last part.
func Minimal(initial int64, ops []Operation, r Refutation, budget int) (needed []int, minimal bool) {
	until := ops[r.Op].Return
	impossible := func(kept []int) bool {
		budget--
		return Judge(initial, onlyKnown(ops, kept, until), Limits{Work: 5_000_000}).Ruling == Illegal
	}
	var kept []int
	for i, o := range ops {
		if _, counts := itemOf(o, i); counts && o.Outcome != Unknown && o.Return <= until {
			kept = append(kept, i)
		}
	}
	if !impossible(kept) {
		return kept, false
	}
	// Chunks from half of it down to one, as in delta debugging; what was called
	// first goes first.
	for size := max(len(kept)/2, 1); ; size /= 2 {
		for at := 0; at < len(kept); {
			if budget <= 0 {
				return kept, false
			}
			without := slices.Delete(slices.Clone(kept), at, min(at+size, len(kept)))
			if impossible(without) {
				kept = without
			} else {
				at += size
			}
		}
		if size <= 1 {
			return kept, true
		}
	}
}

// onlyKnown is the history until a time with only some answers known.
func onlyKnown(ops []Operation, kept []int, until int64) []Operation {
	known := make(map[int]bool, len(kept))
	for _, i := range kept {
		known[i] = true
	}
	var out []Operation
	for i, o := range ops {
		it, counts := itemOf(o, i)
		switch {
		case !counts || o.Call > until || !known[i] && it.delta == 0:
			continue
		case !known[i]:
			o.Outcome, o.Open = Unknown, true
		}
		out = append(out, o)
	}
	return out
}

package model

// Order is a durable promise to a buyer, found by the id of its request.
type Order struct {
	Request string
	Qty     int64 // units
}

// Settle decides unknown deducts from the durable orders: one whose request
// has an order becomes sold, returned at the time of the audit; one without is
// dropped, because a sale that left no order will not be honoured. Call it
// only when nothing is in flight any more. It answers the settled history and
// how many unknowns it decided. Unknown restocks stay open.
func Settle(ops []Operation, orders []Order, at int64) (settled []Operation, decided int) {
	ordered := make(map[string]bool, len(orders))
	for _, o := range orders {
		ordered[o.Request] = true
	}
	// An order that a definite answer already accounts for cannot also prove
	// that a second submission of the same request went through.
	for _, o := range ops {
		if o.Op == Deduct && o.Outcome == Sold {
			delete(ordered, o.Request)
		}
	}
	for _, o := range ops {
		if o.Op != Deduct || o.Outcome != Unknown {
			settled = append(settled, o)
			continue
		}
		decided++
		if ordered[o.Request] {
			delete(ordered, o.Request)
			o.Outcome, o.Open, o.Return = Sold, false, max(at, o.Call)
			settled = append(settled, o)
		}
	}
	return settled, decided
}

// AtRest ends a settled history with one quiescent read: what the counter shows
// when nothing is in flight any more, read by somebody who is no client. A
// counter that could not be read (nil) constrains nothing.
func AtRest(ops []Operation, counter *int64) []Operation {
	if counter == nil {
		return ops
	}
	read := Operation{Op: Read, Outcome: Value, Value: *counter}
	for _, o := range ops {
		read.Client, read.Call = max(read.Client, o.Client+1), max(read.Call, o.Call+1)
		if !o.Open {
			read.Call = max(read.Call, o.Return+1)
		}
	}
	read.Return = read.Call
	return append(ops[:len(ops):len(ops)], read)
}

// readAtRest says whether an operation is a read that was called when all others
// had returned that ever did.
func readAtRest(ops []Operation, i int) bool {
	if ops[i].Op != Read {
		return false
	}
	for k, o := range ops {
		if k != i && (o.Call >= ops[i].Call || !o.Open && o.Return >= ops[i].Call) {
			return false
		}
	}
	return true
}

package evidence

import (
	"slices"

	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/model"
)

// HistoryOf is what the clients of a schedule were answered, in the order of
// calls: an operation is called at its client's first step and returns at the
// step that has its answer. The times are positions in the schedule. Where
// there are orders they settle what is unknown, and at rest one quiescent read
// ends it, as in a verdict.
func HistoryOf(s *schedule.Schedule) histories.History {
	h := histories.History{Name: s.Scheme, SKU: s.SKU, Initial: s.Stock}
	at := map[string]int{}      // operation of a client → place in Ops
	began := map[string]int{}   // operations of a client that began
	inside := map[string]bool{} // the client is in an operation
	number := map[string]int{}  // of a client
	for i, c := range s.Clients {
		number[c.Name] = i
	}
	for i, st := range s.Steps {
		c, ok := s.Client(st.Client)
		if ok && st.Kind == schedule.Command && !inside[c.Name] && began[c.Name] < len(c.Calls) {
			inside[c.Name] = true
			began[c.Name]++
			n := began[c.Name]
			call := c.Calls[n-1]
			id := schedule.RequestID(c.Name, n)
			if call.Op == model.Deduct || call.Op == model.Restock || call.Op == model.Read {
				at[id] = len(h.Ops)
				h.Ops = append(h.Ops, model.Operation{Client: number[c.Name], Op: call.Op, Qty: call.Qty, Call: 2 * int64(i),
					Open: true, Outcome: model.Unknown, Request: c.Request(n)})
			}
		}
		for _, a := range st.Answers {
			id := schedule.RequestID(a.Client, a.N)
			inside[a.Client] = false
			k, there := at[id]
			if !there || a.Outcome == model.Unknown {
				continue
			}
			op := &h.Ops[k]
			op.Outcome, op.Value, op.Open, op.Return = a.Outcome, a.Value, false, 2*int64(i)+1
		}
	}
	if s.Orders != nil {
		h.Ops, _ = model.Settle(h.Ops, *s.Orders, 2*int64(len(s.Steps))+2)
	}
	if !slices.ContainsFunc(s.Outcomes, func(a schedule.Answer) bool { return a.Outcome == schedule.Unfinished }) {
		var counter *int64
		if s.Final.Known {
			counter = &s.Final.Units
		}
		h.Ops = model.AtRest(h.Ops, counter)
	}
	return h
}

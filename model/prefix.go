package model

// Prefix is what a history says until a time: what was called later is left
// out; of what had not returned, a move of the stock becomes an open unknown,
// and a check (a sold-out, a read) is left out, because it changes nothing.
// Every prefix of a linearizable history is linearizable.
func Prefix(ops []Operation, until int64) []Operation {
	var known []Operation
	for i, o := range ops {
		it, counts := itemOf(o, i)
		switch {
		case o.Call > until || !counts:
			continue
		case o.Outcome != Unknown && o.Return > until && it.delta == 0:
			continue
		case o.Outcome != Unknown && o.Return > until:
			o.Outcome, o.Open = Unknown, true
		}
		known = append(known, o)
	}
	return known
}

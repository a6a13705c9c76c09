package model

import (
	"container/heap"
	"math/rand/v2"
)

// sale describes a simulated sale: clients work one operation after another
// against a real stock, and each operation takes effect at some moment between
// its call and its return.
type sale struct {
	ops, clients    int
	maxQty          int64
	initial         int64
	restocks, reads float64 // shares of the operations
	unknown         float64 // share of the moves; half of them took effect
	idle            int64   // between two operations of a client, at most
}

type moment struct {
	at int64
	op int
}

type moments []moment

func (m moments) Len() int           { return len(m) }
func (m moments) Less(i, j int) bool { return m[i].at < m[j].at }
func (m moments) Swap(i, j int)      { m[i], m[j] = m[j], m[i] }
func (m *moments) Push(x any)        { *m = append(*m, x.(moment)) }
func (m *moments) Pop() any {
	old := *m
	x := old[len(old)-1]
	*m = old[:len(old)-1]
	return x
}

// history simulates the sale, in order of call.
func (s sale) history(seed uint64) []Operation {
	r := rand.New(rand.NewPCG(seed, 4))
	ops := make([]Operation, 0, s.ops)
	free := make(moments, s.clients) // a client's next call; op is the client
	for c := range free {
		free[c] = moment{at: r.Int64N(1000), op: c}
	}
	heap.Init(&free)
	var effects moments
	stock := s.initial
	apply := func(until int64) {
		for len(effects) > 0 && effects[0].at <= until {
			o := &ops[heap.Pop(&effects).(moment).op]
			switch {
			case o.Op == Restock:
				stock += o.Qty
			case o.Op == Read:
				o.Value = stock
			case stock >= o.Qty:
				stock -= o.Qty
			case o.Outcome == Sold:
				o.Outcome = SoldOut
			}
		}
	}
	for len(ops) < s.ops {
		next := heap.Pop(&free).(moment)
		apply(next.at - 1)
		o := Operation{Client: next.op, Op: Deduct, Outcome: Sold, Qty: 1 + r.Int64N(s.maxQty), Call: next.at}
		took := 500 + r.Int64N(1000)
		o.Return = o.Call + took
		switch k := r.Float64(); {
		case k < s.restocks:
			o.Op, o.Outcome = Restock, OK
		case k < s.restocks+s.reads:
			o.Op, o.Outcome, o.Qty = Read, Value, 0
		}
		effective := true
		if o.Op != Read && r.Float64() < s.unknown {
			o.Outcome, o.Open = Unknown, true
			effective = r.IntN(2) == 0
		}
		ops = append(ops, o)
		if effective {
			heap.Push(&effects, moment{at: o.Call + r.Int64N(took+1), op: len(ops) - 1})
		}
		heap.Push(&free, moment{at: o.Return + 1 + r.Int64N(s.idle+1), op: next.op})
	}
	apply(1 << 62)
	for i := range ops {
		if ops[i].Open {
			ops[i].Return = 0
		}
	}
	return ops
}

package model

import (
	"fmt"
	"math"

	"github.com/anishathalye/porcupine"
)

// PorcupineModel is the sequential stock with initial units for porcupine, and
// PorcupineOperations the operations in the form that model expects.
//
// An unknown operation is open: it may take effect at any time after its call,
// or never. Two encodings are used, both exact:
//
//   - When every quantity is 1, it becomes an announcement at the moment of its
//     call, which adds to a pool in the state; a unit of the pool is spent only
//     when a later answer needs it (a sold-out, a read, a sale at zero).
//     Spending later is always possible: nothing observes the stock in between.
//   - Otherwise it stays an operation with its return at infinity, whose step
//     may or may not change the state (a nondeterministic model).
//
// Busy and Failed operations are no-ops and are left out, as is an unknown read.
func PorcupineModel(initial int64, ops []Operation) (porcupine.Model, []porcupine.Operation) {
	if unitQuantities(ops) {
		return unitModel(initial), porcupineOperations(ops, true)
	}
	return quantityModel(initial), porcupineOperations(ops, false)
}

func unitQuantities(ops []Operation) bool {
	for _, o := range ops {
		if o.Op != Read && o.Qty != 1 {
			return false
		}
	}
	return true
}

func porcupineOperations(ops []Operation, announce bool) []porcupine.Operation {
	var out []porcupine.Operation
	for _, o := range ops {
		switch o.Outcome {
		case Busy, Failed:
			continue
		case Unknown:
			if o.Op == Read {
				continue
			}
		}
		ret := o.Return
		if o.Outcome == Unknown {
			ret = math.MaxInt64
			if announce {
				ret = o.Call
			}
		}
		out = append(out, porcupine.Operation{
			ClientId: o.Client, Input: o, Call: o.Call, Output: o.Outcome, Return: ret,
		})
	}
	return out
}

// unitState is the stock with the pools of announced unknowns.
type unitState struct {
	stock    int64
	deducts  int64 // announced unknown deducts not spent yet
	restocks int64 // announced unknown restocks not spent yet
}

// step is the sequential specification for unit quantities.
func (s unitState) step(o Operation) (bool, unitState) {
	switch {
	case o.Outcome == Unknown && o.Op == Deduct:
		s.deducts++
	case o.Outcome == Unknown && o.Op == Restock:
		s.restocks++
	case o.Op == Restock:
		s.stock++
	case o.Outcome == Sold && s.stock > 0:
		s.stock--
	case o.Outcome == Sold:
		s.restocks-- // an unknown restock took effect just before
	case o.Outcome == SoldOut:
		s = s.moveTo(0)
	case o.Outcome == Value:
		s = s.moveTo(o.Value)
	default:
		return false, s
	}
	return s.deducts >= 0 && s.restocks >= 0 && s.stock >= 0, s
}

// moveTo spends as many unknowns as it takes to make the stock equal to want;
// a negative pool says that there were too few.
func (s unitState) moveTo(want int64) unitState {
	if s.stock > want {
		s.deducts -= s.stock - want
	} else {
		s.restocks -= want - s.stock
	}
	s.stock = want
	return s
}

func unitModel(initial int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return unitState{stock: initial} },
		Step: func(state, input, _ any) (bool, any) {
			ok, next := state.(unitState).step(input.(Operation))
			return ok, next
		},
		Equal:             func(a, b any) bool { return a.(unitState) == b.(unitState) },
		DescribeOperation: describe,
		DescribeState: func(state any) string {
			s := state.(unitState)
			if s.deducts == 0 && s.restocks == 0 {
				return fmt.Sprintf("%d left", s.stock)
			}
			return fmt.Sprintf("%d left, %d deducts and %d restocks unknown", s.stock, s.deducts, s.restocks)
		},
	}
}

// quantitySteps is the sequential specification for any quantities: the states
// an operation may lead to, none when its answer does not fit.
func quantitySteps(stock int64, o Operation) []int64 {
	switch {
	case o.Outcome == Unknown && o.Op == Deduct:
		if stock >= o.Qty {
			return []int64{stock, stock - o.Qty}
		}
		return []int64{stock}
	case o.Outcome == Unknown && o.Op == Restock:
		return []int64{stock, stock + o.Qty}
	case o.Op == Restock:
		return []int64{stock + o.Qty}
	case o.Outcome == Sold && stock >= o.Qty:
		return []int64{stock - o.Qty}
	case o.Outcome == SoldOut && stock < o.Qty:
		return []int64{stock}
	case o.Outcome == Value && stock == o.Value:
		return []int64{stock}
	}
	return nil
}

func quantityModel(initial int64) porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{initial} },
		Step: func(state, input, _ any) []any {
			var next []any
			for _, s := range quantitySteps(state.(int64), input.(Operation)) {
				next = append(next, s)
			}
			return next
		},
		Equal:             func(a, b any) bool { return a.(int64) == b.(int64) },
		DescribeOperation: describe,
		DescribeState:     func(state any) string { return fmt.Sprintf("%d left", state.(int64)) },
	}
	return m.ToModel()
}

func describe(input, _ any) string {
	o := input.(Operation)
	if o.Op == Read {
		return fmt.Sprintf("read → %d", o.Value)
	}
	return fmt.Sprintf("%s(%d) → %s", o.Op, o.Qty, o.Outcome)
}

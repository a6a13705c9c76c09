package model

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// bruteForce tries every order and every subset of the unknowns. It shares no
// code with the models it is the oracle of.
func bruteForce(initial int64, ops []Operation) bool {
	used := make([]bool, len(ops))
	var search func(stock int64) bool
	search = func(stock int64) bool {
		done := true
		for i, o := range ops {
			if !used[i] && o.Outcome != Unknown && o.Outcome != Busy && o.Outcome != Failed {
				done = false
			}
		}
		if done {
			return true
		}
	next:
		for i, o := range ops {
			if used[i] || o.Outcome == Busy || o.Outcome == Failed {
				continue
			}
			for j, before := range ops { // something that returned earlier comes first
				if !used[j] && before.Outcome != Unknown && before.Outcome != Busy && before.Outcome != Failed && before.Return < o.Call {
					continue next
				}
			}
			after := stock
			switch o.Op {
			case Deduct:
				if o.Outcome == SoldOut {
					if stock >= o.Qty {
						continue
					}
				} else if after -= o.Qty; after < 0 {
					continue
				}
			case Restock:
				after += o.Qty
			case Read:
				if o.Outcome != Unknown && o.Value != stock {
					continue
				}
			}
			used[i] = true
			if search(after) {
				return true
			}
			used[i] = false
		}
		return false
	}
	return search(initial)
}

// randomHistory is small enough for the brute force and tight enough that both
// verdicts are common.
func randomHistory(r *rand.Rand, maxQty int64) (int64, []Operation) {
	initial := int64(r.IntN(4))
	var ops []Operation
	clients := 2 + r.IntN(3)
	clock := make([]int64, clients)
	for range 3 + r.IntN(5) {
		c := r.IntN(clients)
		o := Operation{Client: c, Qty: 1 + r.Int64N(maxQty)}
		o.Call = clock[c] + r.Int64N(4)
		o.Return = o.Call + r.Int64N(6)
		switch k := r.IntN(10); {
		case k < 5:
			o.Op, o.Outcome = Deduct, Sold
		case k < 7:
			o.Op, o.Outcome = Deduct, SoldOut
		case k < 9:
			o.Op, o.Outcome = Restock, OK
		default:
			o.Op, o.Outcome, o.Qty, o.Value = Read, Value, 0, r.Int64N(4)
		}
		switch r.IntN(8) {
		case 0:
			o.Outcome, o.Open, o.Return, o.Value = Unknown, true, 0, 0
		case 1:
			if o.Op == Deduct {
				o.Outcome = []Outcome{Busy, Failed}[r.IntN(2)]
			}
		}
		clock[c] = o.Call + 1
		if !o.Open {
			clock[c] = o.Return
		} else { // the client of an open operation does nothing more
			clock[c] = 1 << 40
		}
		ops = append(ops, o)
	}
	kept := ops[:0]
	for _, o := range ops {
		if o.Call < 1<<40 {
			kept = append(kept, o)
		}
	}
	return initial, kept
}

func seeded(n uint64) *rand.Rand { return rand.New(rand.NewPCG(n, 2)) }

type ask func(initial int64, ops []Operation) porcupine.CheckResult

func askPorcupine(initial int64, ops []Operation) porcupine.CheckResult {
	m, p := PorcupineModel(initial, ops)
	return porcupine.CheckOperationsTimeout(m, p, 30*time.Second)
}

// disagreements counts on how many random histories ask differs from the brute
// force, and how many there were of either verdict.
func disagreements(seed uint64, n int, ask ask) (differ, legal, illegal int) {
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range n {
		maxQty := int64(1 + i%3)
		initial, ops := randomHistory(r, maxQty)
		want := bruteForce(initial, ops)
		if want {
			legal++
		} else {
			illegal++
		}
		got := ask(initial, ops)
		if got == porcupine.Unknown || (got == porcupine.Ok) != want {
			differ++
		}
	}
	return differ, legal, illegal
}

const randomHistories = 20000

func TestBothEncodingsOfUnknownsAgreeWithBruteForce(t *testing.T) {
	seed := uint64(20261130)
	t.Logf("seed %d", seed)
	differ, legal, illegal := disagreements(seed, randomHistories, askPorcupine)
	require.Zero(t, differ)
	require.Greater(t, legal, randomHistories/10, "both verdicts must be common")
	require.Greater(t, illegal, randomHistories/10, "both verdicts must be common")
}

// Each mutant is the checker with one mistake. If the comparison with the brute
// force could not convict it, that comparison would prove nothing.
func TestABrokenCheckerIsConvictedByTheBruteForce(t *testing.T) {
	unit := func(step func(unitState, Operation) (bool, unitState)) ask {
		return func(initial int64, ops []Operation) porcupine.CheckResult {
			if !unitQuantities(ops) {
				return askPorcupine(initial, ops)
			}
			m := unitModel(initial)
			m.Step = func(state, input, _ any) (bool, any) {
				ok, next := step(state.(unitState), input.(Operation))
				return ok, next
			}
			return porcupine.CheckOperationsTimeout(m, porcupineOperations(ops, true), 30*time.Second)
		}
	}
	for name, mutant := range map[string]ask{
		"sells below zero": unit(func(s unitState, o Operation) (bool, unitState) {
			if o.Outcome == Sold && s.stock == 0 {
				return true, s
			}
			return s.step(o)
		}),
		"accepts every sold-out": unit(func(s unitState, o Operation) (bool, unitState) {
			if o.Outcome == SoldOut {
				return true, s
			}
			return s.step(o)
		}),
		"never spends an unknown deduct": unit(func(s unitState, o Operation) (bool, unitState) {
			ok, next := s.step(o)
			return ok && (o.Outcome == Unknown || next.deducts == s.deducts), next
		}),
		"spends unknown restocks twice": unit(func(s unitState, o Operation) (bool, unitState) {
			ok, next := s.step(o)
			next.restocks = max(next.restocks, s.restocks)
			return ok, next
		}),
		"forgets restocks": unit(func(s unitState, o Operation) (bool, unitState) {
			if o.Op == Restock && o.Outcome == OK {
				return true, s
			}
			return s.step(o)
		}),
		"ignores what a read answered": unit(func(s unitState, o Operation) (bool, unitState) {
			if o.Op == Read {
				return true, s
			}
			return s.step(o)
		}),
		"treats an unknown as applied": func(initial int64, ops []Operation) porcupine.CheckResult {
			m, p := PorcupineModel(initial, ops)
			if unitQuantities(ops) {
				return porcupine.CheckOperationsTimeout(m, p, 30*time.Second)
			}
			inner := m.Step
			m.StepContext = nil // it would be asked instead of Step
			m.Step = func(state, input, output any) (bool, any) {
				o := input.(Operation)
				if o.Outcome == Unknown && o.Op == Deduct {
					o.Outcome = Sold
				}
				return inner(state, o, output)
			}
			return porcupine.CheckOperationsTimeout(m, p, 30*time.Second)
		},
		"drops unknowns": func(initial int64, ops []Operation) porcupine.CheckResult {
			var kept []Operation
			for _, o := range ops {
				if o.Outcome != Unknown {
					kept = append(kept, o)
				}
			}
			return askPorcupine(initial, kept)
		},
		"lets an unknown begin before its call": func(initial int64, ops []Operation) porcupine.CheckResult {
			early := append([]Operation(nil), ops...)
			for i := range early {
				if early[i].Outcome == Unknown {
					early[i].Call = 0
				}
			}
			return askPorcupine(initial, early)
		},
		"takes equal times as ordered": func(initial int64, ops []Operation) porcupine.CheckResult {
			ordered := append([]Operation(nil), ops...)
			for i := range ordered {
				ordered[i].Call = 2*ordered[i].Call + 1
				ordered[i].Return = max(2*ordered[i].Return, ordered[i].Call)
			}
			return askPorcupine(initial, ordered)
		},
		"reads a timeout as a pass": func(initial int64, ops []Operation) porcupine.CheckResult {
			return porcupine.Ok
		},
	} {
		t.Run(name, func(t *testing.T) {
			differ, _, _ := disagreements(7, 4000, mutant)
			require.NotZero(t, differ)
		})
	}
}

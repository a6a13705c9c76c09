package model

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// mutant is the checker with one mistake, made in its input, its answer or its
// rules. If the comparison could not convict each, it would prove nothing.
func judgeItems(change func(*item), initial int64, ops []Operation, limits Limits) Judgement {
	b := newBeam(initial, limits)
	for _, i := range byCall(ops) {
		if it, ok := itemOf(ops[i], i); ok {
			change(&it)
			b.add(it)
		}
	}
	return b.finish()
}

func TestEachMutantOfTheExactCheckerIsConvicted(t *testing.T) {
	type judge = func(int64, []Operation, Limits) Judgement
	items := func(change func(*item)) judge {
		return func(initial int64, ops []Operation, l Limits) Judgement { return judgeItems(change, initial, ops, l) }
	}
	// on runs the frontier alone, with a hook before each operation.
	on := func(hook func(*engine)) judge {
		return func(initial int64, ops []Operation, l Limits) Judgement {
			b := newBeam(initial, l)
			for _, i := range byCall(ops) {
				if it, ok := itemOf(ops[i], i); ok {
					b.add(it)
					hook(b.engine)
				}
			}
			return b.finish()
		}
	}
	sums := func(change func(*deducts)) judge {
		return func(initial int64, ops []Operation, l Limits) Judgement {
			d := newDeducts(initial, ShapeOf(ops), l)
			if d == nil || !ShapeOf(ops).DeductsOnly() {
				return Judge(initial, ops, l)
			}
			for _, i := range byCall(ops) {
				if it, ok := itemOf(ops[i], i); ok {
					d.add(it)
					change(d)
				}
			}
			return d.finish()
		}
	}
	for name, mutant := range map[string]judge{
		"accepts a sold-out with its quantity left": items(func(it *item) {
			if it.delta == 0 && it.lo != it.hi {
				it.hi++
			}
		}),
		"takes sold-out for nothing left": items(func(it *item) {
			if it.delta == 0 && it.lo == 0 {
				it.hi = 0
			}
		}),
		"reads one unit off": items(func(it *item) {
			if it.delta == 0 && it.lo == it.hi {
				it.hi++
			}
		}),
		"treats equal times as ordered": items(func(it *item) {
			it.call = 2*it.call + 1
			if !it.open {
				it.ret = max(2*it.ret, it.call)
			}
		}),
		"lets an unknown end with the history": items(func(it *item) {
			if it.open {
				it.open, it.ret = false, math.MaxInt64-1
			}
		}),
		"sells one unit for many": items(func(it *item) {
			if it.delta < 0 {
				it.delta = -1
			}
		}),
		"never visits the value of a waiting check": on(func(e *engine) {
			e.level.excursions = false
			e.complete = true
		}),
		"calls a cut frontier complete": on(func(e *engine) {
			e.level.width = 1
			e.complete = true
		}),
		"forgets that an unknown was used": on(func(e *engine) {
			for i := range e.n {
				clear(e.state(i)[header+e.words:])
			}
		}),
		"goes below zero": on(func(e *engine) {
			for i := range e.n {
				if e.state(i)[0] == 0 {
					e.state(i)[0] = 1
				}
			}
		}),
		"lets the first to return wait": on(func(e *engine) {
			for _, k := range e.kinds {
				for i, j := 0, len(k.pending)-1; i < j; i, j = i+1, j-1 {
					k.pending[i], k.pending[j] = k.pending[j], k.pending[i]
				}
			}
		}),
		"asks no sum to be large enough":       sums(func(d *deducts) { d.need = math.MaxInt64 }),
		"lets the unknowns have what was sold": sums(func(d *deducts) { d.initial = min(d.initial, d.spare+d.sold) }),
		"believes whatever is read at rest": sums(func(d *deducts) {
			for i := range d.waiting {
				d.waiting[i].lo = 0
			}
		}),
		"takes every read for the one at rest": func(initial int64, ops []Operation, l Limits) Judgement {
			d := newDeducts(initial, ShapeOf(ops), l)
			if d == nil || ShapeOf(ops).Restocks {
				return Judge(initial, ops, l)
			}
			for _, i := range byCall(ops) {
				if it, ok := itemOf(ops[i], i); ok {
					d.add(it)
				}
			}
			return d.finish()
		},
		"says undecided": func(int64, []Operation, Limits) Judgement { return Judgement{Ruling: Undecided} },
		"finds the wrong operation guilty": func(initial int64, ops []Operation, l Limits) Judgement {
			j := Judge(initial, ops, l)
			if j.Refutation != nil {
				for i, o := range ops {
					if it, ok := itemOf(o, i); ok && !it.open && o.Return < ops[j.Refutation.Op].Return {
						j.Refutation.Op = i
					}
				}
			}
			return j
		},
		"leaves something out of the order": func(initial int64, ops []Operation, l Limits) Judgement {
			j := Judge(initial, ops, l)
			if len(j.Order) > 0 {
				j.Order = j.Order[1:]
			}
			return j
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := compare(11, 6000, mutant)
			require.Error(t, err)
		})
	}
}

// A narrow beam is wrong about where to go all the time, so this takes the way
// back to a checkpoint and the relaxations through many histories. It may give
// up, and may never say anything untrue.
func TestABeamThatIsFarTooNarrowGivesUpButSaysNothingUntrue(t *testing.T) {
	wide, wideUnit, every := levels, unitLevels, checkpointEvery
	t.Cleanup(func() { levels, unitLevels, checkpointEvery = wide, wideUnit, every })
	checkpointEvery = 2
	levels = []level{
		{width: 1, solutions: 1, nodes: 5},
		{width: 1, solutions: 1, nodes: 5, excursions: true, risk: 2, back: 2},
		{width: 2, solutions: 2, nodes: 8, excursions: true, risk: 2, back: 4},
	}
	unitLevels = levels
	undecided, decided := 0, map[Ruling]int{}
	r := seeded(5)
	for i := range 12_000 {
		initial, ops := classes[i%len(classes)].history(r)
		j := Judge(initial, ops, Limits{Order: true})
		if j.Ruling == Undecided {
			undecided++
			continue
		}
		decided[j.Ruling]++
		require.Equal(t, bruteForce(initial, ops), j.Ruling == Legal, "history %d, %d units\n%s", i, initial, lines(ops))
		if j.Ruling == Legal {
			require.NoError(t, Confirm(initial, ops, j.Order), "history %d, %d units\n%s", i, initial, lines(ops))
		}
	}
	require.NotZero(t, undecided, "the beam was not too narrow")
	require.Greater(t, decided[Legal], 1000)
	require.Greater(t, decided[Illegal], 1000)
}

// FuzzExact makes a history of bytes and compares the checkers on it.
func FuzzExact(f *testing.F) {
	f.Add([]byte{1, 0, 3, 2, 1, 5, 9, 7, 7, 1, 3, 4})
	f.Add([]byte{3, 9, 1, 1, 8, 2, 4, 6, 3, 3, 9, 9, 0, 1, 7, 2, 2, 2})
	f.Fuzz(func(t *testing.T, raw []byte) {
		initial, ops := fromBytes(raw)
		if err := agree(initial, ops, Judge); err != nil {
			t.Fatalf("%d units: %v\n%s", initial, err, lines(ops))
		}
	})
}

// fromBytes takes three bytes an operation, of at most eight.
func fromBytes(raw []byte) (int64, []Operation) {
	if len(raw) == 0 {
		return 0, nil
	}
	initial := int64(raw[0] % 8)
	var ops []Operation
	for raw = raw[1:]; len(raw) >= 3 && len(ops) < 8; raw = raw[3:] {
		o := Operation{Client: len(ops), Call: int64(raw[0] % 16), Qty: 1 + int64(raw[1]>>4%4)}
		o.Return = o.Call + int64(raw[0]>>4)
		switch raw[1] % 7 {
		case 0, 1:
			o.Op, o.Outcome = Deduct, Sold
		case 2:
			o.Op, o.Outcome = Deduct, SoldOut
		case 3:
			o.Op, o.Outcome = Restock, OK
		case 4:
			o.Op, o.Outcome, o.Qty, o.Value = Read, Value, 0, int64(raw[2]%10)-1
		case 5:
			o.Op, o.Outcome, o.Open, o.Return = Deduct, Unknown, true, 0
		case 6:
			o.Op, o.Outcome, o.Open, o.Return = Restock, Unknown, true, 0
		}
		ops = append(ops, o)
	}
	return initial, ops
}

package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func sold(request string, qty, call, ret int64) Operation {
	return Operation{Op: Deduct, Qty: qty, Call: call, Return: ret, Outcome: Sold, Request: request}
}

func answered(outcome Outcome, request string, qty, call, ret int64) Operation {
	o := sold(request, qty, call, ret)
	o.Outcome, o.Open = outcome, outcome == Unknown
	return o
}

func restocked(outcome Outcome, qty, call, ret int64) Operation {
	o := answered(outcome, "r", qty, call, ret)
	o.Op = Restock
	return o
}

func units(n int64) *int64 { return &n }

func probe(o Outcome) *Outcome { return &o }

func orders(requests ...string) *[]Order {
	all := []Order{}
	for _, r := range requests {
		all = append(all, Order{r, 1})
	}
	return &all
}

func TestEachLawIsBrokenByTheLeastThatBreaksItAndKeptByTheMostThatDoesNot(t *testing.T) {
	for _, c := range []struct {
		name   string
		law    Property
		ops    []Operation
		rest   Rest
		amount int64 // 0: kept
	}{
		{"two sold of one", Oversell, []Operation{sold("a", 1, 0, 1), sold("b", 1, 0, 1)}, Rest{Initial: 1}, 1},
		{"two sold of two", Oversell, []Operation{sold("a", 1, 0, 1), sold("b", 1, 0, 1)}, Rest{Initial: 2}, 0},
		{"a cancel makes room", Oversell, []Operation{sold("a", 1, 0, 1), sold("b", 1, 0, 1), restocked(OK, 1, 0, 1)}, Rest{Initial: 1}, 0},
		{"an unknown cancel may have made room", Oversell, []Operation{sold("a", 1, 0, 1), sold("b", 1, 0, 1), restocked(Unknown, 1, 0, 0)}, Rest{Initial: 1}, 0},
		{"an unknown sale is no sale", Oversell, []Operation{sold("a", 1, 0, 1), answered(Unknown, "b", 1, 0, 0)}, Rest{Initial: 1}, 0},
		{"a failed cancel makes no room", Oversell, []Operation{sold("a", 1, 0, 1), sold("b", 1, 0, 1), restocked(Failed, 1, 0, 1)}, Rest{Initial: 1}, 1},

		{"seen at minus two", NegativeTransient, nil, Rest{Lowest: units(-2)}, -2},
		{"seen at zero", NegativeTransient, nil, Rest{Lowest: units(0)}, 0},
		{"rests at minus one", NegativePermanent, nil, Rest{Counter: units(-1)}, -1},
		{"rests at zero", NegativePermanent, nil, Rest{Counter: units(0)}, 0},

		{"a unit nobody bought", LostUnits, []Operation{sold("a", 1, 0, 1)}, Rest{Initial: 2, Counter: units(0)}, 1},
		{"a unit an unknown may own", LostUnits, []Operation{answered(Unknown, "a", 1, 0, 0)}, Rest{Initial: 1, Counter: units(0)}, 1},
		{"a cancel that vanished", LostUnits, []Operation{restocked(OK, 3, 0, 1)}, Rest{Initial: 1, Counter: units(1)}, 3},
		{"an unknown cancel need not be there", LostUnits, []Operation{restocked(Unknown, 3, 0, 1)}, Rest{Initial: 1, Counter: units(1)}, 0},
		{"all accounted for", LostUnits, []Operation{sold("a", 2, 0, 1)}, Rest{Initial: 3, Counter: units(1)}, 0},

		{"sold and still on sale", PhantomUnits, []Operation{sold("a", 1, 0, 1)}, Rest{Initial: 1, Counter: units(1)}, 1},
		{"an unknown cancel may be there", PhantomUnits, []Operation{restocked(Unknown, 1, 0, 1)}, Rest{Initial: 1, Counter: units(2)}, 0},

		{"one request took two", DoubleDeduct, []Operation{sold("a", 1, 0, 1)}, Rest{Taken: map[string]int64{"a": 2}}, 1},
		{"two submissions of one request took two", DoubleDeduct, []Operation{sold("a", 1, 0, 1), sold("a", 1, 2, 3)}, Rest{Taken: map[string]int64{"a": 2}}, 1},
		{"one request took what it wanted", DoubleDeduct, []Operation{sold("a", 2, 0, 1)}, Rest{Taken: map[string]int64{"a": 2}}, 0},
		{"one request gave back", DoubleDeduct, []Operation{answered(SoldOut, "a", 2, 0, 1)}, Rest{Taken: map[string]int64{"a": 0}}, 0},

		{"sold twice to one request", DoubleSale, []Operation{sold("a", 1, 0, 1), sold("a", 1, 2, 3)}, Rest{}, 1},
		{"two orders of one request", DoubleSale, nil, Rest{Orders: orders("a", "a")}, 1},
		{"two requests", DoubleSale, []Operation{sold("a", 1, 0, 1), sold("b", 1, 2, 3)}, Rest{Orders: orders("a", "b")}, 0},
		{"logs without request ids", DoubleSale, []Operation{sold("", 1, 0, 1), sold("", 1, 2, 3)}, Rest{}, 0},

		{"sold without an order", OrderMismatch, []Operation{sold("a", 1, 0, 1)}, Rest{Orders: orders()}, 1},
		{"an order without a sale", OrderMismatch, nil, Rest{Orders: orders("a")}, 1},
		{"the wrong buyer's order", OrderMismatch, []Operation{sold("a", 1, 0, 1)}, Rest{Orders: orders("b")}, 2},
		{"an order for each sale", OrderMismatch, []Operation{sold("a", 1, 0, 1)}, Rest{Orders: orders("a")}, 0},

		{"units left for the busy", Unsold, []Operation{answered(Busy, "a", 1, 0, 1)}, Rest{Counter: units(3)}, 1},
		{"units left that nobody was refused", Unsold, []Operation{answered(SoldOut, "a", 4, 0, 1)}, Rest{Counter: units(3)}, 0},
		{"nothing left", Unsold, []Operation{answered(Busy, "a", 1, 0, 1)}, Rest{Counter: units(0)}, 0},

		{"a probe is answered busy", Stuck, nil, Rest{Probe: probe(Busy)}, 1},
		{"a probe is answered sold-out", Stuck, nil, Rest{Probe: probe(SoldOut)}, 0},
	} {
		t.Run(string(c.law)+": "+c.name, func(t *testing.T) {
			f := finding(t, c.law, c.ops, c.rest)
			require.True(t, f.Evaluated)
			require.Equal(t, c.amount, f.Amount)
			require.Equal(t, c.amount != 0, f.Broken)
		})
	}
}

func finding(t *testing.T, law Property, ops []Operation, rest Rest) Finding {
	t.Helper()
	for _, f := range Laws(ops, rest) {
		if f.Property == law {
			return f
		}
	}
	t.Fatalf("no law for %s", law)
	return Finding{}
}

func TestWhatWasNotObservedIsNotEvaluatedAndSaysWhy(t *testing.T) {
	for _, law := range []Property{NegativeTransient, NegativePermanent, LostUnits, PhantomUnits, DoubleDeduct, OrderMismatch, Unsold, Stuck} {
		f := finding(t, law, nil, Rest{Initial: 1})
		require.False(t, f.Evaluated, law)
		require.False(t, f.Broken, law)
		require.NotEmpty(t, f.Detail, law)
	}
}

func TestEveryPropertyButLinearizabilityHasALaw(t *testing.T) {
	var laws []Property
	for _, f := range Laws(nil, Rest{}) {
		laws = append(laws, f.Property)
	}
	for _, p := range Properties() {
		if p.ID != NonLinearizable {
			require.Contains(t, laws, p.ID)
		}
	}
	require.Len(t, laws, len(Properties())-1)
}

func TestASoldOutIsFalseOnlyWhenEnoughUnitsWereThereAllTheTime(t *testing.T) {
	for _, c := range []struct {
		name    string
		initial int64
		ops     []Operation
		falsely int64
	}{
		{"one unit, untouched", 1, []Operation{answered(SoldOut, "x", 1, 10, 20)}, 1},
		{"one unit, two wanted", 1, []Operation{answered(SoldOut, "x", 2, 10, 20)}, 0},
		{"sold before", 1, []Operation{sold("a", 1, 0, 5), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"a sale called at its very return", 1, []Operation{sold("a", 1, 20, 30), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"a sale called after its return", 1, []Operation{sold("a", 1, 21, 30), answered(SoldOut, "x", 1, 10, 20)}, 1},
		{"an unknown sale may have been first", 1, []Operation{answered(Unknown, "a", 1, 0, 0), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"a restock that returned before", 1, []Operation{sold("a", 1, 0, 5), restocked(OK, 1, 6, 9), answered(SoldOut, "x", 1, 10, 20)}, 1},
		{"a restock that returned at its call", 1, []Operation{sold("a", 1, 0, 5), restocked(OK, 1, 6, 10), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"a restock in the middle", 1, []Operation{sold("a", 1, 0, 5), restocked(OK, 1, 6, 15), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"an unknown restock need not be there", 1, []Operation{sold("a", 1, 0, 5), restocked(Unknown, 1, 6, 0), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"low only between a sale and a restock", 1, []Operation{sold("a", 1, 12, 13), restocked(OK, 1, 11, 14), answered(SoldOut, "x", 1, 10, 20)}, 0},
		{"a refused buyer takes nothing", 1, []Operation{answered(SoldOut, "y", 2, 0, 20), answered(SoldOut, "x", 1, 10, 20)}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.falsely, falseSoldOut(c.ops, c.initial).Amount)
		})
	}
}

// An answer the law calls false can have no linearization, so it may never
// accuse a history that has one.
func TestFalseSoldOutNeverAccusesALinearizableHistory(t *testing.T) {
	accused := 0
	for i := range uint64(8000) {
		initial, ops := randomHistory(seeded(i), int64(1+i%3))
		if falseSoldOut(ops, initial).Broken {
			accused++
			require.False(t, bruteForce(initial, ops), "%v from %d", ops, initial)
		}
	}
	require.Greater(t, accused, 100, "the law must have been put to the test")
}

func TestSettlingTurnsADoubtIntoASaleOrDropsIt(t *testing.T) {
	ops := []Operation{
		sold("a", 1, 0, 1), answered(Unknown, "b", 1, 2, 0), answered(Unknown, "c", 1, 3, 0), restocked(Unknown, 1, 4, 0),
	}
	settled, decided := Settle(ops, *orders("a", "b"), 99)
	require.Equal(t, 2, decided)
	require.Len(t, settled, 3)
	require.Equal(t, Sold, settled[1].Outcome)
	require.Equal(t, int64(99), settled[1].Return)
	require.False(t, settled[1].Open)
	require.Equal(t, Unknown, settled[2].Outcome, "nothing tells whether a restock was applied")
}

func TestAnOrderProvesOnlyOneOfTwoSubmissions(t *testing.T) {
	twice := []Operation{sold("a", 1, 0, 1), answered(Unknown, "a", 1, 2, 0)}
	settled, _ := Settle(twice, *orders("a"), 99)
	require.Len(t, settled, 1)
}

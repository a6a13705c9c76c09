package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// unsoundWindow looks for a linearizable history of which a window is impossible.
func unsoundWindow(n int, cut func(initial int64, ops []Operation, from, until int64) Window) (found bool, windows int) {
	r := seeded(8)
	for i := range n {
		initial, ops := classes[i%len(classes)].history(r)
		if !bruteForce(initial, ops) {
			continue
		}
		for _, o := range ops {
			for _, x := range ops {
				if !x.Open && x.Return >= o.Call {
					w := cut(initial, ops, o.Call, x.Return)
					windows++
					if Judge(w.Initial, w.Ops, Limits{}).Ruling != Legal {
						return true, windows
					}
				}
			}
		}
	}
	return false, windows
}

func TestAWindowIsImpossibleOnlyIfTheWholeHistoryIs(t *testing.T) {
	found, windows := unsoundWindow(3000, cutWindow)
	require.False(t, found)
	require.Greater(t, windows, 10_000)
	for name, mutant := range map[string]func(initial int64, ops []Operation, from, until int64) Window{
		"asks again for what may have been right before": func(initial int64, ops []Operation, from, until int64) Window {
			w := cutWindow(initial, ops, from, until)
			for _, o := range ops {
				if it, ok := itemOf(o, 0); ok && it.delta == 0 && o.Call < from && o.Return >= from && o.Return <= until {
					o.Call = from
					w.Ops = append(w.Ops, o)
				}
			}
			return w
		},
		"forgets what is pending": func(initial int64, ops []Operation, from, until int64) Window {
			w := cutWindow(initial, ops, from, until)
			kept := w.Ops[:0]
			for _, o := range w.Ops {
				if o.Call > from {
					kept = append(kept, o)
				}
			}
			w.Ops = kept
			return w
		},
		"begins with what was there in the beginning": func(initial int64, ops []Operation, from, until int64) Window {
			w := cutWindow(initial, ops, from, until)
			w.Initial = initial
			return w
		},
	} {
		found, _ := unsoundWindow(3000, mutant)
		require.True(t, found, name)
	}
}

func TestAFalseAnswerInALongHistoryHasAShortImpossibleWindow(t *testing.T) {
	for name, s := range map[string]sale{
		"deducts":            {clients: 16, maxQty: 3, ops: 20_000, initial: 1 << 20, idle: 200},
		"restocks and reads": {clients: 16, maxQty: 1, ops: 20_000, initial: 50, restocks: 0.3, reads: 0.1, idle: 200},
	} {
		t.Run(name, func(t *testing.T) {
			ops := s.history(3)
			at := 15_000
			for ops[at].Outcome != Sold {
				at++
			}
			ops[at] = Operation{Client: ops[at].Client, Op: Read, Outcome: Value, Value: 1 << 30, Call: ops[at].Call, Return: ops[at].Return}
			j := Judge(s.initial, ops, Limits{})
			require.Equal(t, Illegal, j.Ruling)
			require.Equal(t, at, j.Refutation.Op)
			w, ok := WindowOf(s.initial, ops, *j.Refutation, 200)
			require.True(t, ok)
			require.Less(t, len(w.Ops), 100)
			require.Less(t, w.First, at)
			require.GreaterOrEqual(t, w.Last, at)
			require.Equal(t, Illegal, Judge(w.Initial, w.Ops, Limits{}).Ruling)
		})
	}
}

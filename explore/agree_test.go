package explore

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// small are configurations that are quick to search without any reduction.
func small(t testing.TB, f func(name string, cfg Config)) {
	for _, e := range schemes.All() {
		for _, retries := range []string{"off", "default"} {
			for _, wl := range []string{"unit", "mixed", "restock"} {
				for _, kind := range append([]faults.Kind{faults.None}, every...) {
					for _, stock := range []int64{1, 2} {
						cfg := one(t, e.Scheme.Name(), kind, wl, retries)
						cfg.Stock = stock
						f(fmt.Sprintf("%s/%s/%s/%s/%d", e.Scheme.Name(), retries, wl, kind, stock), cfg)
					}
				}
			}
		}
	}
}

// agree says in words where two results differ.
func agree(a, b *Result) string {
	if a.Exhaustive != b.Exhaustive {
		return fmt.Sprintf("exhaustive %v and %v", a.Exhaustive, b.Exhaustive)
	}
	if a.Executions.Cmp(b.Executions) != 0 {
		return fmt.Sprintf("%v and %v executions", a.Executions, b.Executions)
	}
	for _, p := range model.Properties() {
		x, y := a.Verdicts[p.ID], b.Verdicts[p.ID]
		if x.Status != y.Status || x.Amount != y.Amount {
			return fmt.Sprintf("%s: %s %d and %s %d", p.ID, x.Status, x.Amount, y.Status, y.Amount)
		}
		if x.Witness != nil && len(x.Witness.Steps) != len(y.Witness.Steps) {
			return fmt.Sprintf("%s: shortest witness %d and %d steps", p.ID, len(x.Witness.Steps), len(y.Witness.Steps))
		}
	}
	return ""
}

// Symmetry saves states and nothing else: verdicts, amounts, the length of the
// shortest witnesses and the number of executions are the same without it.
func TestSymmetryChangesNothing(t *testing.T) {
	lab := newLab(t)
	var compared, saved atomic.Int64
	t.Run("configuration", func(t *testing.T) {
		small(t, func(name string, cfg Config) {
			if cfg.complete() != nil || !symmetric(cfg) || pointless(cfg.Entry, cfg.Faults[0]) || cfg.Stock != 1 ||
				cfg.Faults[0] == faults.StoreLoses && cfg.Workload.Name == "restock" {
				return // nothing to compare, or large
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				with := search(t, lab, cfg)
				require.True(t, with.Symmetry)
				cfg.NoSymmetry = true
				plain := search(t, lab, cfg)
				require.False(t, plain.Symmetry)
				require.Empty(t, agree(with, plain))
				require.LessOrEqual(t, with.States, plain.States)
				compared.Add(1)
				saved.Add(int64(plain.States - with.States))
			})
		})
	})
	require.Greater(t, compared.Load(), int64(100))
	require.NotZero(t, saved.Load())
	t.Logf("%d configurations, %d states saved", compared.Load(), saved.Load())
}

// The check at the end of each execution says what porcupine says.
func TestLinearizabilityAgreesWithPorcupine(t *testing.T) {
	const seed, histories = 7, 20000
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	verdicts := map[bool]int{}
	for range histories {
		initial := int64(rnd.IntN(4))
		var ops []model.Operation
		for c := range 1 + rnd.IntN(5) {
			o := model.Operation{Client: c, Op: model.Deduct, Qty: 1 + int64(rnd.IntN(2)), Call: int64(rnd.IntN(10))}
			o.Return = o.Call + 1 + int64(rnd.IntN(6))
			switch rnd.IntN(8) {
			case 0:
				o.Op, o.Outcome = model.Restock, model.OK
			case 1:
				o.Op, o.Outcome, o.Open = model.Restock, model.Unknown, true
			case 2:
				o.Outcome, o.Open = model.Unknown, true
			case 3:
				o.Outcome = model.Busy
			case 4:
				o.Op, o.Outcome, o.Value, o.Qty = model.Read, model.Value, int64(rnd.IntN(4)), 0
			case 5:
				o.Outcome = model.SoldOut
			default:
				o.Outcome = model.Sold
			}
			ops = append(ops, o)
		}
		counter := int64(rnd.IntN(5)) - 1
		answers, whole := linearizable(ops, initial, &counter)
		m, list := model.PorcupineModel(initial, ops)
		require.Equal(t, porcupine.CheckOperations(m, list), answers, "initial %d: %v", initial, ops)
		m, list = model.PorcupineModel(initial, model.AtRest(ops, &counter))
		want := porcupine.CheckOperations(m, list)
		verdicts[want]++
		likewise, wholly, decided := linearizableAtAll(ops, initial, &counter)
		require.Equal(t, []bool{answers, whole, true}, []bool{likewise, wholly, decided}, "initial %d, %d at rest: %v", initial, counter, ops)
		require.Equal(t, want, whole, "initial %d, %d at rest: %v", initial, counter, ops)
	}
	require.Greater(t, verdicts[true], histories/10)
	require.Greater(t, verdicts[false], histories/10)
}

// The histories of real searches too, not only random ones.
func TestVerdictsAtRestAgreeWithPorcupine(t *testing.T) {
	lab := newLab(t)
	var checked atomic.Int64
	t.Run("scheme", func(t *testing.T) {
		for _, scheme := range []string{"hincrby", "lua-hash", "naive-set", "lock", "lua-lock", "db-version"} {
			for _, wl := range []string{"unit", "mixed", "restock"} {
				t.Run(scheme+"/"+wl, func(t *testing.T) {
					t.Parallel()
					cfg := Config{Entry: entry(t, scheme), Workload: workload(t, wl), Retries: "default", MaxFaults: 1,
						Faults: without(every, faults.DuplicateRequest, faults.StoreLoses)}
					require.NoError(t, cfg.complete())
					s, err := lab.prepare(cfg, symmetric(cfg))
					require.NoError(t, err)
					require.Empty(t, s.breadthFirst(t.Context()))
					seen := map[string]bool{}
					for _, i := range s.ends {
						x := *s.seen.at(i)
						ops, rest := s.judge.history(&x, s.judge.profile(s.vers[x[0]].at[0]))
						ops = model.AtRest(ops, rest.Counter)
						key := fmt.Sprint(ops)
						if seen[key] {
							continue
						}
						seen[key] = true
						m, list := model.PorcupineModel(rest.Initial, ops)
						_, whole := linearizable(ops[:len(ops)-1], rest.Initial, rest.Counter)
						require.Equal(t, porcupine.CheckOperations(m, list), whole, key)
						checked.Add(1)
					}
				})
			}
		}
	})
	require.Greater(t, checked.Load(), int64(500))
	t.Logf("%d histories", checked.Load())
}

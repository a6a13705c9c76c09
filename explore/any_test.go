package explore

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/explore/counters"
	"stockproof/faults"
	"stockproof/model"
)

// projection is a control state as both kinds of search know it: what the
// stores hold, faults used, and the sums over the clients. Sessions that hold
// no row are a matter of their clients.
func projection(w *world, v versions, used, sold, restocked, maybe int, double bool) string {
	for i := range v.n {
		if m := w.moment(v.at[i]); m.sql.db != nil {
			v.at[i], _ = w.change(v.at[i], func(m moment) moment {
				db := m.sql.db.Clone()
				for _, n := range db.Sessions() {
					db.Detach(n)
				}
				m.sql = sqlState{db}
				return m
			})
		}
	}
	return fmt.Sprint(v.at[:v.n], used, sold, restocked, maybe, double)
}

// listed are the control states that a search with a number of clients reaches.
func listed(t *testing.T, lab *Lab, cfg Config, most int) map[string]bool {
	t.Helper()
	require.NoError(t, cfg.complete())
	s, err := lab.prepare(cfg, true)
	require.NoError(t, err)
	require.Empty(t, s.breadthFirst(t.Context()))
	out := map[string]bool{}
	for i := range s.seen.n {
		x := s.seen.at(i)
		sold, restocked, maybe, double := 0, 0, 0, false
		for c := 2; c < 2+s.clients; c++ {
			l := s.locals[x[c]]
			calls := s.programs[l.who].calls
			for op, call := range calls {
				took, over := l.past[op].taken, op < int(l.op)
				outcome := model.Unknown
				if over {
					outcome = outcomes[l.past[op].outcome-1]
				} else if op == int(l.op) && l.status == crashed && l.begun {
					took, over = l.taken, true
				}
				switch {
				case !over:
				case call.Op == model.Deduct && outcome == model.Sold:
					sold += int(call.Qty)
				case call.Op == model.Restock && outcome == model.OK:
					restocked += int(call.Qty)
				case call.Op == model.Restock && outcome == model.Unknown:
					maybe += int(call.Qty)
				}
				if over && outcome == model.Unknown && !lateOf(l, op) && call.Op == model.Deduct && s.judge.audited && ordered(t, s, s.vers[x[0]].at[0], l, op) {
					sold += int(call.Qty)
				}
				double = double || over && !lateOf(l, op) && call.Op == model.Deduct && int64(took) > call.Qty
			}
		}
		out[projection(s.world, s.vers[x[0]], int(x.used()), min(sold, most), min(restocked, most), min(maybe, most), double)] = true
	}
	return out
}

func lateOf(l local, op int) bool {
	return slices.ContainsFunc(l.late[:], func(d late) bool { return d.cmd != 0 && int(d.op) == op })
}

func ordered(t *testing.T, s *searcher, at int32, l local, op int) bool {
	t.Helper()
	_, r, err := s.world.alone(at, orders, 0, prober)
	require.NoError(t, err)
	request := fmt.Sprintf("%s.%d", slotToken(int(max(l.slots[0], 0))), op+1)
	return l.slots[0] >= 0 && slices.ContainsFunc(decodeOrders(r.orders), func(o model.Order) bool { return o.Request == request })
}

// counted are the control states that counting clients reaches: with a number
// of clients, or, for 0, with any.
func counted(t *testing.T, lab *Lab, cfg Config, clients int) (out map[string]bool, most int, finite bool) {
	t.Helper()
	every := AnyConfig{Config: cfg, MostStates: anyStates}
	every.Clients = len(cfg.Workload.Clients)
	require.NoError(t, every.complete())
	x := newAlike()
	for same := false; !same; x.again() {
		s, start, err := lab.anySystem(every, clients, x)
		require.NoError(t, err)
		caps := uint8(0)
		if clients > 0 {
			caps = counters.MaxCap
		}
		out = map[string]bool{}
		look := func(control uint32, _ []counters.Place) error {
			c := s.controls[control]
			out[projection(s.world, s.vers[c.h], int(c.used), int(c.sold), int(c.restocked), int(c.maybe), c.double)] = true
			if s.verInfos[c.h].counter.value < -strayed {
				return errEndless
			}
			return nil
		}
		st := counters.Search(context.Background(), s, start, caps, counters.Limits{States: anyStates}, look)
		most, finite = int(s.most), st.Why == ""
		same, err = x.confirm()
		require.NoError(t, err)
	}
	return out, most, finite
}

// counterSales are small configurations of every sort: with and without names in the
// store, time, messages, late commands, a store that forgets, a restock.
var counterSales = []struct {
	scheme string
	fault  faults.Kind
	wl     string
	most   int // clients searched one by one
}{
	{"lua-hash", faults.ClientCrash, "unit", 5},
	{"lua-hash", faults.RequestDelayed, "mixed", 4},
	{"lua-hash", faults.ScriptFlush, "restock", 3},
	{"lua-string", faults.StoreLoses, "unit", 4},
	{"naive-set", faults.ReplyLost, "unit", 4},
	{"naive-set", faults.ClientPause, "mixed", 3},
	{"hincrby", faults.ReplyLost, "unit", 4},
	{"lock", faults.None, "unit", 4},
	{"lock", faults.ClientCrash, "unit", 3},
	{"lock", faults.ClientPause, "unit", 3},
	{"lock-set", faults.RequestDelayed, "unit", 3},
	{"lock-watchdog", faults.ClientCrash, "unit", 2},
	{"lock", faults.StoreLoses, "unit", 2},
	{"lua-lock", faults.ClientCrash, "unit", 2},
	{"lua-lock", faults.RequestDelayed, "unit", 2},
	{"db-version", faults.None, "mixed", 3},
	{"db-version", faults.ClientCrash, "unit", 3},
	{"db-version", faults.RequestDelayed, "unit", 3},
	{"db-version", faults.ClientPause, "restock", 3},
	{"db-version", faults.CommitReplyLost, "unit", 3},
}

func TestCountingClientsReachesTheControlStatesThatListingThemReaches(t *testing.T) {
	lab := newLab(t)
	for _, sale := range counterSales {
		t.Run(fmt.Sprint(sale), func(t *testing.T) {
			cfg := one(t, sale.scheme, sale.fault, sale.wl, "off")
			all, most, finite := counted(t, lab, cfg, 0)
			for n := 1; n <= sale.most; n++ {
				cfg.Clients = n
				want := listed(t, lab, cfg, most)
				got, _, _ := counted(t, lab, cfg, n)
				require.Equal(t, want, got, "%d clients", n)
				for c := range want {
					require.True(t, !finite || all[c], "%s is reached with %d clients", c, n)
				}
			}
		})
	}
}

// A control state that counting reaches and no number of clients does would
// make a verdict inconclusive that could be decided.
func TestWithAnyNumberOfClientsNothingIsReachedThatAFewDoNotReach(t *testing.T) {
	lab := newLab(t)
	for _, sale := range []struct {
		scheme string
		fault  faults.Kind
		few    int
	}{
		{"lua-hash", faults.ClientCrash, 3}, {"lua-string", faults.StoreLoses, 3}, {"lua-hash", faults.RequestDelayed, 3},
		{"lock", faults.None, 3}, {"lock", faults.ClientCrash, 4}, {"lock", faults.RequestLost, 4},
	} {
		cfg := one(t, sale.scheme, sale.fault, "unit", "off")
		all, most, finite := counted(t, lab, cfg, 0)
		require.True(t, finite)
		union := map[string]bool{}
		for n := 1; n <= sale.few; n++ {
			cfg.Clients = n
			for c := range listed(t, lab, cfg, most) {
				union[c] = true
			}
		}
		require.Equal(t, union, all, "%s %s", sale.scheme, sale.fault)
	}
}

func TestACounterSystemBrokenOnPurposeReachesOtherControlStates(t *testing.T) {
	lab := newLab(t)
	for _, c := range []struct {
		mutant mutant
		scheme string
		fault  faults.Kind
	}{
		{pauseForgotten, "lock", faults.ClientPause},
		{delayForgotten, "lua-hash", faults.RequestDelayed},
		{jumpTooEarly, "lock", faults.None},
		{crashBefore, "lua-hash", faults.ClientCrash},
		{lossKept, "lua-string", faults.StoreLoses},
	} {
		cfg := one(t, c.scheme, c.fault, "unit", "off")
		cfg.Clients = 2
		got, most, _ := counted(t, lab, cfg, 2)
		want := listed(t, lab, cfg, most)
		require.Equal(t, want, got)
		cfg.mutant = c.mutant
		broken, _, _ := counted(t, lab, cfg, 2)
		require.NotEqual(t, want, broken, "mutant %d was not noticed", c.mutant)
	}
}

func TestAVerdictForAnyNumberOfClientsAgreesWithBoundedOnes(t *testing.T) {
	lab := newLab(t)
	conclusive := map[Status]int{}
	for _, scheme := range []string{"hincrby", "lua-hash", "naive", "naive-set", "lock", "lock-set", "lua-lock", "db-version"} {
		for _, fault := range append([]faults.Kind{faults.None}, every...) {
			cfg := one(t, scheme, fault, "unit", "off")
			all, err := lab.RunAny(t.Context(), AnyConfig{Config: cfg, MostStates: 20_000})
			require.NoError(t, err)
			cfg.Clients = 2
			bounded := search(t, lab, cfg)
			for _, p := range AnyProperties() {
				v := all.Verdicts[p]
				conclusive[v.Status]++
				where := fmt.Sprintf("%s %s %s: %s", scheme, fault, p, v.Detail)
				if bounded.Verdicts[p].Status == Violated {
					require.Equal(t, Violated, v.Status, where)
				}
				switch v.Status {
				case Violated:
					require.NotNil(t, v.Witness, where)
					first := slices.DeleteFunc(slices.Clone(v.Witness.Clients), func(c WitnessClient) bool { return c.Resubmits != "" })
					require.Len(t, first, v.Clients, where)
					require.True(t, slices.ContainsFunc(v.Witness.Broken, func(f model.Finding) bool { return f.Property == p }), where)
					require.Equal(t, v.Clients <= 2, bounded.Verdicts[p].Status == Violated, where)
				case Holds:
					require.True(t, all.Finite, where)
				default:
					require.NotEmpty(t, v.Detail, where)
				}
			}
		}
	}
	require.Greater(t, conclusive[Holds], 100)
	require.Greater(t, conclusive[Violated], 70)
}

func TestALockThatIsNeverOverrunIsProvedForAnyNumberOfClients(t *testing.T) {
	lab := newLab(t)
	for _, c := range []struct {
		kinds     []faults.Kind
		most      int
		unbounded bool
	}{
		{nil, 0, false},
		{[]faults.Kind{faults.ClientCrash}, 2, false},
		{[]faults.Kind{faults.ClientCrash}, 0, true},
		{[]faults.Kind{faults.ClientCrash, faults.RequestLost, faults.ReplyLost}, 0, true},
	} {
		cfg := one(t, "lock", faults.None, "unit", "off")
		cfg.Faults, cfg.MaxFaults = c.kinds, c.most
		r, err := lab.RunAny(t.Context(), AnyConfig{Config: cfg, Unbounded: c.unbounded})
		require.NoError(t, err)
		require.True(t, r.Finite, r.Why)
		for _, p := range AnyProperties() {
			require.Equal(t, Holds, r.Verdicts[p].Status, "%v %s: %s", c, p, r.Verdicts[p].Detail)
		}
	}
}

func TestAStoreThatIsNotFiniteIsSaidToBeSo(t *testing.T) {
	r, err := newLab(t).RunAny(t.Context(), AnyConfig{Config: one(t, "hincrby", faults.None, "unit", "off")})
	require.NoError(t, err)
	require.False(t, r.Finite)
	require.Equal(t, Violated, r.Verdicts[model.NegativeTransient].Status)
	require.Equal(t, Inconclusive, r.Verdicts[model.Oversell].Status)
	require.Contains(t, r.Verdicts[model.Oversell].Detail, "the store is not finite")
}

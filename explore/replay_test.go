package explore

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// walk goes one random way from the first state to rest and tells it.
func (s *searcher) walk(rnd *rand.Rand) *Witness {
	w, c, x := s.newWitness(), s.newCasting(), s.initial
	for {
		next := s.successors(&x, nil)
		if s.atRest(&x) && (len(next) == 0 || rnd.IntN(2) == 0) {
			s.conclude(w, c, x)
			return w
		}
		n := next[rnd.IntN(len(next))]
		w.Steps = append(w.Steps, s.say(c, &x, &n))
		x = n.state
		c.sort(&x)
	}
}

// Random executions of the automaton are compared, step by step, with the
// scheme's code run afresh: all clients together under one clock, every
// command asked of the engine anew.
func TestRandomExecutionsAreThoseOfFreshlyRunCode(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	const perCell, seed = 12, 20261130
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, e := range schemes.All() {
		for _, retries := range []string{"off", "default"} {
			for _, wl := range []string{"unit", "mixed", "restock"} {
				t.Run(fmt.Sprintf("%s/%s/%s", e.Scheme.Name(), retries, wl), func(t *testing.T) {
					cfg := Config{Entry: e, Workload: workload(t, wl), Retries: retries, Faults: every, MaxFaults: 2}
					require.NoError(t, cfg.complete())
					for _, symmetry := range []bool{true, false} {
						if symmetry {
							cfg.Faults = without(every, faults.DuplicateRequest)
						} else {
							cfg.Faults = every
						}
						s, err := lab.prepare(cfg, symmetry && symmetric(cfg))
						require.NoError(t, err)
						for range perCell {
							w := s.walk(rnd)
							require.NoError(t, Replay(e, w, engine), "\n%s", w.Timeline())
						}
					}
				})
			}
		}
	}
}

func without(list []faults.Kind, drop ...faults.Kind) []faults.Kind {
	var out []faults.Kind
	for _, k := range list {
		keep := true
		for _, d := range drop {
			keep = keep && k != d
		}
		if keep {
			out = append(out, k)
		}
	}
	return out
}

// Every witness is replayed the same way.
func TestWitnessesReplay(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	for _, e := range schemes.All() {
		for _, k := range every {
			cfg := one(t, e.Scheme.Name(), k, "mixed", "default")
			for p, v := range search(t, lab, cfg).Verdicts {
				if v.Witness != nil {
					require.NoError(t, Replay(e, v.Witness, engine), "%s\n%s", p, v.Witness.Timeline())
				}
			}
		}
	}
}

// A replay that cannot fail proves nothing: each thing it compares is changed
// in turn.
func TestAReplayNoticesEveryChange(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	r := search(t, lab, one(t, "lock", faults.ClientPause, "unit", "off"))
	good := r.Verdicts[model.Oversell].Witness
	require.NoError(t, Replay(entry(t, "lock"), good, engine))
	for name, change := range map[string]func(w *Witness){
		"a command":       func(w *Witness) { w.Steps[0].Command = []string{"GET", "x"} },
		"a reply":         func(w *Witness) { w.Steps[0].Reply = ":1\r\n" },
		"a step less":     func(w *Witness) { w.Steps = w.Steps[1:] },
		"a wait less":     func(w *Witness) { w.Steps = dropKind(w.Steps, StepWait) },
		"a counter":       func(w *Witness) { n := int64(7); w.Steps[len(w.Steps)-1].Counter = &n },
		"an answer":       func(w *Witness) { w.Outcomes[0].Outcome = model.SoldOut },
		"an early answer": func(w *Witness) { w.Steps[0].Returned = []string{"a.1=sold"} },
		"another stock":   func(w *Witness) { w.Stock = 5 },
		"another client":  func(w *Witness) { w.Steps[0].Client = "z" },
		"another scheme":  func(w *Witness) {},
	} {
		bad := *good
		bad.Steps = append([]WitnessStep(nil), good.Steps...)
		bad.Outcomes = append([]WitnessOutcome(nil), good.Outcomes...)
		change(&bad)
		e := entry(t, "lock")
		if name == "another scheme" {
			e = entry(t, "hincrby")
		}
		var diverged *DivergenceError
		err := Replay(e, &bad, engine)
		require.ErrorAs(t, err, &diverged, name)
	}
}

func dropKind(steps []WitnessStep, k StepKind) []WitnessStep {
	var out []WitnessStep
	for _, s := range steps {
		if s.Kind != k {
			out = append(out, s)
		}
	}
	return out
}

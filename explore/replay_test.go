package explore

import (
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
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
	t.Cleanup(func() { engine.Close() }) // after the parallel subtests
	const perCell, ofTheWider, seed = 12, 4, 20261130
	t.Logf("seed %d", seed)
	for _, e := range schemes.All() {
		for _, retries := range []string{"off", "default"} {
			for _, wl := range []string{"unit", "mixed", "restock"} {
				name := fmt.Sprintf("%s/%s/%s", e.Scheme.Name(), retries, wl)
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					digest := fnv.New64a()
					digest.Write([]byte(name))
					rnd := rand.New(rand.NewPCG(seed, digest.Sum64()))
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
						n := perCell
						if e.Wider {
							n = ofTheWider
						}
						for range n {
							w := s.walk(rnd)
							require.NoError(t, Replay(e, reread(t, w), engine), "\n%s", w.Timeline())
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
	t.Run("configuration", func(t *testing.T) {
		for _, e := range schemes.All() {
			for _, k := range every {
				if pointless(e, k) {
					continue
				}
				t.Run(e.Scheme.Name()+"/"+string(k), func(t *testing.T) {
					t.Parallel()
					cfg := one(t, e.Scheme.Name(), k, "mixed", "default")
					if e.Wider {
						cfg.Clients = 2
					}
					for p, v := range search(t, lab, cfg).Verdicts {
						if v.Witness != nil {
							require.NoError(t, Replay(e, reread(t, v.Witness), engine), "%s\n%s", p, v.Witness.Timeline())
						}
					}
				})
			}
		}
	})
}

// reread is a witness after it was a text.
func reread(t *testing.T, w *Witness) *schedule.Schedule {
	s := w.Schedule()
	read, err := schedule.Parse(strings.NewReader(s.String()), "witness")
	require.NoError(t, err, "\n%s", s)
	require.Equal(t, s.String(), read.String())
	return read
}

// A replay that cannot fail proves nothing: each thing it compares is changed
// in turn, and it names the line.
func TestAReplayNoticesEveryChange(t *testing.T) {
	lab := newLab(t)
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	r := search(t, lab, one(t, "lock", faults.ClientPause, "unit", "off"))
	text := r.Verdicts[model.Oversell].Witness.Timeline()
	t.Logf("\n%s", text)
	lines := strings.Split(text, "\n")
	at := func(part string) int {
		i := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, part) })
		require.GreaterOrEqual(t, i, 0, part)
		return i
	}
	steps := at("---") + 1
	for _, c := range []struct {
		name     string
		from, to string // in the line
		line     int    // from 0
	}{
		{"a command", "EVALSHA lock-acquire lock:1001 300 a:1", "GET x", steps},
		{"an argument", "300 a:1", "301 a:1", steps},
		{"a reply", "=> nil", "=> 1", steps},
		{"the kind of a reply", "=> nil", `=> "nil"`, steps},
		{"a client", "b  EVALSHA", "c  EVALSHA", at("b  EVALSHA")},
		{"a counter", "stock -1", "stock -2", at("stock -1")},
		{"a counter that did not change", "=> nil", "=> nil  ; stock 0", steps},
		{"an answer", "a=sold", "a=sold-out", at("; a=sold")},
		{"an answer too early", "=> nil", "=> nil  ; a=sold", steps},
		{"somebody woken", "=> nil", "=> nil  ; wakes b", steps},
		{"an outcome", "a=sold", "a=busy", at("outcome")},
		{"an outcome less", "a=sold ", "", at("outcome")},
		{"the final stock", "-1", "0", at("stock    -1")},
		{"a law", "oversell=1 ", "", at("violates")},
		{"an amount", "oversell=1", "oversell=2", at("violates")},
		{"orders", "violates", "orders   none\nviolates", at("violates")},
	} {
		bad := slices.Clone(lines)
		bad[c.line] = strings.Replace(bad[c.line], c.from, c.to, 1)
		require.NotEqual(t, lines[c.line], bad[c.line], c.name)
		requireRefused(t, engine, strings.Join(bad, "\n"), c.line+1, c.name)
	}
	// Lines that change places, one that is missing, another sale.
	for i := steps; lines[i+1] != "---"; i++ {
		if client := lines[i][:1]; client != lines[i+1][:1] && lines[i][0] != ' ' && lines[i+1][0] != ' ' {
			continue // two clients' steps may come to the same
		}
		bad := slices.Clone(lines)
		bad[i], bad[i+1] = bad[i+1], bad[i]
		requireRefused(t, engine, strings.Join(bad, "\n"), 0, lines[i])
	}
	for i := steps; lines[i] != "---"; i++ {
		requireRefused(t, engine, strings.Join(slices.Delete(slices.Clone(lines), i, i+1), "\n"), 0, lines[i])
	}
	requireRefused(t, engine, strings.Replace(text, "goods:1001 1", "goods:1001 5", 1), 0, "another stock")
	requireRefused(t, engine, strings.Replace(text, "lease=300ms", "lease=200ms", 1), steps+1, "another lease")
	other, err := schedule.Parse(strings.NewReader(text), "other")
	require.NoError(t, err)
	var diverged *schedule.DivergenceError
	require.ErrorAs(t, Replay(entry(t, "hincrby"), other, engine), &diverged)
	require.Equal(t, steps+1, diverged.Line)
}

// requireRefused wants a text to be refused, by the parser or by the replay, at
// a line from 1; 0 is any line.
func requireRefused(t *testing.T, engine redisstore.Engine, text string, line int, what string) {
	t.Helper()
	s, err := schedule.Parse(strings.NewReader(text), "bad")
	var bad *schedule.LineError
	if errors.As(err, &bad) {
		if line > 0 {
			require.Equal(t, line, bad.Line, "%s: %v", what, err)
		}
		return
	}
	require.NoError(t, err, what)
	var diverged *schedule.DivergenceError
	require.ErrorAs(t, Replay(entry(t, "lock"), s, engine), &diverged, "%s\n%s", what, text)
	if line > 0 {
		require.Equal(t, line, diverged.Line, "%s: %v", what, diverged)
	}
}

package counters

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// random is a small system: rules, some of which change everybody else, and
// some of which ask that nobody be in a local state.
type random struct {
	rules  []Rule
	absent map[int]uint32 // by rule: who must not be there
	locals []uint32
}

const (
	newcomer = 1 // the local state of who has not come
	locals   = 4
	controls = 4
)

func newRandom(r *rand.Rand, withAbsence bool) *random {
	s := &random{absent: map[int]uint32{}}
	for l := range locals {
		s.locals = append(s.locals, uint32(l+1))
	}
	for i := range 6 + r.Intn(8) {
		from := r.Intn(controls)
		rule := Rule{From: uint32(from), Move: Move{
			Control: uint32(min(from+r.Intn(2), controls-1)), Actor: uint32(1 + r.Intn(locals)), Become: uint32(r.Intn(locals + 1))}}
		if i == 0 { // somebody comes
			rule.From, rule.Control, rule.Actor = 0, 0, newcomer
		}
		if rule.Become == newcomer {
			rule.Become = 2
		}
		if r.Intn(4) == 0 {
			a, b := uint32(2+r.Intn(locals-1)), uint32(r.Intn(locals+1))
			if b == newcomer {
				b = 2
			}
			rule.Others = func(l uint32) uint32 {
				if l == a {
					return b
				}
				return l
			}
		}
		if withAbsence && r.Intn(3) == 0 {
			s.absent[len(s.rules)] = uint32(2 + r.Intn(locals-1))
			rule.Absent = true
		}
		s.rules = append(s.rules, rule)
	}
	return s
}

func (s *random) Moves(control uint32, present []uint32) (out []Move) {
	for i, r := range s.rules {
		if l := s.absent[i]; r.From == control && slices.Contains(present, r.Actor) && (l == 0 || !slices.Contains(present, l)) {
			out = append(out, r.Move)
		}
	}
	return out
}

// brute lists the states that n clients reach, each client on its own.
func (s *random) brute(n int) map[string]uint32 {
	type state struct {
		control uint32
		clients []uint32
	}
	first := state{0, slices.Repeat([]uint32{newcomer}, n)}
	seen := map[string]uint32{fmt.Sprint(first): 0}
	for queue := []state{first}; len(queue) > 0; {
		x := queue[0]
		queue = queue[1:]
		for i, r := range s.rules {
			if r.From != x.control || s.absent[i] != 0 && slices.Contains(x.clients, s.absent[i]) {
				continue
			}
			for c, l := range x.clients {
				if l != r.Actor {
					continue
				}
				y := state{r.Control, slices.Clone(x.clients)}
				for o := range y.clients {
					if o != c && r.Others != nil && y.clients[o] != 0 {
						y.clients[o] = r.Others(y.clients[o])
					}
				}
				y.clients[c] = r.Become
				slices.Sort(y.clients)
				if _, ok := seen[fmt.Sprint(y)]; !ok {
					seen[fmt.Sprint(y)] = y.control
					queue = append(queue, y)
				}
			}
		}
	}
	return seen
}

func reached(states map[string]uint32) map[uint32]bool {
	out := map[uint32]bool{}
	for _, c := range states {
		out[c] = true
	}
	return out
}

func controlsOf(t *testing.T, s System, start Start, most uint8) (map[uint32]bool, Stats) {
	t.Helper()
	out := map[uint32]bool{}
	st := Search(t.Context(), s, start, most, Limits{States: 100_000}, func(c uint32, _ []Place) error {
		out[c] = true
		return nil
	})
	require.Empty(t, st.Why)
	return out, st
}

const systems = 300

func TestCountingANumberOfClientsOneByOneVisitsExactlyWhatTheyReach(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range systems {
		s := newRandom(r, true)
		for n := 1; n <= 4; n++ {
			got, st := controlsOf(t, s, Start{Marking: []Place{{newcomer, uint8(n)}}}, MaxCap)
			states := s.brute(n)
			require.Equal(t, reached(states), got)
			require.EqualValues(t, len(states), st.States)
		}
	}
}

// missed compares counting with brute force. It says what was missed first, and
// how often counting saw more than five clients reach, and how often not.
func missed(t *testing.T, m mutant) (what string, coarse, fine int) {
	r := rand.New(rand.NewSource(2))
	for range systems {
		s := newRandom(r, true)
		want := map[uint32]bool{}
		for n := 1; n <= 5; n++ {
			for c := range reached(s.brute(n)) {
				want[c] = true
			}
		}
		for most := uint8(0); most <= 2; most++ {
			got, _ := controlsOf(t, s, Start{Supply: []uint32{newcomer}, mutant: m}, most)
			for c := range want {
				if !got[c] && what == "" {
					what = fmt.Sprintf("control %d with cap %d", c, most)
				}
			}
			if len(got) > len(want) {
				coarse++
			} else {
				fine++
			}
		}
	}
	return what, coarse, fine
}

func TestNothingThatSomeNumberOfClientsReachesIsMissed(t *testing.T) {
	what, coarse, fine := missed(t, sound)
	require.Empty(t, what)
	// Where it saw more, five clients may also be too few.
	require.Greater(t, fine, 8*coarse, "%d and %d", fine, coarse)
}

func TestASearchThatForgetsWhatOthersBecomeMissesSomething(t *testing.T) {
	what, _, _ := missed(t, othersForgotten)
	require.NotEmpty(t, what)
}

// The last move needs local state 2 to be empty again.
func TestOfManyClientsOneMayBeTheLast(t *testing.T) {
	s := &random{absent: map[int]uint32{2: 2}, rules: []Rule{{0, Move{Control: 1, Actor: 1, Become: 2}},
		{1, Move{Control: 2, Actor: 2, Become: 3}}, {2, Move{Control: 3, Actor: 3, Absent: true}}}}
	got, st := controlsOf(t, s, Start{Supply: []uint32{1}}, 0)
	require.True(t, got[3])
	require.True(t, st.Absent)
	got, _ = controlsOf(t, s, Start{Supply: []uint32{1}, mutant: manyStayMany}, 0)
	require.False(t, got[3], "the broken search")
}

func TestGoingBackwardFindsTheSmallestNumberOfClients(t *testing.T) {
	r := rand.New(rand.NewSource(3))
	covered, never := 0, 0
	for range systems {
		s := newRandom(r, false)
		start := Start{Supply: []uint32{newcomer}}
		above, _ := controlsOf(t, s, start, 1)
		for target := uint32(1); target < controls; target++ {
			n, err := Cover(s.rules, s.locals, start, []uint32{target}, 10_000)
			require.NoError(t, err)
			least := -1
			for k := 1; k <= 6 && least < 0; k++ {
				if reached(s.brute(k))[target] {
					least = k
				}
			}
			if n > 6 {
				require.Equal(t, -1, least)
				continue
			}
			require.Equal(t, least, n, "target %d", target)
			if n < 0 {
				never++
			} else {
				covered++
				require.True(t, above[target], "what is covered is also seen by counting")
			}
		}
	}
	require.Greater(t, covered, 50)
	require.Greater(t, never, 50)
}

func TestGoingBackwardRefusesAMoveThatAsksForAbsence(t *testing.T) {
	_, err := Cover([]Rule{{0, Move{Control: 1, Actor: 1, Absent: true}}}, []uint32{1}, Start{Supply: []uint32{1}}, []uint32{1}, 10)
	require.ErrorIs(t, err, ErrAbsent)
}

// counter lets newcomers pile up in local state 2; the control changes when
// three are there, one after the other.
func pile(three bool) []Rule {
	rules := []Rule{{0, Move{Control: 0, Actor: 1, Become: 2}}, {0, Move{Control: 1, Actor: 2}}, {1, Move{Control: 2, Actor: 2}}}
	if three {
		rules = append(rules, Rule{2, Move{Control: 3, Actor: 2}})
	}
	return rules
}

func TestTheNumberOfClientsNeededIsCounted(t *testing.T) {
	n, err := Cover(pile(true), []uint32{1, 2}, Start{Supply: []uint32{1}}, []uint32{3}, 100)
	require.NoError(t, err)
	require.Equal(t, 3, n)
	n, err = Cover(pile(true), []uint32{1, 2}, Start{Marking: []Place{{1, 2}}}, []uint32{3}, 100)
	require.NoError(t, err)
	require.Equal(t, -1, n)
	n, err = Cover(pile(false), []uint32{1, 2}, Start{Supply: []uint32{1}}, []uint32{3}, 100)
	require.NoError(t, err)
	require.Equal(t, -1, n)
}

func TestASearchThatIsStoppedSaysWhy(t *testing.T) {
	s := &random{rules: pile(true), absent: map[int]uint32{}}
	start := Start{Supply: []uint32{1}}
	enough := errors.New("enough")
	st := Search(t.Context(), s, start, 1, Limits{States: 100}, func(uint32, []Place) error { return enough })
	require.ErrorIs(t, st.Err, enough)
	require.Equal(t, "enough", st.Why)
	none := func(uint32, []Place) error { return nil }
	require.Equal(t, "more than 1 states", Search(t.Context(), s, start, 1, Limits{States: 1}, none).Why)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	require.Contains(t, Search(ctx, s, start, 1, Limits{States: 100}, none).Why, "stopped: enough")
}

func TestWhatIsCountedExactlyIsNeverTakenForMany(t *testing.T) {
	s := &random{rules: pile(true), absent: map[int]uint32{}}
	start := Start{Marking: []Place{{1, 2}}}
	got, _ := controlsOf(t, s, start, 0)
	require.True(t, got[3], "two clients, taken for many")
	start.Exact = func(uint32) bool { return true }
	got, _ = controlsOf(t, s, start, 0)
	require.False(t, got[3], "two clients")
	start.mutant = tooManyExact
	got, _ = controlsOf(t, s, start, 0)
	require.True(t, got[3], "the broken search")
}

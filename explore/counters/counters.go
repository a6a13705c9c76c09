// Package counters decides safety of systems of any number of interchangeable
// clients: a finite control part and, for each local state, how many clients
// are in it. It knows nothing of stores and schemes.
//
// Search covers every number of clients at once by counting up to a cap and
// saying "many" from there on. It may see too much and never too little, also
// where a move asks that nobody be in some local state. Cover decides exactly,
// by going backward, where no move asks that.
package counters

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
)

// Many is the count of a place that holds more clients than the cap.
const Many = 255

// MaxCap is the largest cap.
const MaxCap = Many - 1

// Place is a local state and how many clients are in it. A marking is a list
// of places in the order of their locals, without empty ones.
type Place struct {
	Local uint32 // never 0
	Count uint8  // 1 … cap, or Many, which is more than that
}

// Move is one thing that can happen.
type Move struct {
	Control uint32 // afterwards
	Actor   uint32 // local state of the client that acts, 0 for none
	Become  uint32 // what it becomes, 0 when it is gone
	// Others says what every other client becomes at the same time, 0 when it is
	// gone; nil when they notice nothing.
	Others func(local uint32) uint32
	// Absent says that the move asked that nobody be in some local states: it
	// may not be possible with more clients.
	Absent bool
}

// System is what is searched. Moves lists what can happen when exactly the
// local states in present have clients in them; it must not depend on anything
// else, and must not keep present.
type System interface {
	Moves(control uint32, present []uint32) []Move
}

// Start is where a search begins.
type Start struct {
	Control uint32
	Marking []Place
	// Supply are places that are never emptied: as many clients as one likes
	// leave them. They are part of every marking, and not written in it.
	Supply []uint32
	// Exact says of a local state that its clients are counted one by one,
	// whatever the cap: only few can be in it, as when the control part knows
	// them by name. nil for none.
	Exact func(local uint32) bool

	mutant mutant
}

// mutant breaks a search on purpose, to show that the tests notice.
type mutant uint8

const (
	sound           mutant = iota
	manyStayMany           // of many clients one never is the last
	othersForgotten        // a move changes its actor only
	tooManyExact           // two clients of an exact place count as many
)

// Limits of a search. Running into one leaves it incomplete.
type Limits struct {
	States int // markings with their control that may be kept
}

// Stats of a search.
type Stats struct {
	States, Moves uint64
	Absent        bool   // some move asked for absence
	Err           error  // what visit answered
	Why           string // not empty: incomplete
}

// search is one run of Search.
type search struct {
	sys    System
	cap    uint8
	supply []uint32
	exact  func(uint32) bool
	mutant mutant
	seen   map[string]struct{}
	queue  []string // states not yet looked at, oldest first
	key    []byte
	places []Place
}

// checkEvery is the number of states between two looks at the context.
const checkEvery = 1 << 10

// Search visits every state that any number of clients can reach, counting up
// to cap; with cap 0 only whether there are any. visit may stop it by an error, which Search answers as
// the reason why it is incomplete.
//
// Every run of the system with some number of clients is matched, state by
// state, by one that Search visits: the same control, and counts that are equal
// up to cap and Many above.
func Search(ctx context.Context, sys System, start Start, cap uint8, limits Limits, visit func(control uint32, marking []Place) error) Stats {
	s := &search{sys: sys, cap: cap, supply: start.Supply, exact: start.Exact, mutant: start.mutant, seen: map[string]struct{}{}}
	var st Stats
	s.add(start.Control, slices.Clone(start.Marking))
	var present []uint32
	var marking []Place
	for len(s.queue) > 0 {
		if st.States%checkEvery == 0 && ctx.Err() != nil {
			st.Why = fmt.Sprintf("stopped: %v", context.Cause(ctx))
			break
		}
		if len(s.seen) > limits.States {
			st.Why = fmt.Sprintf("more than %d states", limits.States)
			break
		}
		at := s.queue[0]
		s.queue = s.queue[1:]
		var control uint32
		control, marking = decode(at, marking[:0])
		st.States++
		if err := visit(control, marking); err != nil {
			st.Err, st.Why = err, err.Error()
			break
		}
		present = append(present[:0], s.supply...)
		for _, p := range marking {
			present = append(present, p.Local)
		}
		for _, m := range sys.Moves(control, present) {
			st.Moves++
			st.Absent = st.Absent || m.Absent
			s.apply(marking, m)
		}
	}
	return st
}

// apply adds what a move leads to: one state, or two when it is not known
// whether many are left.
func (s *search) apply(from []Place, m Move) {
	if m.Actor == 0 || slices.Contains(s.supply, m.Actor) {
		s.land(from, m, -1, 0)
		return
	}
	i := slices.IndexFunc(from, func(p Place) bool { return p.Local == m.Actor })
	if i < 0 {
		panic(fmt.Sprintf("counters: nobody is in local state %d", m.Actor))
	}
	if from[i].Count == Many {
		s.land(from, m, i, Many)
		if s.mutant != manyStayMany {
			s.land(from, m, i, s.most(m.Actor))
		}
		return
	}
	s.land(from, m, i, from[i].Count-1)
}

// land is one state after a move, with left clients in place i.
func (s *search) land(from []Place, m Move, i int, left uint8) {
	to := s.places[:0]
	for k, p := range from {
		if k == i {
			p.Count = left
		}
		if m.Others != nil && s.mutant != othersForgotten {
			p.Local = m.Others(p.Local)
		}
		if p.Count > 0 && p.Local != 0 {
			to = append(to, p)
		}
	}
	if m.Become != 0 {
		to = append(to, Place{m.Become, 1})
	}
	s.places = to
	s.add(m.Control, to)
}

// add keeps a state; places may come in any order and more than once.
func (s *search) add(control uint32, places []Place) {
	slices.SortFunc(places, func(a, b Place) int { return int(a.Local) - int(b.Local) })
	s.key = binary.LittleEndian.AppendUint32(s.key[:0], control)
	for i := 0; i < len(places); {
		p, n := places[i], 0
		for ; i < len(places) && places[i].Local == p.Local; i++ {
			n += int(places[i].Count)
		}
		if n > int(s.most(p.Local)) {
			n = Many
		}
		if slices.Contains(s.supply, p.Local) {
			continue
		}
		s.key = append(binary.LittleEndian.AppendUint32(s.key, p.Local), byte(n))
	}
	if _, ok := s.seen[string(s.key)]; ok {
		return
	}
	k := string(s.key)
	s.seen[k] = struct{}{}
	s.queue = append(s.queue, k)
}

// most is up to where a place is counted.
func (s *search) most(local uint32) uint8 {
	if s.exact != nil && s.exact(local) && s.mutant != tooManyExact {
		return MaxCap
	}
	return s.cap
}

func decode(k string, out []Place) (uint32, []Place) {
	b := []byte(k)
	control := binary.LittleEndian.Uint32(b)
	for b = b[4:]; len(b) > 0; b = b[5:] {
		out = append(out, Place{binary.LittleEndian.Uint32(b), b[4]})
	}
	return control, out
}

package counters

import (
	"errors"
	"fmt"
	"slices"
)

// Rule is a move that is possible whenever the control is From and a client is
// in its actor's local state, however many others there are.
type Rule struct {
	From uint32
	Move
}

// ErrAbsent: a rule asks that nobody be in some local state, which the backward
// search cannot do.
var ErrAbsent = errors.New("a move asks that nobody be in some local state")

// ErrTooMany: the backward search grew beyond its limit.
var ErrTooMany = errors.New("too many minimal elements")

// Cover decides whether some number of clients can reach one of the target
// controls, and with how few. It goes backward from the targets and keeps the
// least markings from which they can be reached; by Dickson's lemma there are
// finitely many, so it ends (Abdulla, Čerāns, Jonsson and Tsay 1996). locals
// lists every local state that any rule can meet.
//
// The answer is exact when the rules are all there are where the start can get
// to. clients counts those that come from the supply or stand in the marking
// of the start and are needed; it is -1 when no number is enough.
func Cover(rules []Rule, locals []uint32, start Start, targets []uint32, most int) (clients int, err error) {
	b := &backward{least: map[uint32][][]uint32{}}
	into := map[uint32][]Rule{}
	for _, r := range rules {
		if r.Absent {
			return -1, ErrAbsent
		}
		into[r.Control] = append(into[r.Control], r)
	}
	for _, t := range targets {
		b.add(t, nil)
	}
	for len(b.queue) > 0 {
		if b.kept > most {
			return -1, fmt.Errorf("%w: %d", ErrTooMany, b.kept)
		}
		at := b.queue[0]
		b.queue = b.queue[1:]
		if !slices.ContainsFunc(b.least[at.control], func(m []uint32) bool { return slices.Equal(m, at.marking) }) {
			continue // a smaller one took its place
		}
		for _, r := range into[at.control] {
			b.before(r, at.marking, locals)
		}
	}
	clients = -1
	for _, m := range b.least[start.Control] {
		if held(m, start) && (clients < 0 || len(m) < clients) {
			clients = len(m)
		}
	}
	return clients, nil
}

type element struct {
	control uint32
	marking []uint32 // a local for each client, sorted
}

type backward struct {
	least map[uint32][][]uint32
	queue []element
	kept  int
}

// before adds the least markings from which a rule leads to a marking.
func (b *backward) before(r Rule, after []uint32, locals []uint32) {
	rest := slices.Clone(after)
	if i := slices.Index(rest, r.Become); r.Become != 0 && i >= 0 {
		rest = slices.Delete(rest, i, i+1)
	}
	var from func(i int, marking []uint32)
	from = func(i int, marking []uint32) {
		if i == len(rest) {
			m := slices.Clone(marking)
			if r.Actor != 0 {
				m = append(m, r.Actor)
			}
			slices.Sort(m)
			b.add(r.From, m)
			return
		}
		if r.Others == nil {
			from(i+1, append(marking, rest[i]))
			return
		}
		for _, l := range locals {
			if r.Others(l) == rest[i] {
				from(i+1, append(slices.Clone(marking), l))
			}
		}
	}
	from(0, nil)
}

// add keeps a marking unless a smaller one is kept.
func (b *backward) add(control uint32, marking []uint32) {
	for _, m := range b.least[control] {
		if within(m, marking) {
			return
		}
	}
	n := len(b.least[control])
	b.least[control] = slices.DeleteFunc(b.least[control], func(m []uint32) bool { return within(marking, m) })
	b.kept += len(b.least[control]) - n + 1
	b.least[control] = append(b.least[control], marking)
	b.queue = append(b.queue, element{control, marking})
}

// within says that a has no client that b has not; both are sorted.
func within(a, b []uint32) bool {
	i := 0
	for _, l := range b {
		if i < len(a) && a[i] == l {
			i++
		}
	}
	return i == len(a)
}

// held says that the start can hold a marking.
func held(marking []uint32, start Start) bool {
	for i := 0; i < len(marking); {
		l, n := marking[i], 0
		for ; i < len(marking) && marking[i] == l; i++ {
			n++
		}
		if slices.Contains(start.Supply, l) {
			continue
		}
		at := slices.IndexFunc(start.Marking, func(p Place) bool { return p.Local == l })
		if at < 0 || n > int(start.Marking[at].Count) {
			return false
		}
	}
	return true
}

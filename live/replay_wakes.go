package live

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"stockproof/faults/schedule"
)

// listening waits, before a step that wakes clients, until they are subscribed:
// in the schedule they were at once.
func (r *replay) listening(ctx context.Context, i int) error {
	r.gate.mu.Lock()
	r.gate.heard = nil
	r.gate.mu.Unlock()
	for _, name := range r.s.Steps[i].Wakes {
		c := r.clients[name]
		if c == nil {
			return r.s.Diverges(i, "a client that takes part", name)
		}
		// When it never is, it will not be woken, and that is told.
		if _, err := r.await(ctx, isElsewhere, nil, func() bool { return len(r.gate.listens[c.number]) > 0 }); err != nil {
			return err
		}
	}
	return nil
}

// lettingGo is how long a client that heard something may take to hang up: it
// had ended its subscription, and the proxy did not know.
const lettingGo = 200 * time.Millisecond

// compareWoken compares who, except the client that acts, gets a message.
func (r *replay) compareWoken(ctx context.Context, i int) error {
	st := &r.s.Steps[i]
	woke := func(c *replayClient) bool {
		return slices.ContainsFunc(r.gate.heard, func(h heard) bool { return h.client == c.number })
	}
	for _, name := range st.Wakes {
		c := r.clients[name]
		ok, err := r.await(ctx, isElsewhere, nil, func() bool { return woke(c) })
		if err != nil {
			return err
		}
		if !ok {
			return r.s.Diverges(i, "to wake "+strings.Join(st.Wakes, " "), "that "+name+" sleeps on")
		}
		c.touched = i
	}
	answered := func(name string) bool {
		return slices.ContainsFunc(st.Answers, func(a schedule.Answer) bool { return a.Client == name })
	}
	for _, name := range r.order {
		c := r.clients[name]
		if name == st.Client || slices.Contains(st.Wakes, name) || answered(name) {
			continue
		}
		listens := func() bool {
			return slices.ContainsFunc(r.gate.heard, func(h heard) bool {
				return h.client == c.number && r.gate.listens[c.number][h.conn] > 0
			})
		}
		r.gate.mu.Lock()
		suspect := listens()
		r.gate.mu.Unlock()
		if !suspect {
			continue
		}
		gone, err := r.await(ctx, lettingGo, nil, func() bool { return !listens() })
		if err != nil {
			return err
		}
		if !gone {
			expected := "to wake nobody"
			if len(st.Wakes) > 0 {
				expected = "to wake " + strings.Join(st.Wakes, " ")
			}
			return r.s.Diverges(i, expected, fmt.Sprintf("that %s wakes too", name))
		}
	}
	return nil
}

// settle waits until the clients have come to where the schedule finds them
// next: in it a client's code takes no time. A client that does not come is
// told of at its own line, and at once where the time that its absence takes
// would make others miss theirs.
func (r *replay) settle(ctx context.Context, i int) error {
	for _, name := range r.order {
		c := r.clients[name]
		if !c.begun || c.paused || c.touched != i {
			continue
		}
		for _, k := range r.next(c, i) {
			come, err := r.await(ctx, nothingMoves, c, func() bool {
				return r.find(c, &r.s.Steps[k]) != nil || r.gate.answers[c.number] != nil || r.gate.gone[c.number] != nil
			})
			if err != nil {
				return err
			}
			if !come && r.timed() {
				return r.isNotThere(ctx, c, k)
			}
		}
	}
	return nil
}

// next lists the lines whose steps the client is about to send after line i: its
// next one, unless something has to happen first, and what its watchdog is due
// to send since time passed.
func (r *replay) next(c *replayClient, i int) (lines []int) {
	kind := r.s.Steps[i].Kind
	timers := kind == schedule.Wait || kind == schedule.Resume
	first := true
	for k := i + 1; k < len(r.s.Steps); k++ {
		st := &r.s.Steps[k]
		mine := st.Client == c.spec.Name
		switch {
		case st.Kind == schedule.Wait, mine && st.Kind == schedule.Resume:
			return lines
		case r.frozen && st.Kind == schedule.Thaws: // nobody logs in until then
			return lines
		case mine && (st.Kind == schedule.GoesOn || st.Kind == schedule.Deadlock) || slices.Contains(st.Wakes, c.spec.Name):
			first = false
		case mine && st.Kind == schedule.Command:
			if first || timers && renews(st) {
				lines = append(lines, k)
			}
			if first = false; !timers {
				return lines
			}
		}
		if slices.ContainsFunc(st.Answers, func(a schedule.Answer) bool { return a.Client == c.spec.Name }) {
			return lines
		}
	}
	return lines
}

// renewal is the script of a watchdog, which a timer sends.
const renewal = "lock-renew"

// renews says whether a line is a watchdog's.
func renews(st *schedule.Step) bool { return len(st.Words) > 1 && st.Words[1] == renewal }

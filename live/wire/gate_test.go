package wire

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder is a gate that writes down what it is asked and answers with what
// the test plans, Forward and Deliver where it plans nothing.
type recorder struct {
	onRequest func(context.Context, Step) RequestAction
	onReply   func(context.Context, Step, Reply) ReplyAction

	mu      sync.Mutex
	changed chan struct{}
	events  []event
}

type event struct {
	kind  string // request, reply, gone
	step  Step
	reply Reply
	err   error
}

func (r *recorder) note(e event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

func (r *recorder) Request(ctx context.Context, s Step) RequestAction {
	r.note(event{kind: "request", step: s})
	if r.onRequest != nil {
		return r.onRequest(ctx, s)
	}
	return Forward
}

func (r *recorder) Reply(ctx context.Context, s Step, reply Reply) ReplyAction {
	r.note(event{kind: "reply", step: s, reply: reply})
	if r.onReply != nil {
		return r.onReply(ctx, s, reply)
	}
	return Deliver
}

func (r *recorder) Gone(s Step, err error) { r.note(event{kind: "gone", step: s, err: err}) }

// seen are the events so far.
func (r *recorder) seen() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]event(nil), r.events...)
}

// await waits until n events of the kind have been seen.
func (r *recorder) await(t testing.TB, kind string, n int) []event {
	t.Helper()
	for {
		r.mu.Lock()
		var found []event
		for _, e := range r.events {
			if e.kind == kind {
				found = append(found, e)
			}
		}
		if len(found) >= n {
			r.mu.Unlock()
			return found
		}
		if r.changed == nil {
			r.changed = make(chan struct{})
		}
		changed := r.changed
		r.mu.Unlock()
		select {
		case <-changed:
		case <-t.Context().Done():
			require.Failf(t, "test ended", "waiting for %d %s, saw %v", n, kind, found)
		}
	}
}

// lines are the events, each as `kind n: what`.
func (r *recorder) lines() []string {
	var lines []string
	for _, e := range r.seen() {
		what := fmt.Sprint(e.step.Argv)
		if e.step.Server == Postgres {
			what = e.step.SQL
		}
		switch e.kind {
		case "reply":
			what = e.reply.Text
		case "gone":
			what = e.err.Error()
		}
		lines = append(lines, fmt.Sprintf("%s %d: %s", e.kind, e.step.N, what))
	}
	return lines
}

// requireEachEndsOnce checks the promise of Gate: each step asked about ends in
// one delivered reply or one Gone. Replies are taken as delivered when the plan
// says so and no Gone followed.
func (r *recorder) requireEachEndsOnce(t testing.TB) {
	t.Helper()
	type fate struct{ asked, replied, gone int }
	fates := map[int]*fate{}
	for _, e := range r.seen() {
		f := fates[e.step.N]
		if f == nil {
			f = &fate{}
			fates[e.step.N] = f
		}
		switch e.kind {
		case "request":
			f.asked++
		case "reply":
			f.replied++
		case "gone":
			f.gone++
			var gone *GoneError
			require.ErrorAs(t, e.err, &gone)
			require.Equal(t, f.replied == 1, gone.Replied, "step %d: %v", e.step.N, e.err)
		}
	}
	for n, f := range fates {
		require.Equal(t, 1, f.asked, "step %d asked about", n)
		require.LessOrEqual(t, f.replied, 1, "step %d replied to", n)
		require.LessOrEqual(t, f.gone, 1, "step %d gone", n)
		require.Positive(t, f.replied+f.gone, "step %d never ended", n)
	}
}

// at plans an action for the n-th step only.
func at(n int, a RequestAction) func(context.Context, Step) RequestAction {
	return func(_ context.Context, s Step) RequestAction {
		if s.N == n {
			return a
		}
		return Forward
	}
}

func replyAt(n int, a ReplyAction) func(context.Context, Step, Reply) ReplyAction {
	return func(_ context.Context, s Step, _ Reply) ReplyAction {
		if s.N == n {
			return a
		}
		return Deliver
	}
}

// open starts a proxy that the test closes.
func open(t testing.TB, server Server, upstream string, g Gate) *Proxy {
	t.Helper()
	return openDialect(t, server, upstream, g, nil)
}

func openDialect(t testing.TB, server Server, upstream string, g Gate, d func(*conn) dialect) *Proxy {
	t.Helper()
	p, err := listen(Config{Server: server, Upstream: upstream, Client: 7, Counter: &Counter{}, Gate: g}, d)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func requireCause(t testing.TB, err, cause error, forwarded, replied bool) {
	t.Helper()
	var gone *GoneError
	require.True(t, errors.As(err, &gone), "%T", err)
	require.ErrorIs(t, err, cause)
	require.Equal(t, []bool{forwarded, replied}, []bool{gone.Forwarded, gone.Replied}, "forwarded, replied: %v", err)
}

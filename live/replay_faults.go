package live

import (
	"context"
	"slices"

	"stockproof/faults/schedule"
	"stockproof/live/wire"
)

// crash kills the client and waits until the database has noticed.
func (r *replay) crash(ctx context.Context, c *replayClient, f *flying, blocked bool) error {
	c.crashed, c.begun = true, false
	c.proc.Kill() // returns when it is gone
	c.orphans, c.blocked = append(c.orphans, c.blocked...), nil
	if blocked {
		c.orphans = append(c.orphans, f)
	} else {
		f.reply <- wire.LoseReply
	}
	return r.gate.closed(ctx, r.backends(c))
}

// backends are the server processes that a client has sent statements to.
func (r *replay) backends(c *replayClient) (list []int64) {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	travels := map[uint32]bool{}
	for _, f := range c.late {
		travels[f.step.BackendPID] = true
	}
	for key, f := range r.gate.steps {
		if pid := f.step.BackendPID; key.client == c.number && pid != 0 && !travels[pid] {
			list = append(list, int64(pid))
		}
	}
	return list
}

// ended waits until the server has noticed that the connection of a step was
// cut.
func (r *replay) ended(ctx context.Context, f *flying) error {
	if f.step.Server != wire.Postgres || f.step.BackendPID == 0 {
		return nil
	}
	return r.gate.closed(ctx, []int64{int64(f.step.BackendPID)})
}

// goesOn follows a statement that waited for a row.
func (r *replay) goesOn(ctx context.Context, c *replayClient, i int) error {
	st := &r.s.Steps[i]
	on := func(f *flying) bool {
		return f.op == c.op && slices.Index(c.conns, f.step.Conn) == st.Conn
	}
	if st.Reply.Kind == schedule.None {
		at := slices.IndexFunc(c.orphans, func(f *flying) bool { return true })
		if at < 0 {
			return r.s.Diverges(i, "a statement that can go on", "none")
		}
		f := c.orphans[at]
		c.orphans = slices.Delete(c.orphans, at, at+1)
		if ok, err := r.await(ctx, nothingMoves, nil, func() bool { return f.answered != nil || f.over }); err != nil {
			return err
		} else if !ok {
			return r.s.Diverges(i, "a statement that can go on", "that it still waits")
		}
		return r.ended(ctx, f)
	}
	at := slices.IndexFunc(c.blocked, on)
	if at < 0 || c.crashed {
		return r.s.Diverges(i, "a client that waits for a statement", "that it does not")
	}
	f := c.blocked[at]
	if st.Reply.Kind == schedule.Blocked {
		return nil // it waits again: PostgreSQL does not tell for whom
	}
	c.blocked = slices.Delete(c.blocked, at, at+1)
	r.gate.mu.Lock()
	f.blocked = false
	r.gate.mu.Unlock()
	if _, err := r.served(ctx, c, f, i); err != nil {
		return err
	}
	return r.deliver(ctx, c, f, i, false)
}

// late lets a delayed request reach its server, or never.
func (r *replay) late(ctx context.Context, c *replayClient, i int) (*flying, error) {
	st := &r.s.Steps[i]
	at := slices.IndexFunc(c.late, func(f *flying) bool {
		seen := r.asked(c, f.step)
		if f.op != c.op || !c.begun { // connections are counted for each operation anew
			seen.Conn = st.Conn
		}
		return r.sameRequest(st, &seen)
	})
	if at < 0 {
		return nil, r.s.Diverges(i, st.Action(), "that no such request is on its way")
	}
	f := c.late[at]
	c.late = slices.Delete(c.late, at, at+1)
	if st.Kind == schedule.Never {
		close(f.drop)
		if _, err := r.await(ctx, nothingMoves, nil, func() bool { return f.over }); err != nil {
			return nil, err
		}
		return f, r.ended(ctx, f)
	}
	if r.own != nil && f.step.Server == wire.Redis {
		if err := r.own.before(ctx, i); err != nil {
			return nil, err
		}
	}
	close(f.release)
	if f.step.Server == wire.Postgres {
		go r.gate.watchBlocked(ctx, f)
	}
	blocked, err := r.served(ctx, c, f, i)
	if err != nil {
		return nil, err
	}
	if r.own != nil && f.step.Server == wire.Redis {
		if err := r.own.after(ctx); err != nil {
			return nil, err
		}
	}
	if blocked {
		c.orphans = append(c.orphans, f)
		return f, nil
	}
	f.reply <- wire.LoseReply
	return f, r.ended(ctx, f)
}

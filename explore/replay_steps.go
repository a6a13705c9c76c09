package explore

import (
	"slices"
	"strings"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
)

// find is the parked step that a line means.
func find(places []place, st *schedule.Step) (place, bool) {
	for _, p := range places {
		if asked := askedOf(p.step.sql, p.step.conn, splitArgs(p.step.args)); sameRequest(&asked, st) {
			return p, true
		}
	}
	return place{}, false
}

// sameRequest says whether two steps send the same.
func sameRequest(a, b *schedule.Step) bool {
	return a.Server == b.Server && a.Conn == b.Conn && slices.Equal(a.Words, b.Words) && a.Statement == b.Statement
}

// parkedAt tells where a client stands, as a schedule would write it.
func (c *replayClient) parkedAt() string {
	places := c.run.wire.pending()
	if c.run.isDone() {
		return "that " + c.spec.Name + " is done"
	}
	if len(places) == 0 {
		return "that " + c.spec.Name + " waits"
	}
	var words []string
	for _, p := range places {
		asked := askedOf(p.step.sql, p.step.conn, splitArgs(p.step.args))
		asked.Kind = schedule.Command
		words = append(words, asked.Action())
	}
	return strings.Join(words, " and ")
}

func (r *replayer) command(c *replayClient, st *schedule.Step, diverged func(string, string) error) ([]redisstore.Message, error) {
	if c.paused {
		return nil, diverged("a step of "+c.spec.Name, "that it is paused")
	}
	p, ok := find(c.run.wire.pending(), st)
	if !ok || p.step.sql && slices.Contains(c.blocked, p.step.conn) {
		return nil, diverged(st.Action(), c.parkedAt())
	}
	if st.Fault == faults.RequestLost || st.Fault == faults.RequestDelayed {
		if st.Fault == faults.RequestDelayed {
			c.late = append(c.late, lateStep{line: *st, step: p.step, op: c.op})
		}
		c.cut(p)
		return nil, nil
	}
	reply, blocked, messages, err := r.execute(c, p.step)
	if err != nil {
		return nil, err
	}
	return messages, r.answer(c, p, st, reply, blocked, diverged)
}

func (c *replayClient) cut(p place) {
	if p.call != nil {
		c.run.wire.cutSQL(p.call)
	} else {
		p.conn.cut()
	}
	c.run.settle()
}

// answer holds a reply against the line and gives it to the client, unless the
// line's fault comes between.
func (r *replayer) answer(c *replayClient, p place, st *schedule.Step, reply string, blocked bool, diverged func(string, string) error) error {
	seen := replyOf(p.step.sql, reply, blocked)
	if r.fits && sameLease(st, seen) {
		st.Reply = seen
	}
	if seen.String() != st.Reply.String() {
		return diverged(st.Reply.String(), seen.String())
	}
	switch {
	case st.Fault == faults.ClientCrash:
		c.crashed = true
		r.abandon(c.sessions()...)
	case st.Fault == faults.ReplyLost || st.Fault == faults.CommitReplyLost:
		c.cut(p)
	case blocked:
		c.blocked = append(c.blocked, p.step.conn)
	default:
		give := func() {
			if p.call != nil {
				c.run.wire.answerSQL(p.call, reply)
			} else {
				p.conn.reply(reply)
			}
			c.run.settle()
		}
		if st.Unread {
			c.unread = give
		} else {
			give()
		}
	}
	c.paused = c.paused || st.Fault == faults.ClientPause
	return nil
}

func (c *replayClient) sessions() []int {
	all := make([]int, c.room)
	for conn := range all {
		all[conn] = c.session(conn)
	}
	return all
}

// execute asks the servers.
func (r *replayer) execute(c *replayClient, s step) (reply string, blocked bool, messages []redisstore.Message, err error) {
	words := splitArgs(s.args)
	if s.sql {
		r.now.sql, reply, blocked, err = r.now.sql.exec(s, c.first, 0)
		r.note(sqlEvent{StepCommand, c.session(s.conn), words, blocked, reply})
		return reply, blocked, nil, err
	}
	res, err := r.engine.Exec(r.now.redis, words)
	if err != nil {
		return "", false, nil, err
	}
	if r.loses && res.State.Encode() != r.now.redis.Encode() {
		r.before = append(r.before, r.now.redis)
	}
	r.now.redis = res.State
	return res.Reply, false, res.Messages, nil
}

// spread delivers messages to every client that listens, after the one that
// acts has its own reply, and answers who of the others did.
func (r *replayer) spread(messages []redisstore.Message, actor *replayClient) (woken []string) {
	for _, m := range messages {
		for _, name := range r.order {
			c := r.clients[name]
			if c.run == nil || c.crashed {
				continue
			}
			if c != actor && slices.Contains(c.run.wire.subscriptions(), m.Channel) && !slices.Contains(woken, name) {
				woken = append(woken, name)
			}
			c.run.wire.publish(m.Channel, m.Payload)
			c.run.settle()
		}
	}
	return woken
}

// takeLate takes the delayed request that a line means.
func (c *replayClient) takeLate(st *schedule.Step, diverged func(string, string) error) (lateStep, error) {
	for i, l := range c.late {
		if sameRequest(&l.line, st) {
			c.late = slices.Delete(c.late, i, i+1)
			return l, nil
		}
	}
	return lateStep{}, diverged(st.Action(), "that no such request is on its way")
}

func (r *replayer) arrives(c *replayClient, late lateStep, st *schedule.Step, diverged func(string, string) error) ([]redisstore.Message, error) {
	reply, blocked, messages, err := r.execute(c, late.step)
	if err != nil {
		return nil, err
	}
	if seen := replyOf(late.step.sql, reply, blocked).String(); seen != st.Reply.String() {
		return nil, diverged(st.Reply.String(), seen)
	}
	return messages, nil
}

// grant lets the blocked statement of a connection go on.
func (r *replayer) grant(c *replayClient, conn int, st *schedule.Step, diverged func(string, string) error) (reply string, blocked bool, err error) {
	number, kill := c.session(conn), st.Kind == schedule.Deadlock
	if !kill && !slices.Contains(r.now.sql.db.Runnable(), number) {
		return "", false, diverged("a statement that can go on", "one that cannot")
	}
	if kill && !slices.ContainsFunc(r.now.sql.db.Deadlocked(), func(cycle []int) bool { return slices.Contains(cycle, number) }) {
		return "", false, diverged("a deadlock", "none")
	}
	if r.now.sql, reply, blocked, err = r.now.sql.grant(number, kill); err != nil {
		return "", false, err
	}
	what := StepGranted
	if kill {
		what = StepDeadlock
	}
	r.note(sqlEvent{what, number, nil, blocked, reply})
	return reply, blocked, nil
}

func (r *replayer) granted(c *replayClient, st *schedule.Step, diverged func(string, string) error) error {
	conn := c.op*connsPerOp + st.Conn
	at := slices.Index(c.blocked, conn)
	if at < 0 || c.run == nil || c.crashed {
		return diverged("a client that waits for a statement", "that it does not")
	}
	c.blocked = slices.Delete(c.blocked, at, at+1)
	reply, blocked, err := r.grant(c, conn, st, diverged)
	if err != nil {
		return err
	}
	places := c.run.wire.pending()
	i := slices.IndexFunc(places, func(p place) bool { return p.step.sql && p.step.conn == conn })
	if i < 0 {
		return diverged("a client that waits for its statement", c.parkedAt())
	}
	return r.answer(c, places[i], st, reply, blocked, diverged)
}

// orphan lets a statement go on whose client is gone, or no longer waits.
func (r *replayer) orphan(c *replayClient, st *schedule.Step, diverged func(string, string) error) error {
	if r.now.sql.db != nil {
		for op := range c.spec.Calls {
			conn := op*connsPerOp + st.Conn
			owned := !c.crashed && slices.Contains(c.blocked, conn)
			if !owned && slices.Contains(r.now.sql.db.Runnable(), c.session(conn)) {
				_, _, err := r.grant(c, conn, st, diverged)
				return err
			}
		}
	}
	return diverged("a statement that can go on", "none")
}

// closeSessions tells the server which connections a client has hung up.
func (r *replayer) closeSessions(c *replayClient) {
	c.run.wire.mu.Lock()
	closed := slices.Clone(c.run.wire.closed)
	c.run.wire.mu.Unlock()
	for _, conn := range newlyClosed(c.hungUp, closed) {
		travels := slices.ContainsFunc(c.late, func(l lateStep) bool { return l.step.sql && l.step.conn == conn })
		if !travels {
			r.abandon(c.session(conn))
		}
	}
	c.hungUp = closed
}

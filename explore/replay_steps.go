package explore

import (
	"fmt"
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
	if gives := st.Fault == faults.RedisFreeze; gives != (r.frozen && !p.step.sql) {
		return nil, diverged("Redis to be otherwise", fmt.Sprintf("frozen %v", r.frozen))
	}
	if st.Fault == faults.RequestLost || st.Fault == faults.RequestDelayed || st.Fault == faults.RedisFreeze {
		if st.Fault != faults.RequestLost {
			c.late = append(c.late, lateStep{line: *st, step: p.step, op: c.op})
		}
		if st.Fault == faults.RequestLost {
			r.endRedis(c, c.op, p.step)
		}
		c.cut(p)
		return nil, nil
	}
	if p.step.holds && !r.knows(c, c.op, p.step) {
		return nil, diverged(st.Action(), "that its connection is broken")
	}
	reply, blocked, messages, err := r.execute(c, c.op, p.step)
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
		r.now.redis, _ = withoutConnections(r.now.redis, c.spec.Name, []int{everyRedisConn})
	case st.Fault == faults.ReplyLost || st.Fault == faults.CommitReplyLost:
		r.endRedis(c, c.op, p.step)
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

// knows says whether Redis knows something of the connection of a step.
func (r *replayer) knows(c *replayClient, op int, s step) bool {
	_, known := r.now.redis.Session(sessionName(c.spec.Name, int8(op), s.on))
	return known
}

// endRedis ends the connection of a step where Redis knows something of it.
func (r *replayer) endRedis(c *replayClient, op int, s step) {
	if s.on > 0 {
		r.now.redis, _ = withoutConnections(r.now.redis, c.spec.Name, []int{redisConn(uint8(op), s.on)})
	}
}

// execute asks the servers.
func (r *replayer) execute(c *replayClient, op int, s step) (reply string, blocked bool, messages []redisstore.Message, err error) {
	words := splitArgs(s.args)
	if s.sql {
		var after sqlState
		if after, reply, blocked, err = r.now.sql.exec(s, c.first, 0); err == nil {
			r.became(after)
		}
		r.note(sqlEvent{StepCommand, c.session(s.conn), words, blocked, reply})
		return reply, blocked, nil, err
	}
	var res redisstore.Result
	if !isWait(s) {
		session := ""
		if s.on > 0 {
			session = sessionName(c.spec.Name, int8(op), s.on)
		}
		if res, err = r.engine.ExecOn(r.now.redis, session, words); err != nil {
			return "", false, nil, err
		}
	}
	if reply, ok := r.answersAlone(s, res); ok {
		return reply, false, nil, nil
	}
	if r.link.lags() && !sameKeys(res.State, r.now.redis) {
		r.lag++
	}
	if r.loses && res.State.Data() != r.now.redis.Data() {
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
	if late.step.holds && !r.knows(c, late.op, late.step) {
		if st.Reply.Kind != schedule.None {
			return nil, diverged(st.Reply.String(), "that its connection is broken")
		}
		return nil, nil
	}
	reply, blocked, messages, err := r.execute(c, late.op, late.step)
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
	after, reply, blocked, err := r.now.sql.grant(number, kill)
	if err != nil {
		return "", false, err
	}
	r.became(after)
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

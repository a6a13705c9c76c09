package explore

import (
	"fmt"
	"slices"

	"stockproof/faults"
)

// committed is a number for what the database of a moment would still hold if it
// died: equal for equal contents.
func (w *world) committed(at int32) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id, ok := w.commits[at]; ok {
		return id
	}
	key := ""
	if db := w.moments[at].sql.db; db != nil {
		key = db.Restarted().Key()
	}
	id, ok := w.commitIDs[key]
	if !ok {
		id = int32(len(w.commitIDs))
		w.commitIDs[key] = id
	}
	w.commits[at] = id
	return id
}

// restartsOfDatabase lists the ways in which PostgreSQL may die and come back: with
// synchronous_commit off, without the last of its commits.
func (s *searcher) restartsOfDatabase(x *state, open bool, out []successor) []successor {
	if len(s.database) == 0 || !s.cfg.Entry.Stores.SQL || int(x.used()) >= s.cfg.MaxFaults {
		return out
	}
	v := s.vers[x[0]]
	add := func(setting faults.Setting, j, lost int) {
		place := s.place(placement{kind: faults.PostgresRestart, n: lost, key: string(setting)})
		o := successor{mult: 1, place: place, fired: place, deed: deed{what: dies, index: int32(lost)}}
		s.die(x, j, &o.state)
		out = append(out, o)
	}
	if slices.Contains(s.database, faults.SyncCommitOn) && open {
		add(faults.SyncCommitOn, 0, 0)
	}
	if !slices.Contains(s.database, faults.SyncCommitOff) {
		return out
	}
	lost := 0
	for j := 1; j < int(v.n); j++ {
		if s.world.committed(v.at[j]) != s.world.committed(v.at[j-1]) {
			lost++
			add(faults.SyncCommitOff, j, lost)
		}
	}
	return out
}

// die is the state after PostgreSQL died and came back with what was committed j
// versions ago. Whoever had a transaction or a statement in it loses the
// connection; a statement that is sent later goes over a new one.
func (s *searcher) die(x *state, j int, out *state) {
	*out = *x
	v, sh := s.vers[x[0]], stay()
	if s.mutant == commitsKept {
		j = 0
	}
	db := s.world.moment(v.at[0]).sql.db
	kept := s.world.moment(v.at[j]).sql
	v.at[0], sh.inv[0] = s.world.change(v.at[0], func(m moment) moment {
		m.sql = sqlState{kept.db.Restarted()}
		return m
	})
	if j > 0 { // the commits before those that were lost may be lost another time
		copy(v.at[1:replicaAt], v.at[j+1:replicaAt])
		for i := int(v.n) - j; i < replicaAt; i++ {
			v.at[i] = 0
		}
		v.n -= uint8(j)
	}
	out[0] = s.version(v)
	ep := x.epoch()
	for i := 2; i < 2+s.clients; i++ {
		l := s.locals[x[i]]
		if l.status == crashed || l.status == dormant {
			continue
		}
		l, ep = s.disconnected(l, db.Sessions(), ep)
		out[i] = s.local(l)
	}
	out[1] = (x[1]&^0xffff | ep) + 1<<16
	s.untrack(out)
}

// disconnected is a client after its sessions ended.
func (s *searcher) disconnected(l local, sessions []int, ep uint32) (local, uint32) {
	me := s.programs[l.who].index
	for i := range l.late {
		if d := l.late[i]; d.cmd != 0 && s.world.step(d.cmd-1).sql {
			l.late[i] = late{} // its connection is gone as well
		}
	}
	l = sortLate(l)
	if int(l.op) == len(s.programs[l.who].calls) {
		return l, ep
	}
	was := l.op
	for _, n := range sessions {
		conn := n%maxConns - int(was)*connsPerOp
		if n/maxConns != me || conn < 0 || conn >= connsPerOp || l.op != was || s.mutant == sessionsKept {
			continue
		}
		node := s.role(l).node(l.node)
		if slices.Contains(node.closed, conn) {
			continue // given up before; a statement of it was still waiting
		}
		index := slices.IndexFunc(node.pending, func(st step) bool { return st.sql && st.conn == conn })
		if index < 0 {
			fail(fmt.Errorf("%w: %s holds a transaction open while it does something else; what it does when PostgreSQL restarts meanwhile is not explored",
				ErrScheme, s.cfg.Entry.Scheme.Name()))
		}
		if int(l.stuck)-1 == conn {
			l.stuck = 0
		}
		next, n := s.follow(l, event{kind: cut, index: index})
		e := epochOf(ep)
		l, e = s.finish(next, n, e)
		ep = e.word()
	}
	return l, ep
}

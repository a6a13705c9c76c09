package sqlsubset

import (
	"cmp"
	"fmt"
	"slices"
)

// waiting is a statement in execution: fresh, or waiting for a lock.
type waiting struct {
	st   *Statement
	plan *plan
	args []value
	on   int // the session whose transaction must end first, or nobody

	// at is the row whose lock is waited for, 0 when the statement waits for a
	// key instead. PostgreSQL queues the waiters of a row behind the first of
	// them (the heavyweight tuple lock), which shows when there is a deadlock:
	// the first may be cancelled although nobody waits for its transaction.
	// head says that this may be the first. It is known to be, or not, except
	// when several waiters were sent back at once.
	at     uint32
	head   bool
	queued bool // has been waiting since before; set by settle only

	// UPDATE, DELETE, SELECT FOR UPDATE: rows chosen on the statement's
	// snapshot that are still to be locked, the one waited for first.
	rows []uint32

	// INSERT: the new row, and how far it has come.
	ins     []value
	id      uint32 // of its row, once an index entry is placed
	placed  int    // unique indexes that have its entry
	placing bool   // past the check of ON CONFLICT

	out [][]value
	n   int64
}

// settle lets statements that were woken look again, and go back to waiting
// when somebody else has what they need.
func (db *DB) settle() {
	sent := make([]int, 0, 4) // places of the sessions sent back now
	for i := range db.sessions {
		s := &db.sessions[i]
		if s.wait == nil || s.wait.on != nobody {
			continue
		}
		if on, at := db.blocker(s.id, s.wait); on != nobody {
			again := *s.wait
			again.on, again.at, again.head = on, at, at != 0 && !db.queued(at)
			s.wait = &again
			sent = append(sent, i)
		}
	}
	for _, i := range sent {
		db.sessions[i].wait.queued = true
	}
	// When the first of a queue has gone, any of the others may be the next.
	for i := range db.sessions {
		if w := db.sessions[i].wait; w != nil && w.at != 0 && !db.headed(w.at) {
			for k := range db.sessions {
				if o := db.sessions[k].wait; o != nil && o.at == w.at {
					next := *o
					next.head = true
					db.sessions[k].wait = &next
				}
			}
		}
	}
}

// queued reports whether somebody waits for the row already, those sent back
// in the same moment not counted.
func (db *DB) queued(at uint32) bool {
	return slices.ContainsFunc(db.sessions, func(s session) bool { return s.wait != nil && s.wait.at == at && s.wait.queued })
}

func (db *DB) headed(at uint32) bool {
	return slices.ContainsFunc(db.sessions, func(s session) bool { return s.wait != nil && s.wait.at == at && s.wait.head })
}

// Waiting lists the sessions that have a statement in progress, each with the
// session it waits for, or -1 when it could go on now.
func (db *DB) Waiting() map[int]int {
	out := map[int]int{}
	for _, s := range db.sessions {
		if s.wait != nil {
			out[s.id] = s.wait.on
		}
	}
	return out
}

// Runnable lists the sessions whose blocked statement could go on now, in
// ascending order. Which one goes first is the caller's choice: real servers
// were seen to grant out of order.
func (db *DB) Runnable() []int {
	var out []int
	for _, s := range db.sessions {
		if s.wait != nil && s.wait.on == nobody {
			out = append(out, s.id)
			if db.mut == mutOneWaiter {
				break
			}
		}
	}
	return out
}

// Resume lets a blocked statement go on: it takes the newest version of the
// row, evaluates WHERE again, and keeps the row lock even when that fails. It
// may block again, on another row or because it is not runnable. It panics
// when the session has no blocked statement.
func (db *DB) Resume(session int) (Reply, Status) {
	i, ok := db.find(session)
	if !ok || db.sessions[i].wait == nil {
		panic(fmt.Sprintf("sqlsubset: session %d has nothing to resume", session))
	}
	if db.sessions[i].wait.on != nobody {
		return Reply{}, Blocked
	}
	defer db.rest(session)
	w := *db.sessions[i].wait
	w.rows = slices.Clone(w.rows)
	w.out = slices.Clone(w.out)
	db.sessions[i].wait = nil
	if db.mut == mutReselect && w.st.kind != Insert {
		w.rows = nil
		if err := db.choose(session, &w); err != nil {
			return db.fail(session, err), Done
		}
	}
	return db.run(session, &w)
}

// Deadlocked lists the deadlocks: for each the sessions of which PostgreSQL may
// cancel one, in ascending order. They are those that wait for each other in a
// circle, and whoever is first in the queue of a row that a member queues for:
// it stands between the member and the row's holder, although its own
// transaction harms nobody (cancelling it does not end the deadlock). The server
// cancels the one whose deadlock_timeout runs out first, so the victim is a choice.
func (db *DB) Deadlocked() [][]int {
	var out [][]int
	seen := map[int]bool{}
	for _, s := range db.sessions {
		var path []int
		for at := s.id; ; {
			i, ok := db.find(at)
			if !ok || db.sessions[i].wait == nil || db.sessions[i].wait.on == nobody || seen[at] {
				break
			}
			seen[at] = true
			path = append(path, at)
			at = db.sessions[i].wait.on
			if k := slices.Index(path, at); k >= 0 {
				out = append(out, db.victims(path[k:]))
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b []int) int { return cmp.Compare(a[0], b[0]) })
	return out
}

// victims adds to a circle the heads of the queues its members stand in.
func (db *DB) victims(circle []int) []int {
	all := slices.Clone(circle)
	for _, member := range circle {
		i, _ := db.find(member)
		at := db.sessions[i].wait.at
		for _, s := range db.sessions {
			if at != 0 && s.wait != nil && s.wait.at == at && s.wait.head && !slices.Contains(all, s.id) && db.mut != mutNoQueue {
				all = append(all, s.id)
			}
		}
	}
	slices.Sort(all)
	return all
}

// Kill cancels the blocked statement of a deadlocked session and answers its
// error, SQLSTATE 40P01. It panics when the session is in no deadlock.
func (db *DB) Kill(session int) Reply {
	for _, cycle := range db.Deadlocked() {
		if slices.Contains(cycle, session) {
			defer db.rest(session)
			return db.fail(session, pgErr(codeDeadlock, "deadlock detected"))
		}
	}
	panic(fmt.Sprintf("sqlsubset: session %d is in no deadlock", session))
}

package fidelity

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/engines/sqlsubset"
)

// Follower is the engine following a real server. It holds every state of the
// engine that is consistent with what the server has done so far.
type Follower struct {
	states []*sqlsubset.DB
	fresh  map[int]sqlsubset.Reply // by state: the reply of the statement just sent, when it was done at once
	sender int
	st     map[int]*sqlsubset.Statement // the last statement of each session
}

// Follow starts from one state, which it does not change.
func Follow(db *sqlsubset.DB) *Follower {
	return &Follower{states: []*sqlsubset.DB{db.Clone()}, sender: -1, st: map[int]*sqlsubset.Statement{}}
}

// Exec executes a statement in every state. It returns an error when the engine
// refuses it.
func (f *Follower) Exec(session int, st *sqlsubset.Statement, args []any) error {
	f.sender, f.fresh = session, map[int]sqlsubset.Reply{}
	f.st[session] = st
	for i, db := range f.states {
		reply, status := db.Exec(session, st, args)
		if refused, ok := reply.Err.(*sqlsubset.UnsupportedError); ok {
			return refused
		}
		if status == sqlsubset.Done {
			f.fresh[i] = reply
		}
	}
	return nil
}

// Abandon is the death of the session's client.
func (f *Follower) Abandon(session int) {
	f.sender, f.fresh = -1, map[int]sqlsubset.Reply{}
	for _, db := range f.states {
		db.Abandon(session)
	}
}

// Observe keeps the states in which the engine could have answered as the
// server did. When none is left it returns a *DifferenceError and keeps them all.
func (f *Follower) Observe(answers []Answer, blocked []int) error {
	var next []*sqlsubset.DB
	keys := map[string]bool{}
	s := search{f: f, seen: map[string]bool{}, found: func(db *sqlsubset.DB) {
		if k := db.Key(); !keys[k] {
			keys[k] = true
			next = append(next, db)
		}
	}, blocked: blocked}
	for i, db := range f.states {
		left := slices.Clone(answers)
		if reply, done := f.fresh[i]; done {
			k := slices.IndexFunc(left, func(a Answer) bool { return a.Session == f.sender })
			if k < 0 {
				s.offer("session %d answers %s", f.sender, f.describe(f.sender, reply))
				continue
			}
			if !f.same(left[k], reply) {
				s.offer("session %d answers %s", f.sender, f.describe(f.sender, reply))
				continue
			}
			left = slices.Delete(left, k, k+1)
		}
		s.seen = map[string]bool{}
		s.explore(db, left)
	}
	f.sender, f.fresh = -1, nil
	if len(next) == 0 {
		return &DifferenceError{Server: f.tell(answers, blocked), Engine: s.offers}
	}
	f.states = next
	return nil
}

func (f *Follower) describe(session int, r sqlsubset.Reply) string {
	return Describe(r, f.st[session] != nil && f.st[session].Ordered())
}

func (f *Follower) same(a Answer, r sqlsubset.Reply) bool {
	return a.Gone || f.describe(a.Session, a.Reply) == f.describe(a.Session, r)
}

func (f *Follower) tell(answers []Answer, blocked []int) string {
	var parts []string
	for _, a := range answers {
		if a.Gone {
			parts = append(parts, fmt.Sprintf("session %d is gone", a.Session))
		} else {
			parts = append(parts, fmt.Sprintf("session %d answers %s", a.Session, f.describe(a.Session, a.Reply)))
		}
	}
	for _, b := range blocked {
		parts = append(parts, fmt.Sprintf("session %d is blocked", b))
	}
	return strings.Join(parts, ", ")
}

// Tables keeps the states whose committed rows are those of the server.
func (f *Follower) Tables(name string, rows []string) error {
	var next []*sqlsubset.DB
	var offers []string
	for _, db := range f.states {
		_, have, err := db.Table(name)
		if err != nil {
			return err
		}
		if l := lines(have); slices.Equal(l, rows) {
			next = append(next, db)
		} else {
			offers = append(offers, fmt.Sprintf("table %s holds %v", name, l))
		}
	}
	if len(next) == 0 {
		return &DifferenceError{Server: fmt.Sprintf("table %s holds %v", name, rows), Engine: offers}
	}
	f.states = next
	return nil
}

// DifferenceError says that a real server did what the engine does not allow.
type DifferenceError struct {
	Server string
	Engine []string // what the engine would have allowed instead
}

func (e *DifferenceError) Error() string {
	return fmt.Sprintf("the server: %s; the engine would have: %s", e.Server, strings.Join(e.Engine, " | "))
}

// search looks for orders of resuming that explain the answers.
type search struct {
	f       *Follower
	seen    map[string]bool
	found   func(*sqlsubset.DB)
	blocked []int
	offers  []string
}

func (s *search) offer(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); len(s.offers) < 8 && !slices.Contains(s.offers, text) {
		s.offers = append(s.offers, text)
	}
}

func (s *search) explore(db *sqlsubset.DB, left []Answer) {
	key := fmt.Sprint(len(left), db.Key())
	if s.seen[key] {
		return
	}
	s.seen[key] = true
	runnable, deadlocks := db.Runnable(), db.Deadlocked()
	if len(runnable) == 0 && len(deadlocks) == 0 {
		waiting := db.Waiting()
		same := len(waiting) == len(s.blocked)
		for _, b := range s.blocked {
			_, ok := waiting[b]
			same = same && ok
		}
		switch {
		case !same:
			s.offer("the waiting sessions %v (each with whom it waits for)", waiting)
		case len(left) > 0:
			s.offer("no answer from session %d", left[0].Session)
		default:
			s.found(db)
		}
		return
	}
	for _, id := range runnable {
		next := db.Clone()
		reply, status := next.Resume(id)
		s.after(next, id, reply, status, left)
	}
	for _, cycle := range deadlocks {
		for _, id := range cycle {
			next := db.Clone()
			reply := next.Kill(id)
			s.after(next, id, reply, sqlsubset.Done, left)
		}
	}
}

func (s *search) after(db *sqlsubset.DB, id int, reply sqlsubset.Reply, status sqlsubset.Status, left []Answer) {
	if status == sqlsubset.Blocked {
		s.explore(db, left)
		return
	}
	k := slices.IndexFunc(left, func(a Answer) bool { return a.Session == id })
	if k < 0 || !s.f.same(left[k], reply) {
		s.offer("session %d answers %s", id, s.f.describe(id, reply))
		return
	}
	s.explore(db, slices.Delete(slices.Clone(left), k, k+1))
}

package sqlsubset

import "slices"

// allEntries marks a row that every unique index knows of.
const allEntries = 255

// prepareInsert computes the new row and checks what needs no other row.
func (db *DB) prepareInsert(w *waiting) error {
	e := env{args: w.args}
	w.ins = make([]value, len(w.plan.values))
	for i, x := range w.plan.values {
		v, err := x.eval(&e)
		if err != nil {
			return err
		}
		w.ins[i] = v
	}
	return w.plan.tab.validate(w.ins)
}

// clash finds the row that stands in the way of an INSERT under one unique
// constraint: committed, or being made or unmade by another transaction. A row
// that the session itself has deleted does not.
func (db *DB) clash(session int, w *waiting, u int) *row {
	rows := db.tables[w.plan.tabIndex]
	for i := range rows {
		r := &rows[i]
		switch {
		case w.id != 0 && r.id == w.id,
			r.op == rowInserted && int(r.entries) <= u,
			r.op == rowDeleted && r.holder == session,
			!w.plan.tab.uniques[u].sameKey(r.key(), w.ins):
			continue
		}
		return r
	}
	return nil
}

// uncertain reports whether it is still open if the row, or this version of
// it, will stay: PostgreSQL then waits for the transaction to end, an UPDATE's
// too, but not for a mere row lock.
func (db *DB) uncertain(session int, r *row) bool {
	return r.op != rowFree && r.op != rowLocked && r.holder != session && db.mut != mutInsertNoWait
}

// insert takes an INSERT as far as it goes, and answers the session it must
// wait for. Unique indexes are filled one after another, so a row that waits
// on the second already stands in the way of others on the first.
func (db *DB) insert(session int, w *waiting) (on int, err error) {
	for {
		if w.st.conflict != nil && !w.placing {
			on, finished, err := db.arbitrate(session, w)
			if on != nobody || finished || err != nil {
				return on, err
			}
		}
		w.placing = true
		again := false
		for u := w.placed; u < len(w.plan.tab.uniques); u++ {
			r := db.clash(session, w, u)
			switch {
			case r == nil:
			case slices.Contains(w.plan.arbiters, u):
				// Somebody was faster while this statement waited on another index.
				db.withdraw(session, w)
				again = true
			case db.uncertain(session, r):
				db.place(session, w)
				return r.holder, nil
			default:
				return nobody, w.plan.tab.duplicate(w.plan.tab.uniques[u], w.ins)
			}
			if again {
				break
			}
			w.placed = u + 1
		}
		if again {
			continue
		}
		w.placed = allEntries
		db.place(session, w)
		w.n = 1
		return nobody, w.emit(&env{args: w.args}, w.ins)
	}
}

// arbitrate is the check of ON CONFLICT before anything is inserted.
func (db *DB) arbitrate(session int, w *waiting) (on int, finished bool, err error) {
	for _, u := range w.plan.arbiters {
		r := db.clash(session, w, u)
		if r == nil {
			continue
		}
		if db.uncertain(session, r) {
			return r.holder, false, nil
		}
		if !w.st.conflict.update {
			return nobody, true, nil
		}
		if r.op != rowFree && r.holder != session {
			return r.holder, false, nil
		}
		if r.op == rowFree {
			r.op, r.holder = rowLocked, session
		}
		e := env{args: w.args, row: r.latest(), excluded: w.ins}
		ok, err := w.plan.conWhere.holds(&e)
		if err != nil || !ok {
			return nobody, true, err
		}
		next, err := w.plan.tab.assign(r.latest(), w.plan.conSets, &e)
		if err != nil {
			return nobody, true, err
		}
		r.store(next)
		w.n = 1
		return nobody, true, w.emit(&e, next)
	}
	return nobody, false, nil
}

// place makes the new row known to the indexes that have taken it.
func (db *DB) place(session int, w *waiting) {
	if w.placed == 0 {
		return
	}
	if w.id == 0 {
		db.lastID++
		w.id = db.lastID
		db.add(w.plan.tab, w.plan.tabIndex, row{id: w.id, op: rowInserted, holder: session, cur: w.ins})
	}
	db.row(w.plan.tabIndex, w.id).entries = uint8(w.placed)
}

// withdraw takes the half-inserted row of an INSERT … ON CONFLICT back.
func (db *DB) withdraw(session int, w *waiting) {
	if w.id != 0 {
		t := &db.tables[w.plan.tabIndex]
		*t = slices.DeleteFunc(*t, func(r row) bool { return r.id == w.id })
		for i := range db.sessions {
			o := db.sessions[i].wait
			if o == nil || o.on != session {
				continue
			}
			if on, _ := db.blocker(db.sessions[i].id, o); on != session {
				woken := *o
				woken.on, woken.at, woken.head, woken.queued = nobody, 0, false, false
				db.sessions[i].wait = &woken
			}
		}
	}
	w.id, w.placed, w.placing = 0, 0, false
}

// insertBlocker is what insert would wait for, without doing anything.
func (db *DB) insertBlocker(session int, w *waiting) (on int, at uint32) {
	if w.st.conflict != nil && !w.placing {
		for _, u := range w.plan.arbiters {
			r := db.clash(session, w, u)
			if r == nil {
				continue
			}
			switch {
			case db.uncertain(session, r):
				return r.holder, 0
			case w.st.conflict.update && r.op != rowFree && r.holder != session:
				return r.holder, r.id
			}
			return nobody, 0
		}
		return nobody, 0
	}
	if r := db.clash(session, w, w.placed); r != nil && db.uncertain(session, r) && !slices.Contains(w.plan.arbiters, w.placed) {
		return r.holder, 0
	}
	return nobody, 0
}

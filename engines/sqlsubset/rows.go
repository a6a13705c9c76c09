package sqlsubset

import (
	"cmp"
	"slices"
)

// read answers a SELECT without FOR UPDATE, which never waits.
func (db *DB) read(session int, w *waiting) error {
	e := env{args: w.args}
	var rows [][]value
	for i := range db.tables[w.plan.tabIndex] {
		v := db.visible(session, &db.tables[w.plan.tabIndex][i])
		if v == nil {
			continue
		}
		e.row = v
		ok, err := w.plan.where.holds(&e)
		if err != nil {
			return err
		}
		if ok {
			rows = append(rows, v)
		}
	}
	if w.plan.agg {
		e.group = rows
		w.n = 1
		return w.emit(&e, nil)
	}
	slices.SortStableFunc(rows, func(a, b []value) int { return compareRows(w.plan.order, a, b) })
	for _, r := range rows {
		if err := w.emit(&e, r); err != nil {
			return err
		}
	}
	w.n = int64(len(rows))
	return nil
}

// compareRows orders rows by ORDER BY: NULLs last, or first under DESC.
func compareRows(order []boundOrder, a, b []value) int {
	for _, o := range order {
		c := compareNulls(a[o.col], b[o.col])
		if o.desc {
			c = -c
		}
		if c != 0 {
			return c
		}
	}
	return 0
}

// emit adds one row to the answer.
func (w *waiting) emit(e *env, row []value) error {
	if w.plan.items == nil {
		return nil
	}
	e.row = row
	out := make([]value, len(w.plan.items))
	for i, it := range w.plan.items {
		v, err := it.eval(e)
		if err != nil {
			return err
		}
		out[i] = v
	}
	w.out = append(w.out, out)
	return nil
}

// choose finds the rows of an UPDATE, DELETE or SELECT FOR UPDATE on a snapshot
// taken now. Locks are taken later, row by row.
//
// Where several rows are to be locked in no given order and one of them is
// taken, a real server may hold some of the others by then or not; rather than
// explore one of these orders, the statement is refused.
func (db *DB) choose(session int, w *waiting) error {
	rows := db.tables[w.plan.tabIndex]
	e := env{args: w.args}
	var chosen []*row
	for i := range rows {
		if e.row = db.visible(session, &rows[i]); e.row == nil {
			continue
		}
		ok, err := w.plan.where.holds(&e)
		if err != nil {
			return err
		}
		if ok {
			chosen = append(chosen, &rows[i])
		}
	}
	byOrder := func(a, b *row) int { return compareRows(w.plan.order, db.visible(session, a), db.visible(session, b)) }
	slices.SortStableFunc(chosen, byOrder)
	mustWait, tie := false, false
	for i, r := range chosen {
		mustWait = mustWait || r.op != rowFree && r.holder != session
		tie = tie || i > 0 && byOrder(chosen[i-1], r) == 0
		w.rows = append(w.rows, r.id)
	}
	if !mustWait {
		return nil
	}
	if tie {
		return &UnsupportedError{What: "waiting for one of several rows locked in no given order", SQL: w.st.sql}
	}
	return db.foresee(session, w, chosen)
}

// foresee evaluates what PostgreSQL evaluates before it tries to lock: the new
// version of an UPDATE with its constraints, and the list of a SELECT, both on
// the version that was chosen. What fails there fails without waiting, even if
// the newest version would have been fine.
func (db *DB) foresee(session int, w *waiting, chosen []*row) error {
	e := env{args: w.args}
	for _, r := range chosen {
		old := db.visible(session, r)
		switch w.st.kind {
		case Update:
			if _, err := w.plan.tab.assign(old, w.plan.sets, &e); err != nil {
				return err
			}
		case Select:
			dry := waiting{plan: w.plan}
			if err := dry.emit(&e, old); err != nil {
				return err
			}
		}
	}
	return nil
}

func (db *DB) row(table int, id uint32) *row {
	for i := range db.tables[table] {
		if r := &db.tables[table][i]; r.id == id {
			return r
		}
	}
	return nil // deleted by a transaction that committed
}

// lockRows locks and changes the chosen rows one by one, until one of them is
// locked by another session, which it answers.
func (db *DB) lockRows(session int, w *waiting) (on int, err error) {
	e := env{args: w.args}
	for ; len(w.rows) > 0; w.rows = w.rows[1:] {
		r := db.row(w.plan.tabIndex, w.rows[0])
		if r == nil {
			continue
		}
		if r.op != rowFree && r.holder != session {
			return r.holder, nil
		}
		old := r.latest()
		fresh := r.op == rowFree
		if fresh {
			r.op, r.holder = rowLocked, session
		}
		// The newest version decides. When it is the version the row was chosen
		// on, the condition holds again.
		e.row = old
		ok, err := w.plan.where.holds(&e)
		if err != nil {
			return nobody, err
		}
		if !ok && db.mut != mutNoRecheck {
			if db.mut == mutDropLock && fresh {
				r.op, r.holder = rowFree, nobody
			}
			continue
		}
		if err := db.change(w, r, old, &e); err != nil {
			return nobody, err
		}
		w.n++
	}
	return nobody, nil
}

// change does to a locked row what the statement says.
func (db *DB) change(w *waiting, r *row, old []value, e *env) error {
	switch w.st.kind {
	case Update:
		next, err := w.plan.tab.assign(old, w.plan.sets, e)
		if err != nil {
			return err
		}
		r.store(next)
		return w.emit(e, next)
	case Delete:
		if r.op == rowInserted {
			id := r.id
			t := &db.tables[w.plan.tabIndex]
			*t = slices.DeleteFunc(*t, func(r row) bool { return r.id == id })
		} else {
			r.op, r.cur = rowDeleted, nil
		}
	}
	return w.emit(e, old)
}

// store makes a new version of a row its session has locked.
func (r *row) store(v []value) {
	r.cur = v
	if r.op != rowInserted {
		r.op = rowUpdated
	}
}

// assign computes the new version of a row and checks its constraints.
func (t *table) assign(old []value, sets []boundSet, e *env) ([]value, error) {
	e.row = old
	next := slices.Clone(old)
	for _, s := range sets {
		v, err := s.e.eval(e)
		if err != nil {
			return nil, err
		}
		next[s.col] = v
	}
	return next, t.validate(next)
}

// blocker is the session a statement that was woken would wait for next, and
// the row when it would queue for a row's lock.
func (db *DB) blocker(session int, w *waiting) (on int, at uint32) {
	if w.st.kind == Insert {
		return db.insertBlocker(session, w)
	}
	for _, id := range w.rows {
		if r := db.row(w.plan.tabIndex, id); r != nil {
			if r.op != rowFree && r.holder != session {
				return r.holder, r.id
			}
			break
		}
	}
	return nobody, 0
}

// comparePrimary orders rows by primary key.
func (t *table) comparePrimary(a, b []value) int {
	for _, c := range t.uniques[0].cols {
		if d := compare(a[c], b[c]); d != 0 {
			return d
		}
	}
	return 0
}

// add puts a new row at its place; after a row of the same key that the same
// transaction has deleted.
func (db *DB) add(t *table, table int, r row) {
	rows := db.tables[table]
	i, _ := slices.BinarySearchFunc(rows, r, func(a, b row) int {
		return cmp.Or(t.comparePrimary(a.key(), b.key()), -1)
	})
	db.tables[table] = slices.Insert(rows, i, r)
}

package sqlsubset

import "slices"

// Detached is a session taken out of a DB: one that holds no row, inside a
// transaction or with a statement that waits. Nobody notices it, so any number
// of them is like one of them that is put back when its turn comes.
type Detached struct {
	tx   txState
	wait *waiting
	rows [][]value // of wait, by their key: numbers of rows differ from DB to DB
}

// Detach takes a session out. It answers false, and changes nothing, when the
// session does not exist, holds a row, or has lost its client.
func (db *DB) Detach(id int) (Detached, bool) {
	i, ok := db.find(id)
	if !ok || db.sessions[i].gone {
		return Detached{}, false
	}
	for _, rows := range db.tables {
		if slices.ContainsFunc(rows, func(r row) bool { return r.op != rowFree && r.holder == id }) {
			return Detached{}, false
		}
	}
	d := Detached{tx: db.sessions[i].tx}
	if w := db.sessions[i].wait; w != nil {
		alone := *w
		alone.on, alone.at, alone.head, alone.queued, alone.rows = nobody, 0, false, false, nil
		d.wait = &alone
		t := db.schema.tables[w.plan.tabIndex]
		for _, n := range w.rows {
			for k := range db.tables[w.plan.tabIndex] {
				if r := &db.tables[w.plan.tabIndex][k]; r.id == n {
					d.rows = append(d.rows, keyOnly(t, r.key()))
				}
			}
		}
	}
	db.sessions = slices.Delete(db.sessions, i, i+1)
	db.settle()
	return d, true
}

// keyOnly is a row without what is not its primary key.
func keyOnly(t *table, r []value) []value {
	out := make([]value, len(r))
	for _, c := range t.uniques[0].cols {
		out[c] = r[c]
	}
	return out
}

// Attach puts a detached session back, under a number that is free. A row that
// its statement had chosen and that is gone is not there for it any more.
func (db *DB) Attach(id int, d Detached) {
	s := db.session(id)
	s.tx = d.tx
	if d.wait == nil {
		return
	}
	w := *d.wait
	t := db.schema.tables[w.plan.tabIndex]
	for _, key := range d.rows {
		for k := range db.tables[w.plan.tabIndex] {
			if r := &db.tables[w.plan.tabIndex][k]; t.comparePrimary(r.key(), key) == 0 {
				w.rows = append(w.rows, r.id)
			}
		}
	}
	s.wait = &w
	db.settle()
}

// Key is a canonical text, equal for what goes on alike.
func (d Detached) Key() string {
	db := DB{}
	text := db.appendSession(nil, &session{tx: d.tx, wait: d.wait}, func(n int) int { return n })
	for _, r := range d.rows {
		text = appendRow(text, r)
	}
	return string(text)
}

// MapText is DB.MapText for a detached session.
func (d Detached) MapText(f func(string) string) Detached {
	row := func(r []value) []value {
		out := slices.Clone(r)
		for i := range out {
			if out[i].kind == kindText {
				out[i].s = f(out[i].s)
			}
		}
		return out
	}
	list := func(rows [][]value) [][]value {
		out := slices.Clone(rows)
		for i := range out {
			out[i] = row(out[i])
		}
		return out
	}
	d.rows = list(d.rows)
	if d.wait != nil {
		w := *d.wait
		w.args, w.ins, w.out = row(w.args), row(w.ins), list(w.out)
		d.wait = &w
	}
	return d
}

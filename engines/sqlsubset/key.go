package sqlsubset

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// Key is a canonical text (not for reading) of the whole state: tables,
// uncommitted versions, locks, transactions, waiting statements with how far
// they have come. Two DBs with equal keys answer alike from here on, whatever
// their history; the order in which waiters came is not in it, since who goes
// first is a choice. It assumes that a session number means the same in both.
func (db *DB) Key() string {
	var buf [768]byte
	return string(db.AppendKey(buf[:0], nil))
}

// AppendKey appends the key the DB would have after Rename(rename); a nil
// rename leaves the numbers as they are. rename must be one-to-one.
func (db *DB) AppendKey(b []byte, rename func(session int) int) []byte {
	num := func(s int) int {
		if s == nobody || rename == nil {
			return s
		}
		return rename(s)
	}
	b = append(b, db.schema.id...)
	for _, rows := range db.tables {
		b = binary.AppendUvarint(b, uint64(len(rows)))
		for i := range rows {
			r := &rows[i]
			b = append(b, byte(r.op))
			if r.op != rowFree && db.mut != mutBlindKey {
				b = append(b, r.entries)
				b = binary.AppendVarint(b, int64(num(r.holder)))
			}
			b = appendRow(b, r.committed)
			b = appendRow(b, r.cur)
		}
	}
	if rename == nil {
		for i := range db.sessions {
			b = db.appendSession(b, &db.sessions[i], num)
		}
		return b
	}
	order := make([]*session, len(db.sessions))
	for i := range db.sessions {
		order[i] = &db.sessions[i]
	}
	slices.SortFunc(order, func(a, b *session) int { return cmp.Compare(num(a.id), num(b.id)) })
	for _, s := range order {
		b = db.appendSession(b, s, num)
	}
	return b
}

func appendRow(b []byte, row []value) []byte {
	if row == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	for _, v := range row {
		b = v.appendKey(b)
	}
	return b
}

func (db *DB) appendSession(b []byte, s *session, num func(int) int) []byte {
	b = binary.AppendVarint(b, int64(num(s.id)))
	b = append(b, byte(s.tx))
	if s.gone {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	w := s.wait
	if w == nil {
		return append(b, 0)
	}
	b = append(b, 1)
	b = binary.AppendUvarint(b, uint64(len(w.st.text)))
	b = append(b, w.st.text...)
	for _, a := range w.args {
		b = a.appendKey(b)
	}
	b = binary.AppendVarint(b, int64(num(w.on)))
	if w.head {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	// Rows that are gone have no say any more; the others go by their place.
	for _, id := range w.rows {
		for i := range db.tables[w.plan.tabIndex] {
			if db.tables[w.plan.tabIndex][i].id == id {
				b = binary.AppendUvarint(b, uint64(i)+1)
			}
		}
	}
	b = append(b, 0)
	b = appendRow(b, w.ins)
	b = append(b, byte(w.placed))
	if w.placing {
		b = append(b, 1)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendVarint(b, w.n)
	b = binary.AppendUvarint(b, uint64(len(w.out)))
	for _, row := range w.out {
		for _, v := range row {
			b = v.appendKey(b)
		}
	}
	return b
}

// Rename gives sessions other numbers, all at once; those not in the map keep
// theirs. It panics when two sessions would get the same number.
func (db *DB) Rename(to map[int]int) {
	num := func(s int) int {
		if n, ok := to[s]; ok && s != nobody {
			return n
		}
		return s
	}
	for _, rows := range db.tables {
		for i := range rows {
			if rows[i].op != rowFree {
				rows[i].holder = num(rows[i].holder)
			}
		}
	}
	for i := range db.sessions {
		s := &db.sessions[i]
		s.id = num(s.id)
		if s.wait != nil {
			w := *s.wait
			w.on = num(w.on)
			s.wait = &w
		}
	}
	slices.SortFunc(db.sessions, func(a, b session) int { return cmp.Compare(a.id, b.id) })
	for i := 1; i < len(db.sessions); i++ {
		if db.sessions[i].id == db.sessions[i-1].id {
			panic(fmt.Sprintf("sqlsubset: two sessions renamed to %d", db.sessions[i].id))
		}
	}
}

// MapText replaces every text value in the state — rows, arguments of waiting
// statements, answers so far — by f of it. With a one-to-one f it renames the
// clients' own names (request ids, buyers) when symmetric clients are sorted.
// Statements that order or compare such texts by < break the symmetry; the
// caller must know that there are none.
func (db *DB) MapText(f func(string) string) {
	mapRow := func(row []value) []value {
		var out []value
		for i, v := range row {
			if v.kind != kindText {
				continue
			}
			if s := f(v.s); s != v.s {
				if out == nil {
					out = slices.Clone(row) // versions are shared between clones
				}
				out[i].s = s
			}
		}
		if out == nil {
			return row
		}
		return out
	}
	for t, rows := range db.tables {
		for i := range rows {
			rows[i].committed, rows[i].cur = mapRow(rows[i].committed), mapRow(rows[i].cur)
		}
		tab := db.schema.tables[t]
		slices.SortStableFunc(rows, func(a, b row) int { return tab.comparePrimary(a.key(), b.key()) })
	}
	for i := range db.sessions {
		s := &db.sessions[i]
		if s.wait == nil {
			continue
		}
		w := *s.wait
		w.args, w.ins = mapRow(w.args), mapRow(w.ins)
		w.out = slices.Clone(w.out)
		for k := range w.out {
			w.out[k] = mapRow(w.out[k])
		}
		s.wait = &w
	}
}

package sqlsubset

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5/pgconn"
)

// DB is the state of a PostgreSQL database with its sessions: committed rows,
// uncommitted versions, row locks, open transactions and waiting statements.
// It is a plain value to be driven by one goroutine; use Clone to branch.
//
// Sessions are small non-negative numbers chosen by the caller, one for each
// client connection; a session exists from its first statement on.
type DB struct {
	schema   *schema
	tables   [][]row   // by table, ordered by primary key
	sessions []session // those with a transaction or a waiting statement, by number
	lastID   uint32    // of rows; not part of the behaviour
	mut      mutant
}

type txState uint8

const (
	txNone    txState = iota
	txOpen            // BEGIN was executed
	txAborted         // a statement of the block failed; locks are gone already
)

type session struct {
	id   int
	tx   txState
	gone bool     // the client went away while its statement waited
	wait *waiting // never changed in place: clones share it
}

// nobody is the session number of nobody.
const nobody = -1

type rowOp uint8

const (
	rowFree   rowOp = iota
	rowLocked       // FOR UPDATE, or a re-check that failed
	rowUpdated
	rowDeleted
	rowInserted
)

// row is one logical row: its committed version, and what the transaction that
// holds its lock has made of it.
type row struct {
	id        uint32
	op        rowOp
	entries   uint8 // rowInserted: how many unique indexes have its entry by now
	holder    int
	committed []value // nil for rowInserted
	cur       []value // rowUpdated, rowInserted
}

// key is a version that has the row's key columns, which never change.
func (r *row) key() []value {
	if r.op == rowInserted {
		return r.cur
	}
	return r.committed
}

// latest is the newest version, for the holder.
func (r *row) latest() []value {
	switch r.op {
	case rowUpdated, rowInserted:
		return r.cur
	case rowDeleted:
		return nil
	}
	return r.committed
}

// visible is the version in a snapshot that session s takes now; nil for none.
func (db *DB) visible(s int, r *row) []value {
	if r.holder == s || db.mut == mutDirtyRead {
		return r.latest()
	}
	return r.committed
}

// mutant breaks the engine on purpose, to show that the tests notice.
type mutant uint8

const (
	sound           mutant = iota
	mutDropLock            // a failed re-check gives the lock back
	mutNoRecheck           // WHERE is not evaluated again after a wait
	mutReselect            // a statement that waited chooses its rows again
	mutOneWaiter           // only the lowest session number may go on
	mutKeepLocks           // a failed statement keeps its transaction's locks
	mutInsertNoWait        // INSERT takes an uncommitted key for a committed one
	mutNoQueue             // who is first in the queue of a row is never cancelled for it
	mutBlindKey            // Key leaves out who holds a lock
	mutDirtyRead           // a snapshot shows uncommitted rows
)

// NewDB is an empty database.
func NewDB() *DB { return &DB{schema: newSchema()} }

// Clone copies the state; both go their own ways.
func (db *DB) Clone() *DB {
	c := &DB{schema: db.schema, lastID: db.lastID, mut: db.mut}
	c.tables = make([][]row, len(db.tables))
	for i, t := range db.tables {
		c.tables[i] = slices.Clone(t)
	}
	c.sessions = slices.Clone(db.sessions)
	return c
}

func (db *DB) find(id int) (int, bool) {
	for i := range db.sessions {
		if db.sessions[i].id >= id {
			return i, db.sessions[i].id == id
		}
	}
	return len(db.sessions), false
}

// session answers the session's place, made when missing.
func (db *DB) session(id int) *session {
	if id < 0 {
		panic(fmt.Sprintf("sqlsubset: session %d is negative", id))
	}
	i, ok := db.find(id)
	if !ok {
		db.sessions = slices.Insert(db.sessions, i, session{id: id})
	}
	return &db.sessions[i]
}

// rest forgets a session that has neither a transaction nor a statement.
func (db *DB) rest(id int) {
	if i, ok := db.find(id); ok && db.sessions[i].tx == txNone && db.sessions[i].wait == nil {
		db.sessions = slices.Delete(db.sessions, i, i+1)
	}
}

// Exec runs one statement of a session. Arguments are integers, strings, bools
// or nil. It panics when the session still waits (a connection has one
// statement at a time).
func (db *DB) Exec(session int, st *Statement, args []any) (Reply, Status) {
	defer db.rest(session)
	s := db.session(session)
	if s.wait != nil {
		panic(fmt.Sprintf("sqlsubset: session %d executes %q while it waits with %q", session, st.sql, s.wait.st.sql))
	}
	switch st.kind {
	case Begin:
		if s.tx == txAborted {
			return inAborted(), Done
		}
		s.tx = txOpen // inside a transaction PostgreSQL only warns
		return Reply{Tag: "BEGIN"}, Done
	case Commit, Rollback:
		tag := "ROLLBACK"
		if st.kind == Commit && s.tx != txAborted {
			tag = "COMMIT"
		}
		s.tx = txNone
		db.end(session, tag == "COMMIT")
		return Reply{Tag: tag}, Done
	case CreateTable:
		return db.create(s, st), Done
	}
	if s.tx == txAborted {
		return inAborted(), Done
	}
	run, err := db.start(st, args)
	if err != nil {
		return db.fail(session, err), Done
	}
	if st.kind == Select && !st.forUpdate {
		if err := db.read(session, run); err != nil {
			return db.fail(session, err), Done
		}
		return run.reply(), Done
	}
	if st.kind == Insert {
		err = db.prepareInsert(run)
	} else {
		err = db.choose(session, run)
	}
	if err != nil {
		return db.fail(session, err), Done
	}
	return db.run(session, run)
}

func inAborted() Reply {
	return Reply{Err: pgErr(codeInAbortedTx, "current transaction is aborted, commands ignored until end of transaction block")}
}

func (db *DB) create(s *session, st *Statement) Reply {
	if s.tx != txNone {
		return Reply{Err: &UnsupportedError{What: "CREATE TABLE inside a transaction", SQL: st.sql}}
	}
	sc, err := db.schema.with(st)
	if err != nil {
		return Reply{Err: err}
	}
	db.schema = sc
	for len(db.tables) < len(sc.tables) {
		db.tables = append(db.tables, nil)
	}
	return Reply{Tag: "CREATE TABLE"}
}

func (db *DB) start(st *Statement, args []any) (*waiting, error) {
	p, err := db.schema.plan(st)
	if err != nil {
		return nil, err
	}
	if len(args) != st.params {
		return nil, &ArgumentError{Param: len(args) + 1, Type: fmt.Sprintf("nothing: %d arguments for %d parameters", len(args), st.params)}
	}
	run := &waiting{st: st, plan: p, on: nobody}
	for i, a := range args {
		v, err := argValue(a, p.params[i], i+1)
		if err != nil {
			return nil, err
		}
		run.args = append(run.args, v)
	}
	return run, nil
}

// run takes a statement as far as it goes.
func (db *DB) run(session int, w *waiting) (Reply, Status) {
	var err error
	w.on, w.at, w.head, w.queued = nobody, 0, false, false
	on := nobody
	if w.st.kind == Insert {
		on, err = db.insert(session, w)
	} else {
		on, err = db.lockRows(session, w)
	}
	if err != nil {
		return db.fail(session, err), Done
	}
	if on != nobody {
		db.session(session).wait = w // settle lets it wait
		db.settle()
		return Reply{}, Blocked
	}
	s := db.session(session)
	s.wait = nil
	if s.tx == txNone {
		db.end(session, true)
	}
	if s.gone {
		db.hangUp(session)
	}
	db.settle()
	return w.reply(), Done
}

// fail answers an error. A PostgreSQL error undoes the transaction at once,
// and so gives its locks back before the client's ROLLBACK; any other error
// never reached the server.
func (db *DB) fail(session int, err error) Reply {
	s := db.session(session)
	s.wait = nil
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if s.tx == txOpen {
			s.tx = txAborted
		}
		if db.mut != mutKeepLocks || s.tx == txNone {
			db.end(session, false)
		}
		if s.gone {
			db.hangUp(session)
		}
	}
	if errors.Is(err, errNumericRange) {
		err = &UnsupportedError{What: "sum beyond 64 bits"}
	}
	return Reply{Err: err}
}

// end ends the session's transaction in the tables and wakes who waits for it.
func (db *DB) end(session int, commit bool) {
	for t, rows := range db.tables {
		removed := false
		for i := range rows {
			r := &rows[i]
			if r.op == rowFree || r.holder != session {
				continue
			}
			switch {
			case commit && r.op == rowDeleted, !commit && r.op == rowInserted:
				removed = true
				r.committed, r.cur = nil, nil
			case commit && (r.op == rowUpdated || r.op == rowInserted):
				r.committed = r.cur
			}
			r.cur, r.op, r.holder, r.entries = nil, rowFree, nobody, 0
		}
		if removed {
			db.tables[t] = slices.DeleteFunc(rows, func(r row) bool { return r.committed == nil && r.op == rowFree })
		}
	}
	for i := range db.sessions {
		if w := db.sessions[i].wait; w != nil && w.on == session {
			woken := *w
			woken.on, woken.at, woken.head, woken.queued = nobody, 0, false, false
			db.sessions[i].wait = &woken
		}
	}
	db.settle()
}

// Disconnect ends a session whose connection the server knows to be gone: its
// transaction is rolled back, its locks are released, a waiting statement is
// given up. This is what pgx brings about when it loses a connection, or its
// context ends, while a statement waits: it sends a cancel request from a new
// connection.
//
// A client that dies while its statement is blocked sends none, and a
// PostgreSQL server with default settings does not notice: use Abandon for that.
func (db *DB) Disconnect(session int) {
	if _, ok := db.find(session); ok {
		db.hangUp(session)
	}
}

// Abandon is what happens when a client dies or its connection is cut. An idle
// session ends as by Disconnect. A blocked statement, however, stays in the
// queue, since the server looks at the connection only when it has something
// to say (client_connection_check_interval is 0 by default): it goes on with
// Resume like any other, and takes effect if it commits by itself; only then
// is the session ended and an open transaction rolled back. It reports whether
// such a statement was left behind.
func (db *DB) Abandon(session int) bool {
	i, ok := db.find(session)
	if !ok {
		return false
	}
	if db.sessions[i].wait == nil {
		db.hangUp(session)
		return false
	}
	db.sessions[i].gone = true
	return true
}

func (db *DB) hangUp(session int) {
	s := db.session(session)
	s.tx, s.wait, s.gone = txNone, nil, false
	db.end(session, false)
	db.rest(session)
}

// Sessions lists the sessions that have a transaction or a statement in
// progress: those that hold rows in the order of their rows, then the others in
// ascending order.
func (db *DB) Sessions() []int {
	var out []int
	add := func(id int) {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for _, rows := range db.tables {
		for i := range rows {
			if rows[i].op != rowFree {
				add(rows[i].holder)
			}
		}
	}
	for _, s := range db.sessions {
		add(s.id)
	}
	return out
}

// InTransaction reports whether the session is inside BEGIN … COMMIT, an
// aborted block included.
func (db *DB) InTransaction(session int) bool {
	i, ok := db.find(session)
	return ok && db.sessions[i].tx != txNone
}

// Table answers the columns and the committed rows of a table in the order of
// its primary key; an error when there is no such table.
func (db *DB) Table(name string) (columns []string, rows [][]any, err error) {
	t, idx, err := db.schema.lookup(name)
	if err != nil {
		return nil, nil, err
	}
	for _, c := range t.cols {
		columns = append(columns, c.name)
	}
	for _, r := range db.tables[idx] {
		if r.committed == nil {
			continue
		}
		out := make([]any, len(t.cols))
		for i, v := range r.committed {
			out[i] = v.goValue(t.cols[i].typ)
		}
		rows = append(rows, out)
	}
	return columns, rows, nil
}

// Tables lists the names of the tables in the order they were created.
func (db *DB) Tables() []string {
	var out []string
	for _, t := range db.schema.tables {
		out = append(out, t.name)
	}
	return out
}

// Restarted is the database after the server died and came back: what was
// committed, no session, no lock.
func (db *DB) Restarted() *DB {
	c := db.Clone()
	for _, s := range db.Sessions() {
		c.Disconnect(s)
	}
	return c
}

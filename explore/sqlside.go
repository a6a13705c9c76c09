package explore

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"stockproof/engines/sqlsubset"
	"stockproof/schemes"
)

// sqlCall is a statement that waits for its answer.
type sqlCall struct {
	step   step
	answer chan sqlAnswer
}

type sqlAnswer struct {
	reply sqlsubset.Reply
	err   error
}

// sqlSide is the database as a client sees it: database/sql over a driver
// whose statements are steps.
type sqlSide struct {
	db   *sql.DB
	wire *wire
	base int // number of the first connection: each operation has its own
}

func openSQL(w *wire, op int) *sqlSide {
	s := &sqlSide{wire: w, base: op * connsPerOp}
	s.db = sql.OpenDB(sqlsubset.NewConnector(s))
	return s
}

func (s *sqlSide) close() { s.db.Close() }

// Exec implements sqlsubset.Host: it parks the caller.
func (s *sqlSide) Exec(_ context.Context, conn int, _ *sqlsubset.Statement, text string, args []any) (sqlsubset.Reply, error) {
	words := []string{text}
	for _, a := range args {
		word, err := sqlWord(a)
		if err != nil {
			return sqlsubset.Reply{}, err
		}
		words = append(words, word)
	}
	if conn >= connsPerOp {
		return sqlsubset.Reply{}, &sqlsubset.UnsupportedError{What: fmt.Sprintf("database connection number %d of one operation", conn+1)}
	}
	call := &sqlCall{step: step{sql: true, args: joinArgs(words), conn: s.base + conn}, answer: make(chan sqlAnswer, 1)}
	s.wire.mu.Lock()
	if s.wire.dead {
		err := s.wire.refuse()
		s.wire.mu.Unlock()
		return sqlsubset.Reply{}, err
	}
	s.wire.calls = append(s.wire.calls, call)
	s.wire.stir()
	s.wire.mu.Unlock()
	a := <-call.answer
	return a.reply, a.err
}

// Closed implements sqlsubset.Host.
func (s *sqlSide) Closed(conn int) {
	s.wire.mu.Lock()
	defer s.wire.mu.Unlock()
	if !s.wire.dead {
		s.wire.closed = append(s.wire.closed, s.base+conn)
		sort.Ints(s.wire.closed)
	}
}

// sqlWord writes an argument with its type, so that it can be read back.
func sqlWord(a any) (string, error) {
	switch a := a.(type) {
	case nil:
		return "n", nil
	case int64:
		return "i" + strconv.FormatInt(a, 10), nil
	case string:
		return "s" + a, nil
	case []byte:
		return "s" + string(a), nil
	case bool:
		return "b" + strconv.FormatBool(a), nil
	}
	return "", &sqlsubset.UnsupportedError{What: fmt.Sprintf("argument of type %T", a)}
}

func sqlValue(word string) any {
	switch word[0] {
	case 'i':
		n, _ := strconv.ParseInt(word[1:], 10, 64)
		return n
	case 's':
		return word[1:]
	case 'b':
		return word[1:] == "true"
	}
	return nil
}

// wireReply is a reply as text, so that it can be part of an event.
type wireReply struct {
	Columns  []string   `json:",omitempty"`
	Rows     [][]string `json:",omitempty"` // see sqlWord
	Affected int64      `json:",omitempty"`
	Tag      string     `json:",omitempty"`
	Code     string     `json:",omitempty"` // SQLSTATE of an error
	Message  string     `json:",omitempty"`
	Name     string     `json:",omitempty"` // of the constraint
}

func encodeReply(r sqlsubset.Reply) (string, error) {
	w := wireReply{Columns: r.Columns, Affected: r.Affected, Tag: r.Tag}
	if r.Err != nil {
		var pg *pgconn.PgError
		if !errors.As(r.Err, &pg) { // ours, or an argument the client cannot send
			return "", r.Err
		}
		w = wireReply{Code: pg.Code, Message: pg.Message, Name: pg.ConstraintName}
	}
	for _, row := range r.Rows {
		words := make([]string, len(row))
		for i, v := range row {
			var err error
			if words[i], err = sqlWord(v); err != nil {
				return "", err
			}
		}
		w.Rows = append(w.Rows, words)
	}
	text, err := json.Marshal(w)
	return string(text), err
}

func decodeReply(text string) sqlsubset.Reply {
	var w wireReply
	if err := json.Unmarshal([]byte(text), &w); err != nil {
		return sqlsubset.Reply{Err: fmt.Errorf("unreadable reply: %w", err)}
	}
	r := sqlsubset.Reply{Columns: w.Columns, Affected: w.Affected, Tag: w.Tag}
	if w.Code != "" {
		r.Err = &pgconn.PgError{Severity: "ERROR", SeverityUnlocalized: "ERROR", Code: w.Code, Message: w.Message, ConstraintName: w.Name}
	}
	for _, words := range w.Rows {
		row := make([]any, len(words))
		for i, word := range words {
			row[i] = sqlValue(word)
		}
		r.Rows = append(r.Rows, row)
	}
	return r
}

func (w *wire) answerSQL(call *sqlCall, text string) {
	w.end(call, sqlAnswer{reply: decodeReply(text)})
}

// cutSQL is a connection to the database that breaks: pgx reports EOF.
func (w *wire) cutSQL(call *sqlCall) { w.end(call, sqlAnswer{err: io.ErrUnexpectedEOF}) }

func (w *wire) end(call *sqlCall, a sqlAnswer) {
	w.mu.Lock()
	w.calls = slices.DeleteFunc(w.calls, func(c *sqlCall) bool { return c == call })
	w.mu.Unlock()
	call.answer <- a
}

// How many database connections one operation and one client may open.
const (
	connsPerOp = 8
	maxConns   = connsPerOp * maxOps
)

// session is the server's number for a client's connection.
func session(client, conn int) int { return client*maxConns + conn }

// sqlState is the database at one moment; nil where a scheme has none. The DB
// in it is never changed.
type sqlState struct{ db *sqlsubset.DB }

func (s sqlState) key() string {
	if s.db == nil {
		return ""
	}
	return "sql " + s.db.Key()
}

// exec runs a statement for a client; its connections are numbered afresh in
// each operation.
func (s sqlState) exec(st step, client, op int) (after sqlState, reply string, blocked bool, err error) {
	words := splitArgs(st.args)
	parsed, err := sqlsubset.Parse(words[0])
	if err != nil {
		return s, "", false, fmt.Errorf("%w: %w", ErrScheme, err)
	}
	args := make([]any, len(words)-1)
	for i, w := range words[1:] {
		args[i] = sqlValue(w)
	}
	db := s.db.Clone()
	r, status := db.Exec(session(client, op*connsPerOp+st.conn), parsed, args)
	return finishSQL(db, r, status)
}

func finishSQL(db *sqlsubset.DB, r sqlsubset.Reply, status sqlsubset.Status) (sqlState, string, bool, error) {
	if status == sqlsubset.Blocked {
		return sqlState{db}, "", true, nil
	}
	text, err := encodeReply(r)
	if err != nil {
		return sqlState{}, "", false, fmt.Errorf("%w: %w", ErrScheme, err)
	}
	return sqlState{db}, text, false, nil
}

// grant lets a blocked statement go on; kill cancels it in a deadlock.
func (s sqlState) grant(session int, kill bool) (after sqlState, reply string, blocked bool, err error) {
	db := s.db.Clone()
	if kill {
		return finishSQL(db, db.Kill(session), sqlsubset.Done)
	}
	r, status := db.Resume(session)
	return finishSQL(db, r, status)
}

// abandon is the end of sessions whose client has gone or has hung up.
func (s sqlState) abandon(sessions []int) sqlState {
	if s.db == nil {
		return s
	}
	db := s.db.Clone()
	for _, n := range sessions {
		db.Abandon(n)
	}
	return sqlState{db}
}

// sessions lists those with a transaction or a statement in progress.
func (s sqlState) sessions() []int {
	if s.db == nil {
		return nil
	}
	return s.db.Sessions()
}

// renamed gives clients other slots, and other names in what is stored.
func (s sqlState) renamed(inv [maxSlots]int8, names *strings.Replacer) sqlState {
	if s.db == nil {
		return s
	}
	to := map[int]int{}
	for _, n := range s.db.Sessions() {
		if slot := n / maxConns; slot < maxSlots && inv[slot] >= 0 {
			to[n] = session(int(inv[slot]), n%maxConns)
		}
	}
	db := s.db.Clone()
	db.Rename(to)
	db.MapText(names.Replace)
	return sqlState{db}
}

// allConns are the numbers a client's database connections may have.
var allConns = func() []int {
	conns := make([]int, maxConns)
	for i := range conns {
		conns[i] = i
	}
	return conns
}()

// newMoment is servers that hold nothing but the tables.
func newMoment(entry schemes.Entry) (moment, error) {
	if !entry.Stores.SQL {
		return moment{}, nil
	}
	db := sqlsubset.NewDB()
	parsed, err := sqlsubset.Parse(schemes.Schema())
	if err != nil {
		return moment{}, err
	}
	if r, _ := db.Exec(0, parsed, nil); r.Err != nil {
		return moment{}, r.Err
	}
	return moment{sql: sqlState{db}}, nil
}

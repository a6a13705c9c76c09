// Package fidelity holds sqlsubset's engine against a real PostgreSQL server:
// it sends the same statements in the same order to both and compares reply by
// reply, which statements block, and the rows at the end.
//
// A real server makes choices of its own — who of several waiters goes first,
// who of a deadlock is cancelled. The engine offers those choices; a Follower
// keeps every state of the engine that is consistent with what the server did,
// and the comparison fails when none is left.
package fidelity

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"stockproof/engines/sqlsubset"
)

// Connect opens a connection of its own to the server under test. The role must
// be allowed to create a schema, to see the sessions of its own role, and to
// end them (pg_terminate_backend).
type Connect func(ctx context.Context) (*pgx.Conn, error)

// schemaName is the PostgreSQL schema that the package owns on the server.
const schemaName = "stockproof_fidelity"

// Server drives sessions of a real server one statement at a time. It is for
// one goroutine; Close it.
type Server struct {
	connect  Connect
	monitor  *pgx.Conn
	sessions map[int]*backend
	answers  chan arrival
	ddl      string
	tables   []string

	// Polls counts the questions asked to find out who is blocked.
	Polls int
}

// backend is one session: a connection and the server process behind it.
type backend struct {
	conn   *pgx.Conn
	pid    uint32
	flying bool // a statement was sent and has not answered
	gone   bool // the client's side was closed while the statement flew
	read   bool // gone, and our own reader has come to its end
}

type arrival struct {
	session int
	conn    *pgx.Conn
	reply   sqlsubset.Reply
}

// Answer is one reply that came in, or the end of an abandoned session.
type Answer struct {
	Session int
	Reply   sqlsubset.Reply
	Gone    bool // the client had been cut off: there is no reply to see
}

// Open makes a Server; it connects once, for its own questions.
func Open(ctx context.Context, connect Connect) (*Server, error) {
	s := &Server{connect: connect, sessions: map[int]*backend{}, answers: make(chan arrival, 64)}
	var err error
	if s.monitor, err = connect(ctx); err != nil {
		return nil, fmt.Errorf("fidelity: connect: %w", err)
	}
	return s, nil
}

// Close ends every session and drops the schema. Statements still in flight are ended.
func (s *Server) Close(ctx context.Context) error {
	err := s.endSessions(ctx, func(*backend) bool { return true })
	_, dropErr := s.monitor.Exec(ctx, "DROP SCHEMA IF EXISTS "+schemaName+" CASCADE")
	return errors.Join(err, dropErr, s.monitor.Close(ctx))
}

// Reset brings the server to a state with the given tables and rows and no open
// transaction. Tables are made anew only when ddl differs from the last one.
func (s *Server) Reset(ctx context.Context, ddl string, tables, setup []string) error {
	remake := ddl != s.ddl
	for _, b := range s.sessions {
		if !b.flying && !b.conn.IsClosed() && b.conn.PgConn().TxStatus() != 'I' {
			// A failure shows in the connection's state, which is looked at next.
			_, _ = b.conn.Exec(ctx, "ROLLBACK")
		}
	}
	err := s.endSessions(ctx, func(b *backend) bool {
		return remake || b.flying || b.gone || b.conn.IsClosed() || b.conn.PgConn().TxStatus() != 'I'
	})
	if err != nil {
		return err
	}
	var script []string
	if remake {
		s.ddl = ""
		script = append(script, "SET client_min_messages = warning",
			"DROP SCHEMA IF EXISTS "+schemaName+" CASCADE", "CREATE SCHEMA "+schemaName, "SET search_path = "+schemaName, ddl)
	} else {
		for _, t := range s.tables {
			script = append(script, "DELETE FROM "+pgx.Identifier{t}.Sanitize())
		}
	}
	for _, q := range append(script, setup...) {
		if _, err := s.monitor.Exec(ctx, q); err != nil {
			return fmt.Errorf("fidelity: set up with %q: %w", q, err)
		}
	}
	s.ddl, s.tables = ddl, tables
	return nil
}

// endSessions ends the sessions that match, and waits until the server has.
func (s *Server) endSessions(ctx context.Context, match func(*backend) bool) error {
	for id, b := range s.sessions {
		if !match(b) {
			continue
		}
		if b.read {
			b.flying = false
		}
		if _, err := s.monitor.Exec(ctx, "SELECT pg_terminate_backend($1)", int32(b.pid)); err != nil {
			return fmt.Errorf("fidelity: end session %d: %w", id, err)
		}
		for b.flying {
			select {
			case a := <-s.answers:
				s.sessions[a.session].flying = false
			case <-ctx.Done():
				return fmt.Errorf("fidelity: end session %d: %w", id, ctx.Err())
			}
		}
		b.conn.Close(ctx) // the server has closed it already: nothing to learn from an error
		if err := s.untilGone(ctx, b.pid); err != nil {
			return err
		}
		delete(s.sessions, id)
	}
	return nil
}

func (s *Server) untilGone(ctx context.Context, pid uint32) error {
	for {
		seen, err := s.look(ctx, []int32{int32(pid)})
		if err != nil {
			return err
		}
		if !seen[int32(pid)].alive {
			return nil
		}
	}
}

func (s *Server) session(ctx context.Context, id int) (*backend, error) {
	if b := s.sessions[id]; b != nil {
		return b, nil
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("fidelity: connect session %d: %w", id, err)
	}
	if _, err := conn.Exec(ctx, "SET search_path = "+schemaName); err != nil {
		conn.Close(ctx)
		return nil, fmt.Errorf("fidelity: session %d: %w", id, err)
	}
	b := &backend{conn: conn, pid: conn.PgConn().PID()}
	s.sessions[id] = b
	return b, nil
}

// Send starts a statement; Settle tells what became of it.
func (s *Server) Send(ctx context.Context, id int, sql string, args []any) error {
	b, err := s.session(ctx, id)
	if err != nil {
		return err
	}
	if b.flying {
		return fmt.Errorf("fidelity: session %d already has a statement in flight", id)
	}
	b.flying = true
	go func() { s.answers <- arrival{id, b.conn, ask(ctx, b.conn, sql, args)} }()
	return nil
}

// Cut ends a session as the death of its client does. A statement in flight
// stays on the server until it has its turn.
//
// Only the sending half is closed, so that the server sees the end of the
// stream and pgx sees nothing: on a lost connection pgx would send a cancel
// request, and a dead client does not.
func (s *Server) Cut(ctx context.Context, id int) error {
	b := s.sessions[id]
	if b == nil {
		return nil
	}
	half, ok := b.conn.PgConn().Conn().(interface{ CloseWrite() error })
	if !ok {
		return fmt.Errorf("fidelity: cannot close one half of a %T", b.conn.PgConn().Conn())
	}
	if err := half.CloseWrite(); err != nil {
		return fmt.Errorf("fidelity: cut session %d: %w", id, err)
	}
	if b.flying {
		b.gone = true
		return nil
	}
	delete(s.sessions, id)
	err := s.untilGone(ctx, b.pid)
	b.conn.PgConn().Conn().Close()
	return err
}

type sight struct {
	alive    bool
	blockers []int32
}

// look asks the server who of its processes waits for whom.
func (s *Server) look(ctx context.Context, pids []int32) (map[int32]sight, error) {
	s.Polls++
	rows, err := s.monitor.Query(ctx,
		`SELECT p, EXISTS (SELECT FROM pg_stat_get_activity(p)), pg_blocking_pids(p) FROM unnest($1::int4[]) p`, pids)
	if err != nil {
		return nil, fmt.Errorf("fidelity: look for blocked sessions: %w", err)
	}
	defer rows.Close()
	out := map[int32]sight{}
	for rows.Next() {
		var pid int32
		var st sight
		if err := rows.Scan(&pid, &st.alive, &st.blockers); err != nil {
			return nil, fmt.Errorf("fidelity: look for blocked sessions: %w", err)
		}
		out[pid] = st
	}
	return out, rows.Err()
}

// pollEvery is the pause between two looks while a statement has not answered.
const pollEvery = 300 * time.Microsecond

// Settle waits until the server is at rest: every statement sent has answered
// or is blocked by a session that has nothing in flight. It answers what came
// in, in no particular order, and who is still blocked, in ascending order. It
// returns an error when ctx ends first; that is never a verdict.
func (s *Server) Settle(ctx context.Context) (answers []Answer, blocked []int, err error) {
	calm := 0 // looks in a row that saw everybody blocked
	for {
		var flying []int
		var pids []int32
		for id, b := range s.sessions {
			if b.flying {
				flying = append(flying, id)
				pids = append(pids, int32(b.pid))
			}
		}
		if len(flying) == 0 {
			return answers, nil, nil
		}
		timer := time.NewTimer(pollEvery)
		select {
		case a := <-s.answers:
			timer.Stop()
			calm = 0
			b := s.sessions[a.session]
			if b.gone {
				b.read = true // a dead client reads no replies
				continue
			}
			b.flying = false
			answers = append(answers, Answer{Session: a.session, Reply: a.reply})
			continue
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return answers, nil, fmt.Errorf("fidelity: the server did not come to rest: %w", ctx.Err())
		}
		seen, err := s.look(ctx, pids)
		if err != nil {
			return answers, nil, err
		}
		for _, id := range flying {
			if b := s.sessions[id]; b.gone && b.read && !seen[int32(b.pid)].alive {
				b.conn.PgConn().Conn().Close()
				answers = append(answers, Answer{Session: id, Gone: true})
				delete(s.sessions, id)
				seen = nil
				break
			}
		}
		if seen == nil || !atRest(seen) {
			calm = 0
			continue
		}
		// One look is not an atomic picture: a process seen blocked may have
		// been set free by one that was seen after it. Two looks are enough,
		// since nobody was running in between.
		if calm++; calm == 2 {
			sort.Ints(flying)
			return answers, flying, nil
		}
	}
}

// atRest reports whether everybody looked at is blocked, and not in a circle:
// the server breaks circles.
func atRest(seen map[int32]sight) bool {
	const visiting, fine = 1, 2
	state := map[int32]int{}
	var visit func(pid int32) bool
	visit = func(pid int32) bool {
		st, flying := seen[pid]
		if !flying || state[pid] == fine {
			return true
		}
		if state[pid] == visiting || len(st.blockers) == 0 {
			return false
		}
		state[pid] = visiting
		for _, by := range st.blockers {
			if !visit(by) {
				return false
			}
		}
		state[pid] = fine
		return true
	}
	for pid := range seen {
		if !visit(pid) {
			return false
		}
	}
	return true
}

// ask runs one statement and puts the answer into the engine's form.
func ask(ctx context.Context, conn *pgx.Conn, sql string, args []any) sqlsubset.Reply {
	rows, err := conn.Query(ctx, sql, args...)
	if err != nil {
		return sqlsubset.Reply{Err: err}
	}
	defer rows.Close()
	var r sqlsubset.Reply
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return sqlsubset.Reply{Err: err}
		}
		for i, v := range values {
			switch v := v.(type) {
			case int32:
				values[i] = int64(v)
			case pgtype.Numeric:
				if values[i], err = v.Value(); err != nil {
					return sqlsubset.Reply{Err: err}
				}
			}
		}
		r.Rows = append(r.Rows, values)
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return sqlsubset.Reply{Err: err}
	}
	for _, f := range rows.FieldDescriptions() {
		r.Columns = append(r.Columns, f.Name)
	}
	r.Tag, r.Affected = rows.CommandTag().String(), rows.CommandTag().RowsAffected()
	return r
}

// Table reads the committed rows of a table, one line each, sorted.
func (s *Server) Table(ctx context.Context, name string) ([]string, error) {
	r := ask(ctx, s.monitor, "SELECT * FROM "+pgx.Identifier{name}.Sanitize(), nil)
	if r.Err != nil {
		return nil, fmt.Errorf("fidelity: read table %s: %w", name, r.Err)
	}
	return lines(r.Rows), nil
}

func lines(rows [][]any) []string {
	out := make([]string, 0, len(rows))
	for _, row := range rows {
		out = append(out, sqlsubset.RowString(row))
	}
	sort.Strings(out)
	return out
}

// Describe writes a reply with all that Same compares; where rows come in no
// given order they are sorted.
func Describe(r sqlsubset.Reply, ordered bool) string {
	if r.Err != nil {
		var pg *pgconn.PgError
		if errors.As(r.Err, &pg) {
			return fmt.Sprintf("%s %s: %s [%s %s]", pg.Severity, pg.Code, pg.Message, pg.ConstraintName, pg.ColumnName)
		}
		return "error on the client's side"
	}
	text := fmt.Sprintf("%s %q", r.Tag, r.Columns)
	if ordered {
		for _, row := range r.Rows {
			text += " " + sqlsubset.RowString(row)
		}
		return text
	}
	for _, l := range lines(r.Rows) {
		text += " " + l
	}
	return text
}

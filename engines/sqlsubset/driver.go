package sqlsubset

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// Host runs the statements of a driver's connections. Each statement, BEGIN,
// COMMIT and ROLLBACK among them, is one call and one step; there is no step
// for preparing. Calls for one connection never overlap.
type Host interface {
	// Exec runs a statement to its end and may park the caller until then. An
	// error of its own (not Reply.Err) means that the connection is lost; the
	// statement may or may not have been executed. Only an error that has a
	// method SafeToRetry() bool answering true says that nothing was sent.
	Exec(ctx context.Context, conn int, st *Statement, sql string, args []any) (Reply, error)
	// Closed tells that the client has closed a connection, once for each.
	Closed(conn int)
}

// Dialer may be implemented by a Host that wants to hear of, or refuse, new
// connections. Without it every connection succeeds.
type Dialer interface {
	Dial(ctx context.Context, conn int) error
}

// NewConnector makes a connector for sql.OpenDB. Its connections are numbered
// from 0 in the order they are opened. The driver has no goroutines of its own,
// so it may be used in a testing/synctest bubble; database/sql has one, which
// ends with DB.Close.
//
// Errors are those of pgx's database/sql driver: a server's error is a
// *pgconn.PgError; a lost connection is the Host's error; if that says nothing
// was sent, ExecContext answers driver.ErrBadConn, which makes database/sql try
// again on a new connection outside a transaction; COMMIT of an aborted transaction is pgx.ErrTxCommitRollback.
func NewConnector(host Host) driver.Connector { return &connector{host: host} }

type connector struct {
	host Host

	mu     sync.Mutex
	conns  int
	parsed map[string]*Statement
}

// maxParsed bounds the statements kept, for schemes that write values into
// their SQL.
const maxParsed = 1024

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	c.mu.Lock()
	id := c.conns
	c.conns++
	c.mu.Unlock()
	if d, ok := c.host.(Dialer); ok {
		if err := d.Dial(ctx, id); err != nil {
			return nil, err
		}
	}
	return &conn{c: c, id: id}, nil
}

func (c *connector) Driver() driver.Driver { return connectorDriver{c} }

// connectorDriver is what sql.DB.Driver answers; it cannot open by name.
type connectorDriver struct{ c *connector }

func (connectorDriver) Open(string) (driver.Conn, error) {
	return nil, errors.New("sqlsubset: open with sql.OpenDB(sqlsubset.NewConnector(host))")
}

func (c *connector) parse(query string) (*Statement, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if st, ok := c.parsed[query]; ok {
		return st, nil
	}
	st, err := Parse(query)
	if err != nil {
		return nil, err
	}
	if c.parsed == nil || len(c.parsed) >= maxParsed {
		c.parsed = map[string]*Statement{}
	}
	c.parsed[query] = st
	return st, nil
}

// conn is one connection. As in pgx, lost means that nothing works any more
// and every use answers driver.ErrBadConn.
type conn struct {
	c      *connector
	id     int
	inTx   bool
	lost   bool
	closed bool
}

var (
	_ driver.ExecerContext      = (*conn)(nil)
	_ driver.QueryerContext     = (*conn)(nil)
	_ driver.ConnBeginTx        = (*conn)(nil)
	_ driver.ConnPrepareContext = (*conn)(nil)
	_ driver.SessionResetter    = (*conn)(nil)
	_ driver.Validator          = (*conn)(nil)
	_ driver.Pinger             = (*conn)(nil)
)

// step hands one statement to the host.
func (c *conn) step(ctx context.Context, query string, args []driver.NamedValue) (Reply, error) {
	st, err := c.c.parse(query)
	if err != nil {
		return Reply{}, err
	}
	values := make([]any, len(args))
	for i, a := range args {
		if a.Name != "" {
			return Reply{}, &UnsupportedError{What: "named argument " + a.Name, SQL: query}
		}
		values[i] = a.Value
	}
	reply, err := c.c.host.Exec(ctx, c.id, st, query, values)
	if err != nil {
		c.lost = true
		return Reply{}, err
	}
	if reply.Err != nil {
		var pg *pgconn.PgError
		if errors.As(reply.Err, &pg) && (pg.Severity == "FATAL" || pg.Severity == "PANIC") {
			c.lost = true
		}
		return reply, reply.Err
	}
	switch st.kind {
	case Begin:
		c.inTx = true
	case Commit, Rollback:
		c.inTx = false
	}
	return reply, nil
}

// lostError is a connection lost under a statement without arguments, which
// pgx sends by the simple protocol: it then reports pgconn.ErrConnClosed,
// although the statement may have been executed.
type lostError struct{ cause error }

func (e *lostError) Error() string   { return "sqlsubset: conn closed: " + e.cause.Error() }
func (e *lostError) Unwrap() []error { return []error{e.cause, pgconn.ErrConnClosed} }

// simple is step for statements that pgx sends by the simple protocol.
func (c *conn) simple(ctx context.Context, query string) (Reply, error) {
	reply, err := c.step(ctx, query, nil)
	if err != nil && c.lost && reply.Err == nil && !pgconn.SafeToRetry(err) {
		err = &lostError{err}
	}
	return reply, err
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	if c.lost {
		return nil, driver.ErrBadConn
	}
	var reply Reply
	var err error
	if len(args) == 0 {
		reply, err = c.simple(ctx, query)
	} else {
		reply, err = c.step(ctx, query, args)
	}
	if err != nil {
		if pgconn.SafeToRetry(err) {
			return nil, driver.ErrBadConn
		}
		return nil, err
	}
	return driver.RowsAffected(reply.Affected), nil
}

// QueryContext differs from ExecContext in pgx when nothing could be sent: the
// error comes with the first row, and database/sql does not try again.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	if c.lost {
		return nil, driver.ErrBadConn
	}
	reply, err := c.step(ctx, query, args)
	if err != nil {
		return nil, err
	}
	return &rows{reply: reply}, nil
}

func (c *conn) Begin() (driver.Tx, error) {
	return c.BeginTx(context.Background(), driver.TxOptions{})
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	if c.lost {
		return nil, driver.ErrBadConn
	}
	query := "begin"
	switch sql.IsolationLevel(opts.Isolation) {
	case sql.LevelDefault:
	case sql.LevelReadCommitted:
		query = "begin isolation level read committed"
	case sql.LevelReadUncommitted:
		query = "begin isolation level read uncommitted"
	default:
		query = fmt.Sprintf("begin isolation level %s", sql.IsolationLevel(opts.Isolation))
	}
	if opts.ReadOnly {
		query += " read only"
	}
	if _, err := c.simple(ctx, query); err != nil {
		var pg *pgconn.PgError
		var refused *UnsupportedError
		if !errors.As(err, &pg) && !errors.As(err, &refused) {
			c.lost = true
		}
		return nil, err
	}
	return &tx{c: c, ctx: ctx}, nil
}

// tx ends as pgx's does.
type tx struct {
	c    *conn
	ctx  context.Context // of BeginTx, as database/sql asks
	done bool
}

func (t *tx) Commit() error {
	reply, err := t.end("commit")
	if err == nil && reply.Tag == "ROLLBACK" {
		return errTxCommitRollback
	}
	return err
}

func (t *tx) Rollback() error {
	_, err := t.end("rollback")
	return err
}

func (t *tx) end(query string) (Reply, error) {
	if t.done {
		return Reply{}, errTxClosed
	}
	t.done = true
	if t.c.lost {
		return Reply{}, errClosed
	}
	reply, err := t.c.simple(t.ctx, query)
	if err != nil && (query == "rollback" || t.c.inTx) {
		t.c.lost = true
	}
	return reply, err
}

// errClosed is COMMIT or ROLLBACK on a lost connection: nothing is sent, and as
// in pgx the error says so.
var errClosed error = closedError{}

type closedError struct{}

func (closedError) Error() string     { return "sqlsubset: conn closed" }
func (closedError) SafeToRetry() bool { return true }
func (closedError) Unwrap() error     { return pgconn.ErrConnClosed }

func (c *conn) Prepare(query string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), query)
}

func (c *conn) PrepareContext(_ context.Context, query string) (driver.Stmt, error) {
	if c.lost {
		return nil, driver.ErrBadConn
	}
	st, err := c.c.parse(query)
	if err != nil {
		return nil, err
	}
	return &stmt{c: c, query: query, params: st.params}, nil
}

type stmt struct {
	c      *conn
	query  string
	params int
}

func (s *stmt) Close() error  { return nil }
func (s *stmt) NumInput() int { return s.params }

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.c.ExecContext(ctx, s.query, args)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.c.QueryContext(ctx, s.query, args)
}

func (s *stmt) Exec([]driver.Value) (driver.Result, error) {
	return nil, errors.New("sqlsubset: Stmt.Exec without a context is not implemented")
}

func (s *stmt) Query([]driver.Value) (driver.Rows, error) {
	return nil, errors.New("sqlsubset: Stmt.Query without a context is not implemented")
}

// Ping is no step.
func (c *conn) Ping(context.Context) error {
	if c.lost {
		return driver.ErrBadConn
	}
	return nil
}

// ResetSession drops a connection that is lost or was left inside a transaction.
func (c *conn) ResetSession(context.Context) error {
	if c.lost || c.inTx {
		return driver.ErrBadConn
	}
	return nil
}

// IsValid lets database/sql drop a lost connection as soon as it comes back.
// pgx has no such method, and the connection is dropped at its next use; a
// scheme cannot see the difference.
func (c *conn) IsValid() bool { return !c.lost }

func (c *conn) Close() error {
	if !c.closed {
		c.closed, c.lost = true, true
		c.c.host.Closed(c.id)
	}
	return nil
}

// rows hands out the rows of a reply.
type rows struct {
	reply Reply
	next  int
}

func (r *rows) Columns() []string { return r.reply.Columns }
func (r *rows) Close() error      { return nil }

func (r *rows) Next(dest []driver.Value) error {
	if r.next >= len(r.reply.Rows) {
		return io.EOF
	}
	for i, v := range r.reply.Rows[r.next] {
		dest[i] = v
	}
	r.next++
	return nil
}

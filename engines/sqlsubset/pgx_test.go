package sqlsubset_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/schemes"
)

// cut is what happens to a connection at a step.
type cut int

const (
	whole       cut = iota
	requestLost     // the statement never arrives, and the client cannot know
	replyLost       // the statement is executed, the client sees the connection end
	notSent         // the very first byte cannot be written
)

func (c cut) String() string {
	return [...]string{"whole", "request lost", "reply lost", "not sent"}[c]
}

// cutter is the network under pgx: it can break at the next request.
type cutter struct {
	next  atomic.Int32 // the cut of the next request, on whatever connection
	dials atomic.Int32
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	c.dials.Add(1)
	return &cutConn{Conn: conn, cutter: c}, err
}

type cutConn struct {
	net.Conn
	cutter *cutter
	mu     sync.Mutex
	broken cut
}

func (c *cutConn) state() cut {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.broken
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.state() == whole {
		if how := cut(c.cutter.next.Swap(int32(whole))); how != whole {
			c.mu.Lock()
			c.broken = how
			c.mu.Unlock()
			switch how {
			case replyLost:
				return c.Conn.Write(b)
			case notSent:
				c.Conn.Close()
				return 0, syscall.EPIPE
			}
			c.Conn.Close()
			return len(b), nil
		}
	}
	switch c.state() {
	case requestLost:
		return len(b), nil
	case whole:
		return c.Conn.Write(b)
	}
	return 0, syscall.EPIPE
}

func (c *cutConn) Read(b []byte) (int, error) {
	switch c.state() {
	case whole:
		n, err := c.Conn.Read(b)
		return n, err
	case replyLost:
		_, _ = c.Conn.Read(b) // the statement has been executed once this returns
		c.Conn.Close()
	}
	return 0, io.EOF
}

// cutHost does to the engine what cutter does to a network.
type cutHost struct {
	soloHost
	next  cut
	dials int32
}

// unsent is an error of a Host that knows that nothing was sent.
type unsent struct{ error }

func (unsent) SafeToRetry() bool { return true }

func (h *cutHost) Dial(context.Context, int) error { h.dials++; return nil }

func (h *cutHost) Exec(ctx context.Context, conn int, st *sqlsubset.Statement, q string, args []any) (sqlsubset.Reply, error) {
	how := h.next
	h.next = whole
	switch how {
	case requestLost:
		h.db.Disconnect(conn)
		return sqlsubset.Reply{}, io.ErrUnexpectedEOF
	case notSent:
		h.db.Disconnect(conn)
		return sqlsubset.Reply{}, unsent{syscall.EPIPE}
	}
	reply, err := h.soloHost.Exec(ctx, conn, st, q, args)
	if how == replyLost {
		h.db.Disconnect(conn)
		return sqlsubset.Reply{}, io.ErrUnexpectedEOF
	}
	return reply, err
}

// class is all of an error that a scheme can act on.
func class(err error) string {
	var pgErr *pgconn.PgError
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, driver.ErrBadConn):
		return "bad connection"
	case errors.As(err, &pgErr):
		return fmt.Sprintf("server says %s, safe to retry %v", pgErr.Code, pgconn.SafeToRetry(err))
	case errors.Is(err, sql.ErrTxDone), errors.Is(err, sql.ErrConnDone), errors.Is(err, sql.ErrNoRows), errors.Is(err, pgx.ErrTxCommitRollback):
		return err.Error()
	}
	return fmt.Sprintf("lost, safe to retry %v, closed before %v", pgconn.SafeToRetry(err), errors.Is(err, pgconn.ErrConnClosed))
}

// littleProgram uses all of database/sql that a scheme does, and breaks the
// connection at its n-th statement. It answers the class of every error, and
// what it read.
func littleProgram(db *sql.DB, n int, breakNext func(), end string, fails bool) []string {
	ctx := context.Background()
	var out []string
	at := 0
	step := func(name string, f func() (string, error)) {
		if at == n {
			breakNext()
		}
		at++
		got, err := f()
		out = append(out, name+": "+class(err)+" "+got)
	}
	exec := func(on interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}, q string, args ...any) func() (string, error) {
		return func() (string, error) {
			res, err := on.ExecContext(ctx, q, args...)
			if err != nil {
				return "", err
			}
			rows, err := res.RowsAffected()
			return fmt.Sprint(rows), err
		}
	}
	query := func(on interface {
		QueryRowContext(context.Context, string, ...any) *sql.Row
	}, q string, args ...any) func() (string, error) {
		return func() (string, error) {
			var v int64
			err := on.QueryRowContext(ctx, q, args...).Scan(&v)
			return fmt.Sprint(v), err
		}
	}
	step("restock", exec(db, seedRestock, 1, "a"))
	step("read", query(db, seedRead, "a"))
	var tx *sql.Tx
	step("begin", func() (_ string, err error) { tx, err = db.BeginTx(ctx, nil); return "", err })
	if tx != nil {
		step("take", exec(tx, condTake, 1, "a"))
		step("read in transaction", query(tx, seedRead, "a"))
		if fails {
			step("fail", exec(tx, "INSERT INTO goods VALUES ('a', 1, 1)"))
		}
		step("order", exec(tx, seedOrder, "r", "a", "x", 1))
		if end == "commit" {
			step("commit", func() (string, error) { return "", tx.Commit() })
		}
		step("rollback", func() (string, error) { return "", tx.Rollback() })
	}
	step("read after", query(db, seedRead, "a"))
	step("sum", query(db, "SELECT sum(stock) FROM goods"))
	step("restock after", exec(db, seedRestock, 1, "a"))
	step("none", query(db, seedRead, "nothing"))
	return out
}

func TestComparisonWithPgxNoticesADriverThatRetries(t *testing.T) {
	run := func(how cut) []string {
		host := &cutHost{soloHost: *newSoloHost()}
		db := sql.OpenDB(sqlsubset.NewConnector(host))
		defer db.Close()
		for _, q := range append([]string{schemes.Schema()}, oneOfEach...) {
			_, err := db.Exec(q)
			require.NoError(t, err)
		}
		return littleProgram(db, 0, func() { host.next = how }, "commit", false)
	}
	require.NotEqual(t, run(requestLost), run(notSent), "a lost request and one that was never sent look alike")
	require.Contains(t, run(notSent)[0], "ok", "what was not sent is tried again")
	require.Contains(t, run(requestLost)[0], "safe to retry false")
}

func TestDriverLosesConnectionsAsPgxDoes(t *testing.T) {
	realPostgres(t)
	ctx := context.Background()
	const steps = 13
	setUp := func(db *sql.DB) {
		for _, q := range append([]string{schemes.Schema(), "DELETE FROM goods", "DELETE FROM orders"}, oneOfEach...) {
			_, err := db.ExecContext(ctx, q)
			require.NoError(t, err)
		}
	}
	compared := 0
	for _, fails := range []bool{false, true} {
		for _, end := range []string{"commit", "rollback"} {
			if fails && end == "rollback" {
				continue // nothing new: an aborted transaction is rolled back either way
			}
			for _, how := range []cut{requestLost, replyLost, notSent} {
				for n := range steps {
					net := &cutter{}
					cfg, err := pgx.ParseConfig(pg.server.dsn())
					require.NoError(t, err)
					cfg.DialFunc = net.dial
					// One exchange a statement, so that cuts fall on statements.
					cfg.DefaultQueryExecMode = pgx.QueryExecModeExec
					real := stdlib.OpenDB(*cfg)
					real.SetMaxOpenConns(1)
					host := &cutHost{soloHost: *newSoloHost()}
					ours := sql.OpenDB(sqlsubset.NewConnector(host))
					ours.SetMaxOpenConns(1)
					setUp(real)
					setUp(ours)
					want := littleProgram(real, n, func() { net.next.Store(int32(how)) }, end, fails)
					got := littleProgram(ours, n, func() { host.next = how }, end, fails)
					require.Equal(t, want, got, "%s at step %d, ending in %s, failing %v", how, n, end, fails)
					require.NoError(t, ours.Close())
					require.NoError(t, real.Close())
					compared++
				}
			}
		}
	}
	t.Logf("%d programs compared with pgx", compared)
	conn, err := pg.server.connect(ctx)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, "DROP TABLE goods, orders")
	require.NoError(t, errors.Join(err, conn.Close(ctx)))
}

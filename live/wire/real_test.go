package wire

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/stretchr/testify/require"
)

func redisClient(t testing.TB, addr string, protocol, retries int) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: protocol, MaxRetries: retries,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}})
	t.Cleanup(func() { c.Close() })
	return c
}

func TestRealRedisCommandsPipelinesAndTransactions(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		g := &recorder{}
		p := open(t, Redis, needRedis(t), g)
		c, ctx := redisClient(t, p.Addr(), protocol, -1), t.Context()
		big := strings.Repeat("\r\n\x00\xff*$", 200_000)
		require.NoError(t, c.FlushDB(ctx).Err())
		require.NoError(t, redisClient(t, needRedis(t), 3, 0).ScriptFlush(ctx).Err())
		require.NoError(t, c.Set(ctx, "big", big, 0).Err())
		got, err := c.Get(ctx, "big").Result()
		require.NoError(t, err)
		require.True(t, got == big, "a large binary value comes back as it was")
		require.NoError(t, c.HSet(ctx, "h", "stock", "5").Err())
		require.NoError(t, c.Watch(ctx, func(tx *redis.Tx) error {
			_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.HIncrBy(ctx, "h", "stock", -2)
				p.HGetAll(ctx, "h")
				return nil
			})
			return err
		}, "h"))
		require.NoError(t, redis.NewScript("return {KEYS[1], 1, false, {err='no'}}").Run(ctx, c, []string{"k"}).Err())
		require.Error(t, c.LPush(ctx, "big", 1).Err())
		require.NoError(t, c.Ping(ctx).Err())
		require.NoError(t, c.Info(ctx).Err())
		require.NoError(t, p.Close())
		require.Empty(t, p.Errors())
		var lines []string
		for _, e := range g.seen() {
			if e.kind == "reply" && e.step.Argv[0] != "info" && e.step.Argv[0] != "get" {
				lines = append(lines, strings.ToLower(e.step.Argv[0])+" => "+e.reply.Text)
			}
		}
		hash := map[int]string{2: `["stock", "3"]`, 3: `{"stock": "3"}`}[protocol]
		require.Equal(t, []string{"flushdb => OK", "set => OK", "hset => 1", "watch => OK", "multi => OK", "hincrby => QUEUED",
			"hgetall => QUEUED", "exec => [3, " + hash + "]", "evalsha => NOSCRIPT No matching script. Please use EVAL.",
			`eval => ["k", 1, nil, no]`, "lpush => WRONGTYPE Operation against a key holding the wrong kind of value"}, lines)
		g.requireEachEndsOnce(t)
	}
}

func TestRealRedisRetryIsAStepOfItsOwn(t *testing.T) {
	g := &recorder{onReply: replyAt(1, LoseReply)}
	p := open(t, Redis, needRedis(t), g)
	c := redisClient(t, p.Addr(), 3, 0)
	require.NoError(t, redisClient(t, needRedis(t), 3, 0).Del(t.Context(), "stock").Err())
	got, err := c.DecrBy(t.Context(), "stock", 1).Result()
	require.NoError(t, err)
	require.EqualValues(t, -2, got, "the default retries take it twice")
	require.NoError(t, p.Close())
	require.Equal(t, []string{"request 1: [decrby stock 1]", "reply 1: -1", "gone 1: executed, reply not delivered: reply lost on purpose",
		"request 2: [decrby stock 1]", "reply 2: -2"}, g.lines())
	g = &recorder{onRequest: at(1, Lose)}
	q := open(t, Redis, needRedis(t), g)
	require.ErrorIs(t, redisClient(t, q.Addr(), 3, -1).DecrBy(t.Context(), "stock", 1).Err(), io.EOF)
	n, err := redisClient(t, needRedis(t), 3, 0).Get(t.Context(), "stock").Int()
	require.NoError(t, err)
	require.Equal(t, -2, n, "a lost request is not executed")
}

func TestRealRedisSubscriptionsPass(t *testing.T) {
	for _, protocol := range []int{2, 3} {
		g := &recorder{}
		p := open(t, Redis, needRedis(t), g)
		c, ctx := redisClient(t, p.Addr(), protocol, -1), t.Context()
		s := c.Subscribe(ctx, "one", "two")
		for range 2 {
			_, err := s.Receive(ctx)
			require.NoError(t, err)
		}
		require.NoError(t, c.Publish(ctx, "one", "hello").Err())
		m, err := s.ReceiveMessage(ctx)
		require.NoError(t, err)
		require.Equal(t, "hello", m.Payload)
		require.NoError(t, s.Unsubscribe(ctx))
		require.NoError(t, s.Close())
		require.NoError(t, p.Close())
		require.Empty(t, p.Errors())
		require.Len(t, requests(g), 1, "only the PUBLISH")
	}
}

func connect(t testing.TB, p *Proxy) *pgx.Conn {
	c, err := pgx.Connect(t.Context(), postgresURL(p.Addr()))
	require.NoError(t, err, "%v", p.Errors())
	t.Cleanup(func() { c.Close(context.Background()) })
	return c
}

// goods makes a table for one test, past the proxy.
func goods(t testing.TB) (addr, table string, direct *pgx.Conn) {
	addr = needPostgres(t)
	direct, err := pgx.Connect(t.Context(), postgresURL(addr))
	require.NoError(t, err)
	t.Cleanup(func() { direct.Close(context.Background()) })
	table = "goods_" + strings.ToLower(strings.Map(func(r rune) rune {
		if r == '/' {
			return '_'
		}
		return r
	}, t.Name()))
	_, err = direct.Exec(t.Context(), fmt.Sprintf("drop table if exists %[1]s; create table %[1]s (id bigint primary key, stock int, name text); insert into %[1]s values (1, 3, 'x')", table))
	require.NoError(t, err)
	return addr, table, direct
}

func stock(t testing.TB, c *pgx.Conn, table string) (n int) {
	require.NoError(t, c.QueryRow(t.Context(), "select stock from "+table).Scan(&n))
	return n
}

func TestRealPostgresEachWayToExecute(t *testing.T) {
	addr, table, _ := goods(t)
	for _, mode := range []pgx.QueryExecMode{pgx.QueryExecModeCacheStatement, pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeDescribeExec,
		pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol} {
		g := &recorder{}
		p := open(t, Postgres, addr, g)
		c, ctx := connect(t, p), t.Context()
		for range 2 {
			var n, v int
			require.NoError(t, c.QueryRow(ctx, "select stock, 0 from "+table+" where id = $1", mode, int64(1)).Scan(&n, &v))
			_, err := c.Exec(ctx, "update "+table+" set stock = stock where id = $1", mode, int64(9))
			require.NoError(t, err)
			_, err = c.Exec(ctx, "select $1::int/0", mode, 1)
			require.Error(t, err)
			_, err = c.Exec(ctx, "selec $1", mode, 1)
			require.Error(t, err)
		}
		require.NoError(t, c.Ping(ctx))
		require.NoError(t, c.Close(ctx))
		require.NoError(t, p.Close())
		require.Empty(t, p.Errors(), mode)
		var texts []string
		for _, e := range g.seen() {
			if e.kind == "reply" {
				texts = append(texts, e.reply.Text)
				require.NotZero(t, e.step.BackendPID)
				require.Equal(t, []int{1, 1}, []int{e.step.Batch, e.step.BatchLen})
				if mode != pgx.QueryExecModeSimpleProtocol && strings.HasPrefix(e.step.SQL, "update") {
					require.Equal(t, []string{"9"}, e.step.Args, mode)
				}
			}
		}
		require.Equal(t, []string{"row (3, 0)", "UPDATE 0", "ERROR 22012 division by zero"}, texts[:3], mode)
		g.requireEachEndsOnce(t)
	}
}

func TestRealPostgresSimpleQueryWithSeveralResults(t *testing.T) {
	addr, table, _ := goods(t)
	g := &recorder{}
	c := connect(t, open(t, Postgres, addr, g))
	_, err := c.PgConn().Exec(t.Context(), "select 1, 'a', null; update "+table+" set stock = 2; select 1 where false; ; -- end").ReadAll()
	require.NoError(t, err)
	_, err = c.PgConn().Exec(t.Context(), "; -- nothing\n /* at /* all */ */").ReadAll()
	require.NoError(t, err)
	_, err = c.PgConn().Exec(t.Context(), "do $$ begin raise notice 'n'; end $$; select 1/0; select 2").ReadAll()
	require.Error(t, err)
	replies := g.await(t, "reply", 2)
	require.Equal(t, `row (1, "a", NULL); UPDATE 1; no rows`, replies[0].reply.Text)
	require.Equal(t, `DO; ERROR 22012 division by zero`, replies[1].reply.Text)
	require.Len(t, requests(g), 2)
}

func TestRealPostgresBatchWithAnErrorInTheMiddle(t *testing.T) {
	addr, table, direct := goods(t)
	g := &recorder{}
	c := connect(t, open(t, Postgres, addr, g))
	b := &pgx.Batch{}
	b.Queue("update "+table+" set stock = stock - $1", 1)
	b.Queue("select 1 / (stock - $1) from "+table, 2)
	b.Queue("update "+table+" set stock = stock - $1", 5)
	require.Error(t, c.SendBatch(t.Context(), b).Close())
	replies := g.await(t, "reply", 3)
	for i, want := range []string{"UPDATE 1", "ERROR 22012 division by zero", "not executed after ERROR 22012 division by zero"} {
		require.Equal(t, want, replies[i].reply.Text)
		require.Equal(t, []int{i + 1, 3}, []int{replies[i].step.Batch, replies[i].step.BatchLen})
	}
	require.Equal(t, 3, stock(t, direct, table))
	require.NoError(t, c.Ping(t.Context()))
}

func TestRealPostgresRequestLostInABatchExecutesNothing(t *testing.T) {
	addr, table, direct := goods(t)
	g := &recorder{onRequest: at(2, Lose)}
	c := connect(t, open(t, Postgres, addr, g))
	b := &pgx.Batch{}
	for range 3 {
		b.Queue("update " + table + " set stock = stock - 1")
	}
	require.Error(t, c.SendBatch(t.Context(), b).Close())
	gone := g.await(t, "gone", 2)
	requireCause(t, gone[0].err, ErrRequestLost, false, false)
	requireCause(t, gone[1].err, ErrRequestLost, true, false)
	require.Equal(t, 3, stock(t, direct, table))
}

func TestRealPostgresCommitReplyLostAndCommitRequestLost(t *testing.T) {
	addr, table, direct := goods(t)
	for i, lost := range []*recorder{{onReply: replyAt(3, LoseReply)}, {onRequest: at(3, Lose)}} {
		db := stdlib.OpenDB(*config(t, open(t, Postgres, addr, lost)))
		defer db.Close()
		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "update "+table+" set stock = stock - 1 where id = $1", 1)
		require.NoError(t, err)
		require.Error(t, tx.Commit())
		require.Equal(t, 2, stock(t, direct, table), "committed once, i=%d", i)
		require.Len(t, requests(lost), 3, "BEGIN, UPDATE, COMMIT and no preparation")
		gone := lost.await(t, "gone", 1)
		require.Equal(t, "commit", gone[0].step.SQL)
		lost.requireEachEndsOnce(t)
	}
}

func config(t testing.TB, p *Proxy) *pgx.ConnConfig {
	c, err := pgx.ParseConfig(postgresURL(p.Addr()))
	require.NoError(t, err)
	return c
}

func TestRealPostgresABlockedStatementBlocksNobodyElse(t *testing.T) {
	addr, table, _ := goods(t)
	g, h := &recorder{}, &recorder{}
	holder, waiter := connect(t, open(t, Postgres, addr, g)), connect(t, open(t, Postgres, addr, h))
	update := "update " + table + " set stock = stock - 1 where stock > 0"
	tx, err := holder.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), update)
	require.NoError(t, err)
	done := make(chan error)
	go func() { _, err := waiter.Exec(t.Context(), update); done <- err }()
	pid := h.await(t, "request", 1)[0].step.BackendPID
	require.NoError(t, until(func(ctx context.Context) error {
		var waits bool
		err := holder.QueryRow(ctx, "select cardinality(pg_blocking_pids($1)) > 0", pid).Scan(&waits)
		if err == nil && !waits {
			err = errors.New("not waiting yet")
		}
		return err
	}))
	for _, e := range h.seen() {
		require.Equal(t, "request", e.kind, "no reply while it waits")
	}
	require.NoError(t, tx.Commit(t.Context()))
	require.NoError(t, <-done)
	require.Equal(t, "UPDATE 1", h.await(t, "reply", 1)[0].reply.Text)
}

func TestRealPostgresDetachedStatementIsExecutedLater(t *testing.T) {
	addr, table, direct := goods(t)
	release := make(chan struct{})
	g := &recorder{onRequest: at(1, Detach(release))}
	c := connect(t, open(t, Postgres, addr, g))
	_, err := c.Exec(t.Context(), "update "+table+" set stock = stock - $1", 1)
	require.Error(t, err)
	require.Equal(t, 3, stock(t, direct, table))
	close(release)
	requireCause(t, g.await(t, "gone", 1)[0].err, ErrDetached, true, true)
	require.Equal(t, "UPDATE 1", g.await(t, "reply", 1)[0].reply.Text)
	require.Equal(t, 2, stock(t, direct, table))
}

func TestRealPostgresCancelNotifyAndCopy(t *testing.T) {
	addr, table, _ := goods(t)
	g := &recorder{}
	p := open(t, Postgres, addr, g)
	c, other := connect(t, p), connect(t, p)
	done := make(chan error)
	go func() { _, err := c.Exec(t.Context(), "select pg_sleep(600)"); done <- err }()
	g.await(t, "request", 1)
	require.NoError(t, until(func(ctx context.Context) error {
		// A cancel that comes before the statement has begun does nothing.
		if err := c.PgConn().CancelRequest(ctx); err != nil {
			return err
		}
		select {
		case err := <-done:
			var pg *pgconn.PgError
			require.ErrorAs(t, err, &pg)
			require.Equal(t, "57014", pg.Code)
			return nil
		default:
			return errors.New("still running")
		}
	}))
	_, err := c.Exec(t.Context(), "listen news")
	require.NoError(t, err)
	_, err = other.Exec(t.Context(), "notify news, 'hot'")
	require.NoError(t, err)
	n, err := c.WaitForNotification(t.Context())
	require.NoError(t, err)
	require.Equal(t, "hot", n.Payload)
	require.Empty(t, p.Errors())
	var out bytes.Buffer
	_, err = other.PgConn().CopyTo(t.Context(), &out, "copy "+table+" to stdout")
	require.Error(t, err)
	require.Len(t, p.Errors(), 1)
	require.ErrorContains(t, p.Errors()[0], "COPY")
	g.requireEachEndsOnce(t)
}

func benchmarkRedis(b *testing.B, addr string) {
	c := redisClient(b, addr, 3, -1)
	require.NoError(b, c.Ping(b.Context()).Err())
	for b.Loop() {
		if err := c.HIncrBy(b.Context(), "bench", "f", 1).Err(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkRedisDirect(b *testing.B) { benchmarkRedis(b, needRedis(b)) }
func BenchmarkRedisProxied(b *testing.B) {
	benchmarkRedis(b, open(b, Redis, needRedis(b), always{}).Addr())
}

func benchmarkPostgres(b *testing.B, addr string) {
	db, err := sql.Open("pgx", postgresURL(addr))
	require.NoError(b, err)
	defer db.Close()
	db.SetMaxOpenConns(1)
	var n int
	for b.Loop() {
		if err := db.QueryRowContext(b.Context(), "select $1::int", 1).Scan(&n); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPostgresDirect(b *testing.B) { benchmarkPostgres(b, needPostgres(b)) }
func BenchmarkPostgresProxied(b *testing.B) {
	benchmarkPostgres(b, open(b, Postgres, needPostgres(b), always{}).Addr())
}

type always struct{}

func (always) Request(context.Context, Step) RequestAction    { return Forward }
func (always) Reply(context.Context, Step, Reply) ReplyAction { return Deliver }
func (always) Gone(Step, error)                               {}

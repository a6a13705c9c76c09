package catalogue

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/live/role"
	"stockproof/live/servers"
	"stockproof/live/wire"
	"stockproof/model"
	"stockproof/schemes"
)

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(m.Run())
}

// shop is where one scenario happens: real servers, and keys and rows of its own.
type shop struct {
	*testing.T
	ctx context.Context
	set *servers.Set
	r   *redis.Client
	db  *sql.DB
	sku string
}

// key is the counter; k another key of the scenario.
func (s *shop) key() string          { return "stock:" + s.sku }
func (s *shop) k(name string) string { return name + ":" + s.sku }

func (s *shop) at(addr string, change ...func(*redis.Options)) *redis.Client {
	o := &redis.Options{Addr: addr, MaxRetries: -1}
	for _, f := range change {
		f(o)
	}
	r := redis.NewClient(o)
	s.Cleanup(func() { r.Close() })
	return r
}

// own is a Redis for a scenario that hurts it.
func (s *shop) own(o servers.RedisOptions) (*servers.Redis, *redis.Client) {
	server, err := s.set.StartRedis(s.ctx, o)
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, server.Close()) })
	return server, s.at(server.Addr)
}

func (s *shop) load(r *redis.Client, units int64) {
	require.NoError(s, r.Set(s.ctx, s.key(), units, 0).Err())
}

func (s *shop) decr(r *redis.Client) int64 {
	n, err := r.Decr(s.ctx, s.key()).Result()
	require.NoError(s, err)
	return n
}

func (s *shop) incr(r *redis.Client, by int64) int64 {
	n, err := r.IncrBy(s.ctx, s.key(), by).Result()
	require.NoError(s, err)
	return n
}

func (s *shop) stock(r *redis.Client) int64 {
	n, err := r.Get(s.ctx, s.key()).Int64()
	require.NoError(s, err)
	return n
}

// buy decrements for each of some buyers, and answers how many were served before
// the counter went below zero; those behind give nothing back.
func (s *shop) buy(r *redis.Client, buyers int) (yes int64) {
	for range buyers {
		if s.decr(r) >= 0 {
			yes++
		}
	}
	return yes
}

// script is the check and the decrement in one.
const script = `local left = tonumber(redis.call('GET', KEYS[1]))
if left < 1 then return 0 end
redis.call('DECR', KEYS[1])
return 1`

// buyScripted is buy with the script, which refuses instead of going below zero.
func (s *shop) buyScripted(r *redis.Client, buyers int) (yes int64) {
	for range buyers {
		n, err := r.Eval(s.ctx, script, []string{s.key()}).Int64()
		require.NoError(s, err)
		yes += n
	}
	return yes
}

// goods puts units on sale in the database.
func (s *shop) goods(units int64) {
	s.exec(s.db, "INSERT INTO goods VALUES ($1, $2, 1)", s.sku, units)
}

type execer interface {
	ExecContext(context.Context, string, ...any) (sql.Result, error)
	QueryRowContext(context.Context, string, ...any) *sql.Row
}

func (s *shop) exec(on execer, query string, args ...any) (rows int64) {
	result, err := on.ExecContext(s.ctx, query, args...)
	require.NoError(s, err)
	rows, err = result.RowsAffected()
	require.NoError(s, err)
	return rows
}

func (s *shop) one(on execer, query string, args ...any) (n int64) {
	require.NoError(s, on.QueryRowContext(s.ctx, query, args...).Scan(&n))
	return n
}

const (
	readStock   = "SELECT stock FROM goods WHERE sku = $1"
	writeStock  = "UPDATE goods SET stock = $2 WHERE sku = $1"
	takeOne     = "UPDATE goods SET stock = stock - 1 WHERE sku = $1 AND stock >= 1"
	countOrders = "SELECT count(*) FROM orders WHERE sku = $1"
)

func (s *shop) order(on execer, id, buyer string) {
	s.exec(on, "INSERT INTO orders VALUES ($1, $2, $3, 1)", id+"@"+s.sku, s.sku, buyer)
}

func (s *shop) begin(o *sql.TxOptions) *sql.Tx {
	tx, err := s.db.BeginTx(s.ctx, o)
	require.NoError(s, err)
	s.Cleanup(func() { _ = tx.Rollback() }) // ended before, as a rule
	return tx
}

// fate decides what the proxy does with the n-th step, from 1, of those that it counts.
type fate func(n int) (lose, loseReply bool)

type gate struct{ fate fate }

func (g gate) Request(_ context.Context, s wire.Step) wire.RequestAction {
	if lose, _ := g.fate(s.N); lose {
		return wire.Lose
	}
	return wire.Forward
}

func (g gate) Reply(_ context.Context, s wire.Step, _ wire.Reply) wire.ReplyAction {
	if _, lose := g.fate(s.N); lose {
		return wire.LoseReply
	}
	return wire.Deliver
}

func (gate) Gone(wire.Step, error) {}

// behind is a client whose wire to Redis has a fate.
func (s *shop) behind(f fate, retries int) *redis.Client {
	p, err := wire.Listen(wire.Config{Server: wire.Redis, Upstream: s.set.RedisAddr, Counter: new(wire.Counter), Gate: gate{f}})
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, p.Close()) })
	return s.at(p.Addr(), func(o *redis.Options) { o.MaxRetries, o.MinRetryBackoff = retries, -1 })
}

// sqlBehind is the same for the database, of which every step is a statement.
func (s *shop) sqlBehind(f fate) *sql.DB {
	p, err := wire.Listen(wire.Config{Server: wire.Postgres, Upstream: s.set.PostgresAddr, Counter: new(wire.Counter), Gate: gate{f}})
	require.NoError(s, err)
	s.Cleanup(func() { require.NoError(s, p.Close()) })
	db, err := sql.Open("pgx", s.set.PostgresDSNAt(p.Addr()))
	require.NoError(s, err)
	s.Cleanup(func() { db.Close() })
	return db
}

// deduct is one purchase by the code of a scheme.
func (s *shop) deduct(name string, r *redis.Client, id string, config schemes.Config) (model.Outcome, error) {
	e, err := schemes.ByName(name)
	require.NoError(s, err)
	return e.Scheme.Deduct(s.ctx, schemes.Env{Redis: r, DB: s.db, Client: id, Config: config}, schemes.Request{SKU: s.sku, Qty: 1, ID: id + "@" + s.sku, Buyer: id})
}

func (s *shop) loadScheme(name string, units int64) {
	e, err := schemes.ByName(name)
	require.NoError(s, err)
	require.NoError(s, e.Scheme.(schemes.Loader).Load(s.ctx, schemes.Env{Redis: s.r, DB: s.db, Client: "loader"}, s.sku, units))
}

func (s *shop) readScheme(name string) int64 {
	e, err := schemes.ByName(name)
	require.NoError(s, err)
	n, err := e.Scheme.(schemes.Reader).Read(s.ctx, schemes.Env{Redis: s.r, DB: s.db, Client: "reader"}, s.sku)
	require.NoError(s, err)
	return n
}

// until waits for an event of the servers.
func (s *shop) until(what string, is func() bool) {
	require.Eventually(s, is, 20*time.Second, time.Millisecond, what)
}

// locked takes a lock as a client would, without or with a time to live.
func (s *shop) locked(r *redis.Client, name, owner string, ttl time.Duration) bool {
	ok, err := r.SetNX(s.ctx, s.k(name), owner, ttl).Result()
	require.NoError(s, err)
	return ok
}

func (s *shop) unlock(r *redis.Client, name string) {
	require.NoError(s, r.Del(s.ctx, s.k(name)).Err())
}

// openShops starts the servers of the backend of this run.
func openShops(t *testing.T) (*servers.Set, *redis.Client, *sql.DB) {
	choice, err := servers.Choose(t.Context(), os.Getenv)
	if errors.Is(err, servers.ErrLiveOff) {
		t.Skip(err)
	}
	require.NoError(t, err)
	set, err := servers.Start(context.WithoutCancel(t.Context()), choice.Backend)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, set.Close()) })
	r := redis.NewClient(&redis.Options{Addr: set.RedisAddr, MaxRetries: -1})
	t.Cleanup(func() { r.Close() })
	db, err := sql.Open("pgx", set.PostgresDSN(""))
	require.NoError(t, err)
	t.Cleanup(func() { db.Close() })
	_, err = db.ExecContext(t.Context(), schemes.Schema())
	require.NoError(t, err)
	return set, r, db
}

// longest is what a scenario may take: it waits for events, and one that never comes
// is a failure.
const longest = 90 * time.Second

func newShop(t *testing.T, set *servers.Set, r *redis.Client, db *sql.DB, id string) *shop {
	ctx, cancel := context.WithTimeoutCause(t.Context(), longest, fmt.Errorf("not done after %s", longest))
	t.Cleanup(cancel)
	return &shop{T: t, ctx: ctx, set: set, r: r, db: db, sku: fmt.Sprintf("%s-%x", id, os.Getpid())}
}

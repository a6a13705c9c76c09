package servers_test

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stockproof/live/reaper"
	"stockproof/live/servers"
)

// start starts a set with options and closes it at the end of the test.
func start(t *testing.T, b servers.Backend, opt servers.Options) *servers.Set {
	t.Helper()
	s, err := servers.StartWith(t.Context(), b, opt)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

func redisClient(t *testing.T, s *servers.Set) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.RedisAddr, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func postgresConn(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Close(ctx)
	})
	return c
}

// Starting servers is what costs time, so what can be seen on one set is.
func TestAnOrdinarySet(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{})
		t.Logf("%s: started in %v: %+v", b, s.Took, s.Versions)
		require.Equal(t, b, s.Backend)
		require.NoError(t, s.Alive())
		require.NotEmpty(t, s.Versions.Redis)
		require.NotEmpty(t, s.Versions.Postgres)
		t.Run("another Redis is killed and comes back with what its folder holds", func(t *testing.T) {
			requireRestart(t, s)
		})
		t.Run("Redis answers and keeps nothing", func(t *testing.T) {
			requireRedisSettings(t, s, map[string]string{"appendonly": "no", "save": ""})
		})
		t.Run("PostgreSQL answers and syncs to disk", func(t *testing.T) {
			c := postgresConn(t, s.PostgresDSN(""))
			for name, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
				"max_connections": "300", "server_encoding": "UTF8", "lc_collate": "C", "password_encryption": "scram-sha-256"} {
				var got string
				require.NoError(t, c.QueryRow(t.Context(), "SHOW "+name).Scan(&got))
				require.Equal(t, want, got, name)
			}
		})
		t.Run("the processor time of PostgreSQL is that of the process that serves", func(t *testing.T) {
			before, err := s.PostgresTime(t.Context())
			require.NoError(t, err)
			c := postgresConn(t, s.PostgresDSN(""))
			worked := func(at *assert.CollectT) {
				_, err := c.Exec(t.Context(), "SELECT count(*) FROM generate_series(1, 100000)")
				require.NoError(at, err)
				after, err := s.PostgresTime(t.Context())
				require.NoError(at, err)
				require.Greater(at, after, before+50*time.Millisecond)
			}
			require.EventuallyWithT(t, worked, limit, time.Millisecond)
			after, err := s.PostgresTime(t.Context())
			require.NoError(t, err)
			require.NoError(t, c.Close(t.Context()))
			ended, err := s.PostgresTime(t.Context())
			require.NoError(t, err)
			require.GreaterOrEqual(t, ended, after, "it never goes back")
		})
		t.Run("only this machine can reach it", func(t *testing.T) {
			ports := map[int]bool{portOf(t, s.RedisAddr): true, portOf(t, s.PostgresAddr): true}
			pids := processesIn(filepath.Join(os.TempDir(), reaper.DirPrefix+s.Session))
			inside, outside := exposed(t, ports, sockets(pids))
			require.Len(t, inside, 2)
			require.Empty(t, outside)
		})
		t.Run("the database wants its password", func(t *testing.T) {
			right := s.Password
			require.NoError(t, tryPostgres(t, s.PostgresDSN("")))
			s.Password = "wrong"
			var refused *pgconn.PgError
			require.ErrorAs(t, tryPostgres(t, s.PostgresDSN("")), &refused)
			require.Equal(t, "28P01", refused.Code)
			s.Password = right
		})
		t.Run("a second set beside it, with other options", func(t *testing.T) {
			other := start(t, b, servers.Options{Persistence: servers.AOFAlways, RedisSettings: map[string]string{"databases": "64"}})
			require.NotEqual(t, s.Password, other.Password)
			require.NotEqual(t, s.RedisAddr, other.RedisAddr)
			require.NotEqual(t, s.PostgresAddr, other.PostgresAddr)
			requireRedisSettings(t, other, map[string]string{"appendonly": "yes", "appendfsync": "always", "databases": "64"})
		})
	})
}

func requireRedisSettings(t *testing.T, s *servers.Set, settings map[string]string) {
	t.Helper()
	r := redisClient(t, s)
	for name, want := range settings {
		got, err := r.ConfigGet(t.Context(), name).Result()
		require.NoError(t, err)
		require.Equal(t, want, got[name], name)
	}
}

// tryPostgres connects and returns what went wrong.
func tryPostgres(t *testing.T, dsn string) error {
	t.Helper()
	c, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		return err
	}
	return c.Close(t.Context())
}

func TestAServerThatMayForgetACommitIsRefused(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		session := "test-forgets-" + strconv.Itoa(os.Getpid())
		_, err := servers.StartWith(t.Context(), b, servers.Options{Session: session, PostgresSettings: map[string]string{"fsync": "off"}})
		require.ErrorIs(t, err, servers.ErrNotDurable)
		require.ErrorContains(t, err, "run postgres: ")
		require.ErrorContains(t, err, "fsync is off")
		require.Empty(t, leftOf(t, b, session))
	})
}

func TestAStartThatIsCalledOffLeavesNothing(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		session := "test-off-" + strconv.Itoa(os.Getpid())
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for ctx.Err() == nil && len(leftOf(t, b, session)) == 0 {
				runtime.Gosched()
			}
		}()
		_, err := servers.StartWith(ctx, b, servers.Options{Session: session})
		require.ErrorIs(t, err, context.Canceled)
		require.Empty(t, leftOf(t, b, session))
	})
}

// requireRestart kills a Redis beside the set, which must not notice, and looks
// what comes back; the replica has what was written before.
func requireRestart(t *testing.T, s *servers.Set) {
	r, err := s.StartRedis(t.Context(), servers.RedisOptions{Persistence: servers.AOFAlways, Replica: true})
	require.NoError(t, err)
	addr := r.Addr
	at := func(addr string) *redis.Client {
		c := redis.NewClient(&redis.Options{Addr: addr})
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	require.NoError(t, at(addr).Set(t.Context(), "k", "v", 0).Err())
	require.NoError(t, r.Restart(t.Context(), ":"))
	require.Equal(t, addr, r.Addr)
	require.Equal(t, "v", at(addr).Get(t.Context(), "k").Val(), "the append-only file was synced")
	require.NoError(t, r.Restart(t.Context(), "rm -rf appendonlydir appendonly.aof"))
	require.Zero(t, at(addr).Exists(t.Context(), "k").Val())
	require.NoError(t, at(r.Replica.Addr).Do(t.Context(), "REPLICAOF", "NO", "ONE").Err())
	require.NoError(t, at(r.Replica.Addr).Set(t.Context(), "k", "w", 0).Err(), "a promoted replica takes writes")
	require.Error(t, r.Restart(t.Context(), "exit 3"))
	require.NoError(t, r.Close())
	require.Error(t, at(addr).Ping(t.Context()).Err())
	require.NoError(t, s.Alive())
}

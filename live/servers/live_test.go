package servers_test

import (
	"context"
	"os"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

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

func TestBothServersAnswerAndSyncToDisk(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{})
		t.Logf("%s: started in %v: %+v", b, s.Took, s.Versions)
		require.Equal(t, b, s.Backend)
		require.NoError(t, s.Alive())

		r := redisClient(t, s)
		require.Equal(t, "PONG", r.Ping(t.Context()).Val())
		for name, want := range map[string]string{"appendonly": "no", "save": ""} {
			got, err := r.ConfigGet(t.Context(), name).Result()
			require.NoError(t, err)
			require.Equal(t, want, got[name], name)
		}

		c := postgresConn(t, s.PostgresDSN(""))
		for name, want := range map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on",
			"max_connections": "300", "server_encoding": "UTF8", "lc_collate": "C", "password_encryption": "scram-sha-256"} {
			var got string
			require.NoError(t, c.QueryRow(t.Context(), "SHOW "+name).Scan(&got))
			require.Equal(t, want, got, name)
		}
		require.NotEmpty(t, s.Versions.Redis)
		require.NotEmpty(t, s.Versions.Postgres)
	})
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
		for _, setting := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
			t.Run(setting, func(t *testing.T) {
				session := "test-" + setting + "-" + strconv.Itoa(os.Getpid())
				_, err := servers.StartWith(t.Context(), b, servers.Options{Session: session, PostgresSettings: map[string]string{setting: "off"}})
				require.ErrorIs(t, err, servers.ErrNotDurable)
				require.ErrorContains(t, err, "run postgres: ")
				require.ErrorContains(t, err, setting+" is off")
				require.Empty(t, leftOf(t, b, session))
			})
		}
	})
}

func TestPersistenceIsAsAskedFor(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{Persistence: servers.AOFAlways, RedisSettings: map[string]string{"databases": "64"}})
		r := redisClient(t, s)
		for name, want := range map[string]string{"appendonly": "yes", "appendfsync": "always", "databases": "64"} {
			got, err := r.ConfigGet(t.Context(), name).Result()
			require.NoError(t, err)
			require.Equal(t, want, got[name], name)
		}
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

package servers_test

import (
	"context"
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


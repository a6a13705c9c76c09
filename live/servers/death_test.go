package servers_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"stockproof/live/reaper"
	"stockproof/live/servers"
)

// requireDeath waits for the news that a server has died.
func requireDeath(t *testing.T, s *servers.Set, server, lastWords string) {
	t.Helper()
	select {
	case err := <-s.Died():
		var died *servers.DiedError
		require.True(t, errors.As(err, &died), "%v", err)
		require.Equal(t, server, died.Server)
		require.NotEmpty(t, died.Status)
		require.Contains(t, err.Error(), server+" ended during the run")
		require.Contains(t, strings.Join(died.Log, "\n"), lastWords)
		require.ErrorAs(t, s.Alive(), &died)
	case <-time.After(limit):
		t.Fatalf("nobody noticed that %s is dead", server)
	}
	require.NoError(t, s.Close())
	require.Empty(t, leftOf(t, s.Backend, s.Session))
	require.ErrorIs(t, <-s.Died(), nil, "closed after Close")
}

func TestTheDeathOfRedisIsNoticed(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{})
		_ = redisClient(t, s).ShutdownNoSave(t.Context())
		requireDeath(t, s, "redis", "User requested shutdown")
	})
}

func TestTheDeathOfPostgresIsNoticed(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{})
		c := postgresConn(t, s.PostgresDSN(""))
		var pidFile string
		require.NoError(t, c.QueryRow(t.Context(), "SELECT pg_read_file('postmaster.pid')").Scan(&pidFile))
		pid, err := strconv.Atoi(strings.SplitN(pidFile, "\n", 2)[0])
		require.NoError(t, err)
		// The server's own shell reaches it on every backend.
		_, _ = c.Exec(t.Context(), "COPY (SELECT 1) TO PROGRAM 'kill -QUIT "+strconv.Itoa(pid)+"'")
		requireDeath(t, s, "postgres", "immediate shutdown request")
	})
}

func TestAPostgresKilledOutrightLeavesNoSharedMemory(t *testing.T) {
	// A container's memory goes with the container.
	onBackends(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{})
		c := postgresConn(t, s.PostgresDSN(""))
		var pidFile string
		require.NoError(t, c.QueryRow(t.Context(), "SELECT pg_read_file('postmaster.pid')").Scan(&pidFile))
		pid, err := strconv.Atoi(strings.SplitN(pidFile, "\n", 2)[0])
		require.NoError(t, err)
		pids := processesIn(filepath.Join(os.TempDir(), reaper.DirPrefix+s.Session))
		require.Contains(t, pids, pid)
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		requireDeath(t, s, "postgres", "ready to accept connections")
		require.Zero(t, segmentsOf(t, pids))
	}, servers.Process)
}

func TestAnEndOnPurposeIsNoDeathAndLeavesNoGoroutine(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		before := goleak.IgnoreCurrent()
		s, err := servers.Start(t.Context(), b)
		require.NoError(t, err)
		require.NoError(t, s.Close())
		goleak.VerifyNone(t, before)
		err, open := <-s.Died()
		require.NoError(t, err)
		require.False(t, open)
		require.NoError(t, s.Alive())
		require.NoError(t, s.Close(), "closing twice is closing once")
	})
}

package servers

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestPostgresIsNotReadyWhenOnlyItsSetUpServerIs(t *testing.T) {
	const ready = "LOG:  database system is ready to accept connections"
	is := postgresReady()
	for line, want := range map[string]bool{ready: false} {
		require.Equal(t, want, is(line), "the set-up server of the official image has no TCP")
	}
	require.False(t, is(`LOG:  listening on IPv4 address "0.0.0.0", port 5432`))
	require.True(t, is(ready))
}

func TestTheProcessorTimeOfAControlGroupOfEitherVersion(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"usage_usec 1500\nuser_usec 1000\nsystem_usec 500\n": 1500 * time.Microsecond,
		"2000000\n":      2 * time.Millisecond,
		"":               -1,
		"usage_usec x\n": -1,
	} {
		got, err := usedOf(text)
		if want < 0 {
			require.ErrorContains(t, err, "is no processor time", text)
			continue
		}
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
}

func TestThePidFileOfPostgres(t *testing.T) {
	file := func(seventh string) string {
		return "123\n/data\n1700000000\n5432\n\n127.0.0.1\n" + seventh + "\nready\n"
	}
	for in, want := range map[string]int{file("  9834529        32768"): 32768, file(""): -1, "123\n": -1, "": -1} {
		got, err := memoryID(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	_, err := memoryID(file("1 x"))
	require.Error(t, err)
}

func FuzzMemoryID(f *testing.F) {
	f.Add("123\n/data\n1700000000\n5432\n\n127.0.0.1\n  9834529        32768\nready\n")
	f.Add("")
	f.Fuzz(func(t *testing.T, in string) {
		id, err := memoryID(in)
		require.True(t, id >= -1)
		require.True(t, err == nil || id == -1)
	})
}

func TestSettingsWinOverTheDefaults(t *testing.T) {
	args := Options{PostgresSettings: map[string]string{"max_connections": "7"}}.postgresArgs()
	require.Contains(t, args, "max_connections=7")
	require.NotContains(t, args, "max_connections=300")
	require.Contains(t, args, "fsync=on")

	redis := Options{Persistence: RDBOnly, RedisSettings: map[string]string{"databases": "9"}}.redisArgs()
	require.Equal(t, []string{"--databases", "9"}, redis[len(redis)-2:], "the last one counts")
	require.Greater(t, slices.Index(redis, "3600 1 300 100 60 10000"), slices.Index(redis, "--save"))
}

// A server that took the port of ours must not be judged in its place.
func TestAnotherServerAtTheAddressIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go answerInfo(c)
		}
	}()
	version, err := checkRedis(t.Context(), l.Addr().String(), 41)
	require.NoError(t, err)
	require.Equal(t, "7.0.15", version)
	_, err = checkRedis(t.Context(), l.Addr().String(), 42)
	require.ErrorIs(t, err, ErrWrongServer)
}

// answerInfo plays a Redis that is process 41 and knows INFO only.
func answerInfo(c net.Conn) {
	defer c.Close()
	buf := make([]byte, 4096)
	for {
		n, err := c.Read(buf)
		if err != nil {
			return
		}
		for range strings.Count(string(buf[:n]), "*") { // one reply a command
			if strings.Contains(strings.ToLower(string(buf[:n])), "info\r\n$6\r\nserver") {
				const info = "# Server\r\nredis_version:7.0.15\r\nprocess_id:41\r\n"
				fmt.Fprintf(c, "$%d\r\n%s\r\n", len(info), info)
			} else {
				fmt.Fprint(c, "-ERR unknown command\r\n")
			}
		}
	}
}

func TestAnEndedServerNeverPassesForReady(t *testing.T) {
	for _, stopping := range []bool{false, true} {
		s := newServer("redis", redisReady())
		s.stopping.Store(stopping)
		s.end("exit status 1")
		require.Error(t, s.awaitReady(t.Context()))
	}
}

package wire

import (
	"fmt"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

func relayTo(t *testing.T, upstream string) *Relay {
	t.Helper()
	r, err := NewRelay(upstream)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

// A client of a relay keeps its connection, database and subscriptions when
// another server serves.
func TestARelayKeepsConnectionsWhenAnotherServerServes(t *testing.T) {
	first := needRedis(t)
	second, err := startRedis()
	require.NoError(t, err)
	r := relayTo(t, first)
	for _, protocol := range []int{2, 3} {
		c := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1, PoolSize: 1, DB: 3, Protocol: protocol})
		defer c.Close()
		behind := func(addr string) *redis.Client {
			d := redis.NewClient(&redis.Options{Addr: addr, DB: 3})
			t.Cleanup(func() { d.Close() })
			return d
		}
		require.NoError(t, c.Set(t.Context(), "where", "first", 0).Err())
		require.NoError(t, behind(second).Set(t.Context(), "where", "second", 0).Err())
		news := c.Subscribe(t.Context(), "news", "more")
		defer news.Close()
		for range 2 { // a confirmation for each channel
			_, err := news.Receive(t.Context())
			require.NoError(t, err)
		}
		conns := c.PoolStats().Misses

		r.Hold()
		require.NoError(t, r.Resume(second))
		where, err := c.Get(t.Context(), "where").Result()
		require.NoError(t, err)
		require.Equal(t, "second", where)
		require.Equal(t, conns, c.PoolStats().Misses, "no new connection")
		require.NoError(t, behind(second).Publish(t.Context(), "more", "hello").Err())
		m, err := news.ReceiveMessage(t.Context())
		require.NoError(t, err)
		require.Equal(t, "hello", m.Payload)

		r.Hold()
		require.NoError(t, r.Resume(first))
	}
}

func TestARelayToNobodyEndsItsConnections(t *testing.T) {
	r := relayTo(t, needRedis(t))
	c := redis.NewClient(&redis.Options{Addr: r.Addr(), MaxRetries: -1})
	defer c.Close()
	require.NoError(t, c.Ping(t.Context()).Err())
	nobody, err := freePort()
	require.NoError(t, err)
	r.Hold()
	require.Error(t, r.Resume(fmt.Sprintf("127.0.0.1:%d", nobody)))
	require.Error(t, c.Ping(t.Context()).Err())
}

package stockproof_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/live/clients"
	"stockproof/live/servers"
	"stockproof/model"
	"stockproof/schemes"
)

// Which policy drops the key of the stock, and what a buyer is told by one that
// drops nothing.
func TestAServerShortOfMemoryDropsTheStockOrRefusesTheSale(t *testing.T) {
	r, err := liveWorld(t).Servers.StartRedis(t.Context(), servers.RedisOptions{})
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Close()) }()
	c := redis.NewClient(&redis.Options{Addr: r.Addr, MaxRetries: -1})
	defer c.Close()
	env := schemes.Env{Redis: c, Client: "a"}
	filler := strings.Repeat("x", 8<<10)
	for _, p := range []struct {
		policy string
		ttl    bool // the key of the stock has a time to live
		gone   bool
	}{
		{"allkeys-lru", false, true},
		{"allkeys-random", false, true},
		{"volatile-ttl", false, false},
		{"volatile-ttl", true, true},
		{"noeviction", true, false},
	} {
		for _, scheme := range []string{"hincrby", "lua-string"} {
			t.Run(fmt.Sprintf("%s/time to live %t/%s", p.policy, p.ttl, scheme), func(t *testing.T) {
				e := entry(t, scheme)
				require.NoError(t, c.FlushAll(t.Context()).Err())
				require.NoError(t, e.Scheme.(schemes.Loader).Load(t.Context(), env, "1001", 1))
				key := c.Keys(t.Context(), "*").Val()[0]
				if p.ttl {
					require.NoError(t, c.Expire(t.Context(), key, time.Hour).Err())
				}
				used, err := c.InfoMap(t.Context(), "memory").Result()
				require.NoError(t, err)
				var bytes int64
				_, err = fmt.Sscan(used["Memory"]["used_memory"], &bytes)
				require.NoError(t, err)
				require.NoError(t, c.ConfigSet(t.Context(), "maxmemory-policy", p.policy).Err())
				require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", fmt.Sprint(bytes+256<<10)).Err())
				full := false // it refuses a write
				for i := 0; i < 4000 && !full && c.Exists(t.Context(), key).Val() == 1; i++ {
					err := c.Set(t.Context(), fmt.Sprintf("filler:%d", i), filler, 0).Err()
					if full = redis.HasErrorPrefix(err, "OOM"); !full {
						require.NoError(t, err)
					}
				}
				require.Equal(t, p.gone, c.Exists(t.Context(), key).Val() == 0)
				if !p.gone {
					require.True(t, full)
					// A little room may be left: it looks at what it uses before a command.
					require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "1").Err())
					answer := clients.Do(t.Context(), e.Scheme, env, clients.Operation{Op: model.Deduct, SKU: "1001", Qty: 1, Request: "r", Buyer: "a"})
					require.Equal(t, model.Failed, answer.Outcome, answer.Err)
					require.Contains(t, answer.Err, "OOM")
				}
				require.NoError(t, c.ConfigSet(t.Context(), "maxmemory", "0").Err())
			})
		}
	}
}

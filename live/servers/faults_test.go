package servers_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"stockproof/live/servers"
)

// One set for all of them: starting servers is what costs time.
func TestServerFaultsTakeEffect(t *testing.T) {
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		s := start(t, b, servers.Options{})
		for name, test := range map[string]func(*testing.T, *servers.Set){
			"a frozen server executes what departed clients sent, a paused one does not": requireFreeze,
			"a frozen replica catches up, one whose link was cut lacks the writes":       requireStaleReplica,
			"sentinels promote the replica and the old primary loses its writes":         requireSentinels,
			"a cluster refuses keys that live apart":                                     requireCluster,
			"PostgreSQL forgets acknowledged commits only when it may":                   requireForgotten,
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				test(t, s)
			})
		}
		t.Cleanup(func() { require.NoError(t, s.Alive()) })
	})
}

func redisAt(t *testing.T, addr string) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: addr, MaxRetries: -1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// depart sends a command and leaves without its answer.
func depart(t *testing.T, addr, command string) {
	t.Helper()
	conn, err := net.Dial("tcp4", addr)
	require.NoError(t, err, "the kernel accepts for a server that stands still")
	_, err = conn.Write([]byte(command + "\r\n"))
	require.NoError(t, err)
	require.NoError(t, conn.Close())
}

func requireAt(t *testing.T, c *redis.Client, want, why string) {
	t.Helper()
	require.EventuallyWithT(t, func(now *assert.CollectT) { require.Equal(now, want, c.Get(t.Context(), "stock").Val()) }, limit, 5*time.Millisecond, why)
}

func requireFreeze(t *testing.T, s *servers.Set) {
	r, err := s.StartRedis(t.Context(), servers.RedisOptions{})
	require.NoError(t, err)
	c := redisAt(t, r.Addr)
	require.NoError(t, c.Set(t.Context(), "stock", 10, 0).Err())
	require.NoError(t, r.Freeze(t.Context()))
	impatient, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	deaf := redis.NewClient(&redis.Options{Addr: r.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer deaf.Close()
	require.Error(t, deaf.Ping(impatient).Err(), "it stands still")
	depart(t, r.Addr, "DECR stock")
	require.NoError(t, r.Thaw(t.Context()))
	requireAt(t, redisAt(t, r.Addr), "9", "the command of a client that has gone is executed")
	require.NoError(t, c.Do(t.Context(), "CLIENT", "PAUSE", "100", "ALL").Err())
	depart(t, r.Addr, "DECR stock")
	require.Equal(t, "9", c.Get(t.Context(), "stock").Val(), "CLIENT PAUSE is no freeze: the command is dropped with its client")
	require.NoError(t, r.Close())
}

func requireStaleReplica(t *testing.T, s *servers.Set) {
	r, err := s.StartRedis(t.Context(), servers.RedisOptions{Replica: true})
	require.NoError(t, err)
	old, next := redisAt(t, r.Addr), redisAt(t, r.Replica.Addr)
	require.NoError(t, old.Set(t.Context(), "stock", 10, 0).Err())
	requireAt(t, next, "10", "the replica follows")
	require.NoError(t, r.Replica.Freeze(t.Context()))
	require.NoError(t, old.DecrBy(t.Context(), "stock", 3).Err())
	// The client may be answered before the replica is written to, in the same turn of
	// the loop: that turn is over when a second command is answered.
	require.NoError(t, old.Ping(t.Context()).Err())
	require.NoError(t, r.Freeze(t.Context()), "as if it were dead")
	require.NoError(t, r.Replica.Thaw(t.Context()))
	requireAt(t, next, "7", "frozen is not behind: the kernel had kept the write for it")
	require.NoError(t, r.Replica.Promote(t.Context()))
	require.NoError(t, r.Thaw(t.Context()))

	require.NoError(t, r.Replica.Rejoin(t.Context(), r.Node))
	require.NoError(t, r.Replica.CutLink(t.Context(), r.Node))
	require.NoError(t, old.DecrBy(t.Context(), "stock", 3).Err())
	require.NoError(t, r.Replica.Promote(t.Context()))
	require.Equal(t, "4", old.Get(t.Context(), "stock").Val())
	require.Equal(t, "7", next.Get(t.Context(), "stock").Val(), "the link was cut: the write is not there")
	require.NoError(t, r.Rejoin(t.Context(), r.Replica))
	require.Equal(t, "7", old.Get(t.Context(), "stock").Val(), "who rejoins throws its own writes away")
	require.ErrorContains(t, old.Decr(t.Context(), "stock").Err(), "READONLY")
	require.NoError(t, r.Close())
}

// Where the promoted replica is slow to answer, as on a busy machine, a Sentinel with
// its short patience fails over once more, back to the old primary. That is its own
// affair: new ones are asked.
func requireSentinels(t *testing.T, s *servers.Set) {
	var err error
	for range 4 {
		if err = failOverBySentinel(t, s); err == nil {
			return
		}
		t.Log(err)
	}
	require.NoError(t, err, "the sentinel makes the old primary a replica of the new one")
}

// aFailover is how long a Sentinel may take for one: it leaves a primary that comes
// back alone for some seconds.
const aFailover = 25 * time.Second

func failOverBySentinel(t *testing.T, s *servers.Set) error {
	w, err := s.StartWatched(t.Context(), servers.WatchedOptions{Sentinels: 1, Quorum: 1})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), aFailover)
	defer cancel()
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: w.Name, SentinelAddrs: w.Addrs(), MaxRetries: -1})
	defer c.Close()
	require.NoError(t, c.Set(ctx, "stock", 10, 0).Err())
	require.NoError(t, w.Replica.CutLink(ctx, w.Primary))
	require.NoError(t, c.DecrBy(ctx, "stock", 3).Err())
	require.NoError(t, w.Primary.Kill(ctx))
	if err := w.Promoted(ctx); err != nil {
		return err
	}
	// The client finds the new primary, which lacks the write.
	for c.Get(ctx, "stock").Val() != "10" {
		if ctx.Err() != nil {
			return errors.New("the client does not find the new primary")
		}
	}
	require.NoError(t, w.Primary.Start(ctx))
	return w.Primary.Follows(ctx, w.Replica)
}

func requireCluster(t *testing.T, s *servers.Set) {
	cluster, err := s.StartCluster(t.Context(), 3)
	require.NoError(t, err)
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()})
	defer c.Close()
	const script = `return redis.call('INCRBY', KEYS[1], 1) + redis.call('INCRBY', KEYS[2], 1)`
	require.ErrorContains(t, c.Eval(t.Context(), script, []string{"stock:1", "bought:1"}).Err(), "CROSSSLOT")
	require.NoError(t, c.Eval(t.Context(), script, []string{"stock:{1}", "bought:{1}"}).Err())
	nodes := map[string]bool{}
	for _, key := range []string{"stock:1", "stock:2", "stock:3", "stock:4", "stock:5"} {
		require.NoError(t, c.Set(t.Context(), key, 1, 0).Err())
		owner, err := c.MasterForKey(t.Context(), key)
		require.NoError(t, err)
		nodes[owner.Options().Addr] = true
		for _, n := range cluster.Nodes {
			err := redisAt(t, n.Addr).Get(t.Context(), key).Err()
			if n.Addr == owner.Options().Addr {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "MOVED", "an ordinary client is sent away")
			}
		}
	}
	require.Len(t, nodes, 3)
	require.NoError(t, cluster.Close())
}

func requireForgotten(t *testing.T, s *servers.Set) {
	for _, asynchronous := range []bool{true, false} {
		pg, err := s.StartPostgres(t.Context(), servers.PostgresOptions{Asynchronous: asynchronous})
		require.NoError(t, err)
		c, err := pgx.Connect(t.Context(), pg.DSN())
		require.NoError(t, err)
		for _, setUp := range []string{`CREATE TABLE sold (n int)`, `CHECKPOINT`} {
			_, err = c.Exec(t.Context(), setUp)
			require.NoError(t, err)
		}
		_, err = c.Exec(t.Context(), `INSERT INTO sold VALUES (1)`)
		require.NoError(t, err, "acknowledged")
		require.NoError(t, pg.Crash(t.Context()))
		require.Error(t, c.Ping(t.Context()), "nobody's connection survives")
		_ = c.Close(t.Context())
		c, err = pgx.Connect(t.Context(), pg.DSN())
		require.NoError(t, err)
		var rows int
		require.NoError(t, c.QueryRow(t.Context(), `SELECT count(*) FROM sold`).Scan(&rows))
		require.NoError(t, c.Close(t.Context()))
		require.Equal(t, map[bool]int{true: 0, false: 1}[asynchronous], rows, "asynchronous: %t", asynchronous)
		require.NoError(t, pg.Close())
	}
}

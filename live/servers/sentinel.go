package servers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
)

// Watched is a Redis with a replica and with sentinels, which make the replica
// the primary when enough of them find the primary dead.
type Watched struct {
	Primary, Replica *Node
	Sentinels        []*Node
	// Name is that of the primary at the sentinels.
	Name string
}

// Times of the sentinels. They promote only a replica whose link has not been down
// for longer than ten times the first before they found the primary dead. An
// attempt that found none is repeated after twice the second, and a replica that
// was told to follow somebody else is put back after it.
const (
	sentinelDownAfter = 1 * time.Second
	sentinelFailover  = 10 * time.Second
	sentinelLooks     = 200 * time.Millisecond // at INFO of its servers
)

// WatchedOptions adapts a Watched.
type WatchedOptions struct {
	Sentinels, Quorum int // how many there are, how many must agree that the primary is dead
	// Settings of the two Redis servers, as RedisSettings in Options.
	Settings map[string]string
}

// StartWatched starts a Redis, its replica and its sentinels, and returns when
// every sentinel knows the replica and every other sentinel.
func (s *Set) StartWatched(ctx context.Context, opt WatchedOptions) (*Watched, error) {
	const name = "stock"
	servers := RedisOptions{Settings: opt.Settings}
	nodes, err := s.startNodes(ctx, "redis with sentinels", 2+opt.Sentinels, func(ports []int, i int) nodeConf {
		switch i {
		case 0:
			return nodeConf{lines: servers.conf()}
		case 1:
			return nodeConf{lines: append(servers.conf(), fmt.Sprintf("replicaof 127.0.0.1 %d", ports[0]), "replica-announce-ip 127.0.0.1")}
		}
		return nodeConf{sentinel: true, lines: []string{
			`logfile ""`, "sentinel announce-ip 127.0.0.1",
			fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d %d", name, ports[0], opt.Quorum),
			fmt.Sprintf("sentinel down-after-milliseconds %s %d", name, sentinelDownAfter.Milliseconds()),
			fmt.Sprintf("sentinel failover-timeout %s %d", name, sentinelFailover.Milliseconds()),
		}}
	})
	if err != nil {
		return nil, err
	}
	w := &Watched{Primary: nodes[0], Replica: nodes[1], Sentinels: nodes[2:], Name: name}
	if err := w.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("redis with sentinels: %w", err), w.Close())
	}
	return w, nil
}

func (w *Watched) ready(ctx context.Context) error {
	if err := w.Replica.Follows(ctx, w.Primary); err != nil {
		return err
	}
	for _, sentinel := range w.Sentinels {
		// By default it looks at its servers every 10 s.
		err := sentinel.ask(ctx, func(c *redis.Client) error {
			return c.Do(ctx, "SENTINEL", "DEBUG", "info-period", sentinelLooks.Milliseconds()).Err()
		})
		if err != nil {
			return err
		}
		err = askSentinel(ctx, sentinel, func(c *redis.SentinelClient) error {
			master, err := c.Master(ctx, w.Name).Result()
			if err != nil {
				return err
			}
			if master["num-slaves"] != "1" || master["num-other-sentinels"] != strconv.Itoa(len(w.Sentinels)-1) || master["flags"] != "master" {
				return fmt.Errorf("sentinel %s knows %s replicas, %s other sentinels, and the primary is %s",
					sentinel.Addr, master["num-slaves"], master["num-other-sentinels"], master["flags"])
			}
			replicas, err := c.Replicas(ctx, w.Name).Result()
			if err == nil && (len(replicas) != 1 || replicas[0]["flags"] != "slave" || replicas[0]["master-link-status"] != "ok") {
				err = fmt.Errorf("sentinel %s does not know the replica well enough to promote it: %v", sentinel.Addr, replicas)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Promoted waits until every sentinel names the replica as the primary, and it
// says so itself.
func (w *Watched) Promoted(ctx context.Context) error {
	for _, sentinel := range w.Sentinels {
		err := askSentinel(ctx, sentinel, func(c *redis.SentinelClient) error {
			addr, err := c.GetMasterAddrByName(ctx, w.Name).Result()
			if err == nil && !slices.Equal(addr, hostPort(w.Replica.Addr)) {
				err = fmt.Errorf("sentinel %s names %v as the primary", sentinel.Addr, addr)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return w.Replica.Leads(ctx)
}

// Addrs are the addresses of the sentinels.
func (w *Watched) Addrs() (addrs []string) {
	for _, n := range w.Sentinels {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Close ends the servers and the sentinels.
func (w *Watched) Close() error { return closeNodes([]*Node{w.Primary}) }

func askSentinel(ctx context.Context, n *Node, question func(*redis.SentinelClient) error) error {
	c := redis.NewSentinelClient(&redis.Options{Addr: n.Addr, MaxRetries: -1, DialerRetries: 1})
	defer c.Close()
	return until(ctx, func() error { return question(c) })
}

package servers

import (
	"context"
	"errors"
	"fmt"
)

// Redis is one more Redis server beside that of a set, with a replica if wanted.
type Redis struct {
	*Node
	// Replica follows it; nil when there is none.
	Replica *Node
}

// RedisOptions adapts a Redis.
type RedisOptions struct {
	// Persistence as in Options.
	Persistence Persistence
	// Replica: a second server follows it. It keeps nothing on disk.
	Replica bool
	// Settings as RedisSettings in Options.
	Settings map[string]string
}

// conf lets a replica follow at once: by default a server waits for more of them
// first.
func (o RedisOptions) conf() []string {
	return append(confLines(Options{Persistence: o.Persistence, RedisSettings: o.Settings}.redisArgs()), "repl-diskless-sync-delay 0")
}

// StartRedis starts another Redis on the set's backend and waits until it
// answers, and until its replica follows it.
func (s *Set) StartRedis(ctx context.Context, opt RedisOptions) (*Redis, error) {
	n := 1
	if opt.Replica {
		n = 2
	}
	nodes, err := s.startNodes(ctx, "another redis", n, func(ports []int, i int) nodeConf {
		conf := nodeConf{lines: opt.conf()}
		if i == 1 {
			conf.lines = append(RedisOptions{Settings: opt.Settings}.conf(), fmt.Sprintf("replicaof 127.0.0.1 %d", ports[0]))
		}
		return conf
	})
	if err != nil {
		return nil, err
	}
	r := &Redis{Node: nodes[0]}
	if opt.Replica {
		r.Replica = nodes[1]
		if err := r.Replica.Follows(ctx, r.Node); err != nil {
			return nil, errors.Join(fmt.Errorf("another redis: %w", err), r.Close())
		}
	}
	return r, nil
}

// Close ends the server and its replica.
func (r *Redis) Close() error { return closeNodes([]*Node{r.Node}) }

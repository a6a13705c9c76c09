package cost

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync/atomic"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver pgx
	"github.com/redis/go-redis/v9"

	live "stockproof/live/servers"
	"stockproof/schemes"
)

// servers are the Redis and the PostgreSQL that costs are measured on, and further
// Redis servers for what is measured with other settings.
type servers struct {
	set   *live.Set
	redis *redis.Client // asks the server about itself
	aof   map[live.Persistence]*live.Redis
	names atomic.Int64
}

func start(ctx context.Context, b live.Backend) (s *servers, err error) {
	set, err := live.Start(ctx, b)
	if err != nil {
		return nil, err
	}
	s = &servers{set: set, redis: redis.NewClient(&redis.Options{Addr: set.RedisAddr}), aof: map[live.Persistence]*live.Redis{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	db, err := sql.Open("pgx", set.PostgresDSN(""))
	if err != nil {
		return s, err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, schemes.Schema()); err != nil {
		return s, fmt.Errorf("create tables: %w", err)
	}
	return s, nil
}

func redisAt(addr string) *redis.Client { return redis.NewClient(&redis.Options{Addr: addr}) }

func (s *servers) close() error {
	err := s.redis.Close()
	for _, r := range s.aof {
		err = errors.Join(err, r.Close())
	}
	return errors.Join(err, s.set.Close())
}

// with is a Redis that writes to disk in some way, started when it is first asked for.
func (s *servers) with(ctx context.Context, p live.Persistence) (addr string, err error) {
	r := s.aof[p]
	if r == nil {
		if r, err = s.set.StartRedis(ctx, live.RedisOptions{Persistence: p}); err != nil {
			return "", err
		}
		s.aof[p] = r
	}
	return r.Addr, nil
}

// name is one that nobody had yet.
func (s *servers) name() string { return fmt.Sprintf("cost%x-%d", os.Getpid(), s.names.Add(1)) }

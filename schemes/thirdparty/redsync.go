package thirdparty

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"

	"stockproof/model"
	"stockproof/schemes"
)

func init() {
	schemes.NameScript("e950836ed1e694540c503ef9972b8de518044d3b", "redsync-release")
	schemes.Register(schemes.Entry{
		Scheme:     redsyncLock{},
		Summary:    "github.com/go-redsync/redsync on one node: a lock with a lease around HGET, compare, HINCRBY -q",
		Stores:     schemes.Stores{Redis: true},
		Guarantees: redsyncGuarantees,
		Wider:      true,
	})
}

// redsyncLock takes its lock with redsync, through its adapter for go-redis.
type redsyncLock struct{ stock }

// Name implements schemes.Scheme.
func (redsyncLock) Name() string { return "redsync@4.18.1" }

// timeout is redsync's own for a lease of 10 s, a twentieth of it. It stays where the
// lease is scaled down for a fault to meet it: the network does not get faster.
const timeout = lease / 20

func mutex(env schemes.Env, t schemes.Config, name, value string) *redsync.Mutex {
	return redsync.New(goredis.NewPool(env.Redis)).NewMutex(name,
		redsync.WithExpiry(t.Lease),
		redsync.WithTimeoutFactor(timeout.Seconds()/t.Lease.Seconds()),
		redsync.WithTries(1+again(t)),
		redsync.WithRetryDelay(t.Retry),
		// Random when left out, which is as unique and cannot be run again.
		redsync.WithGenValueFunc(func() (string, error) { return value, nil }))
}

// Load stores the units and loads the script.
func (s redsyncLock) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	m := mutex(env, times(schemes.Config{}), warmKey(sku), "warm")
	if err := m.LockContext(ctx); err != nil {
		return err
	}
	if _, err := m.UnlockContext(ctx); err != nil {
		return err
	}
	return s.HashStock.Load(ctx, env, sku, units)
}

// Deduct holds the lock while it reads, decides and decrements.
func (s redsyncLock) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	return s.guarded(ctx, env, req, func() (func() error, error) {
		m := mutex(env, times(env.Config), s.LockKey(req.SKU), env.Client+":"+req.ID)
		var taken *redsync.ErrTaken
		err := m.LockContext(ctx)
		if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return func() error {
			_, err := m.UnlockContext(ctx)
			return err
		}, nil
	})
}

package schemes

import (
	"context"
	"errors"
	"time"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     lock{},
		Summary:    "Redisson-style lock with a lease around HGET, compare, HINCRBY -q",
		Stores:     Stores{Redis: true},
		Guarantees: lockGuarantees,
	})
}

// Published settings of the lock scheme (claims, table "Schemes").
const (
	lockWait  = 1 * time.Second
	lockLease = 10 * time.Second
)

// or gives the published setting where the configuration has none.
func or(set, published time.Duration) time.Duration {
	if set > 0 {
		return set
	}
	return published
}

// lock is the distributed lock around read, check, decrement.
type lock struct {
	HashStock
	Leased
}

func (lock) Name() string { return "lock" }

// Load stores the units and loads the lock's scripts.
func (s lock) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := loadRedisson(ctx, env.Redis); err != nil {
		return err
	}
	return s.HashStock.Load(ctx, env, sku, units)
}

// Deduct takes the lock, reads, decides, decrements, and unlocks.
func (s lock) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return locked(ctx, env, req, or(env.Config.Lease, lockLease), func() (model.Outcome, error) {
		return s.ReadThenDecrement(ctx, env, req)
	})
}

// locked runs body while the SKU's lock is held; lease 0 means no lease, with
// the watchdog. The answer is the body's: an unlock that fails does not change
// what the buyer was promised, it is only reported.
func locked(ctx context.Context, env Env, req Request, lease time.Duration, body func() (model.Outcome, error)) (model.Outcome, error) {
	l := NewRedissonLock(env.Redis, lockKey(req.SKU), env.Client+":1", env.Config)
	taken, err := l.TryLock(ctx, or(env.Config.Wait, lockWait), lease)
	if err != nil {
		// The lock may have been taken, the stock was not touched.
		return model.Failed, err
	}
	if !taken {
		return model.Busy, nil
	}
	outcome, err := body()
	return outcome, errors.Join(err, l.Unlock(ctx))
}

package schemes

import (
	"context"
	"errors"
	"time"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     setnxLock{},
		Summary:    "SET NX PX as the lock around HGET, compare, HINCRBY -q; released with a DEL that does not ask whose it is",
		Stores:     Stores{Redis: true},
		Guarantees: setnxLockGuarantees,
		Wider:      true,
	})
}

// pollRetry is how often a lock without an unlock message is asked for.
const pollRetry = 100 * time.Millisecond

// setnxLock is the lock of a thousand tutorials: one key with an expiry, and
// DEL to release it.
type setnxLock struct {
	lock
}

func (setnxLock) Name() string { return "setnx-lock" }

// Load stores the units; the lock needs no script.
func (s setnxLock) Load(ctx context.Context, env Env, sku string, units int64) error {
	return s.HashStock.Load(ctx, env, sku, units)
}

// Deduct keeps the published flaw: DEL removes whatever lock is there, also one
// that somebody else has taken since the lease ended.
func (s setnxLock) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	key := lockKey(req.SKU)
	taken, err := poll(ctx, env.Config, func() (bool, error) {
		return env.Redis.SetNX(ctx, key, env.Client, or(env.Config.Lease, lockLease)).Result()
	})
	if err != nil {
		return model.Failed, err // the lock may have been taken, the stock was not touched
	}
	if !taken {
		return model.Busy, nil
	}
	outcome, err := s.ReadThenDecrement(ctx, env, req)
	return outcome, errors.Join(err, env.Redis.Del(ctx, key).Err())
}

// poll asks for a lock until it is taken or the wait is over.
func poll(ctx context.Context, cfg Config, try func() (bool, error)) (bool, error) {
	deadline := time.Now().Add(or(cfg.Wait, lockWait))
	for {
		taken, err := try()
		if err != nil || taken {
			return taken, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		select {
		case <-time.After(min(left, or(cfg.Retry, pollRetry))):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

package schemes

import (
	"context"
	"fmt"
	"time"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     luaLock{},
		Summary:    "lock, then the lua-string script, then the order in SQL; unlock in a finally that does not ask",
		Stores:     Stores{Redis: true, SQL: true},
		Waits:      true,
		Guarantees: luaLockGuarantees,
	})
}

// Published settings of the lua-lock scheme (claims, table "Schemes").
const (
	luaLockWait  = 500 * time.Millisecond
	luaLockLease = 30 * time.Second
	luaLockRetry = 100 * time.Millisecond
)

// luaLock is lock, script and order.
type luaLock struct {
	stringStock
	orderTable
	Leased
}

func (luaLock) Name() string { return "lua-lock" }

// Load stores the units and loads the scripts of stock and lock.
func (s luaLock) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := loadRedisson(ctx, env.Redis); err != nil {
		return err
	}
	return s.stringStock.Load(ctx, env, sku, units)
}

// Reconcile is the periodic full synchronisation of the published design: what
// went on sale less what was ordered becomes the counter, whatever it says. An
// order that is under way, and what was put back, it does not see.
func (s luaLock) Reconcile(ctx context.Context, env Env, sku string, units int64) error {
	sold, err := s.Orders(ctx, env, sku)
	if err != nil {
		return err
	}
	left := units
	for _, o := range sold {
		left -= o.Qty
	}
	return env.Redis.Set(ctx, stockKey(sku), left, 0).Err()
}

// Deduct keeps the published flaw: the unlock runs whether or not the lock was
// taken, and its exception replaces the answer. Where the lock was never taken
// the answer is Failed (nothing was deducted). After a deduction the buyer is
// told of an error although the sale may be complete: Unknown.
func (s luaLock) Deduct(ctx context.Context, env Env, req Request) (outcome model.Outcome, err error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	cfg := env.Config
	cfg.Retry = or(cfg.Retry, luaLockRetry)
	l := NewRedissonLock(env.Redis, lockKey(req.SKU), env.Client+":1", cfg)
	defer func() {
		unlockErr := l.Unlock(ctx)
		if unlockErr == nil {
			return
		}
		err = fmt.Errorf("finally: %w", unlockErr)
		switch outcome {
		case model.Sold, model.Unknown:
			outcome = model.Unknown
		default:
			outcome = model.Failed
		}
	}()
	taken, err := l.TryLock(ctx, or(env.Config.Wait, luaLockWait), or(env.Config.Lease, luaLockLease))
	if err != nil {
		return model.Failed, err // the lock may have been taken, the stock was not touched
	}
	if !taken {
		return model.Busy, nil
	}
	outcome, err = s.deduct(ctx, env, req)
	if outcome != model.Sold {
		return outcome, err
	}
	if err := s.insert(ctx, env.DB, req); err != nil {
		// The units are taken; the order may or may not be there. The published
		// scheme gives nothing back here.
		return model.Unknown, err
	}
	return model.Sold, nil
}

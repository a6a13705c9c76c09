package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     lockSet{},
		Summary:    "as lock, but writes the value it computed with HSET; oversells and is never negative",
		Stores:     Stores{Redis: true},
		Guarantees: lockSetGuarantees,
	})
}

// lockSet is lock with a computed value written back: who watches for
// negative stock sees nothing.
type lockSet struct{ lock }

func (lockSet) Name() string { return "lock-set" }

// Deduct takes the lock, reads, decides, writes the difference, and unlocks.
func (s lockSet) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return locked(ctx, env, req, or(env.Config.Lease, lockLease), func() (model.Outcome, error) {
		left, err := s.Read(ctx, env, req.SKU)
		if err != nil {
			return model.Failed, err // nothing was written yet
		}
		if left < req.Qty {
			return model.SoldOut, nil
		}
		return s.write(ctx, env, req, left-req.Qty, model.Sold)
	})
}

// Restock too must hold the lock: a computed value would overwrite it.
func (s lockSet) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return locked(ctx, env, req, or(env.Config.Lease, lockLease), func() (model.Outcome, error) {
		left, err := s.Read(ctx, env, req.SKU)
		if err != nil {
			return model.Failed, err // nothing was written yet
		}
		return s.write(ctx, env, req, left+req.Qty, model.OK)
	})
}

func (lockSet) write(ctx context.Context, env Env, req Request, units int64, done model.Outcome) (model.Outcome, error) {
	if err := env.Redis.HSet(ctx, goodsKey(req.SKU), stockField, units).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return done, nil
}

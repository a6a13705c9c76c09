package thirdparty

import (
	"context"
	"errors"

	bsm "github.com/bsm/redislock"

	"stockproof/model"
	"stockproof/schemes"
)

func init() {
	schemes.NameScript("80a1b5f2cfccec3b7119ba7721d2127682b691a7", "redislock-obtain", tokenLength)
	schemes.NameScript("cf0e94b2e9ffc7e04395cf88f7583fc309985910", "redislock-release")
	schemes.Register(schemes.Entry{
		Scheme:     redislock{},
		Summary:    "github.com/bsm/redislock: a lock with a lease around HGET, compare, HINCRBY -q",
		Stores:     schemes.Stores{Redis: true},
		Guarantees: redislockGuarantees,
		Wider:      true,
	})
}

// tokenLength is where the first script has the length of the token, among its
// keys and arguments. Clients have names of another length in each world, so a
// schedule does not tell it.
const tokenLength = 2

// redislock takes its lock with bsm/redislock.
type redislock struct{ stock }

// Name implements schemes.Scheme.
func (redislock) Name() string { return "redislock@0.9.4" }

// Load stores the units and loads the scripts.
func (s redislock) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	l, err := bsm.Obtain(ctx, env.Redis, warmKey(sku), lease, &bsm.Options{Token: "warm"})
	if err != nil {
		return err
	}
	if err := l.Release(ctx); err != nil {
		return err
	}
	return s.HashStock.Load(ctx, env, sku, units)
}

// Deduct holds the lock while it reads, decides and decrements.
func (s redislock) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	return s.guarded(ctx, env, req, func() (func() error, error) {
		t := times(env.Config)
		l, err := bsm.Obtain(ctx, env.Redis, s.LockKey(req.SKU), t.Lease, &bsm.Options{
			RetryStrategy: bsm.LimitRetry(bsm.LinearBackoff(t.Retry), again(t)),
			// Random when left out, which is as unique and cannot be run again.
			Token: env.Client + ":" + req.ID,
		})
		if errors.Is(err, bsm.ErrNotObtained) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		return func() error { return l.Release(ctx) }, nil
	})
}

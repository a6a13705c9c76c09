package schemes

import (
	"context"
	"errors"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     watchMulti{},
		Summary:    "WATCH, GET, compare, MULTI DECRBY EXEC; tried once more when EXEC finds the key touched, then busy",
		Stores:     Stores{Redis: true},
		Guarantees: watchMultiGuarantees,
		Transacts:  true,
		Wider:      true,
	})
}

// watchAttempts bounds the optimistic retry: under contention one attempt in
// each round wins.
const watchAttempts = 2

// watchMulti is optimistic locking by the server: EXEC does nothing when a
// watched key was touched since WATCH.
type watchMulti struct{ stringStock }

func (watchMulti) Name() string { return "watch-multi" }

// Load stores the units; there is no script.
func (watchMulti) Load(ctx context.Context, env Env, sku string, units int64) error {
	return env.Redis.Set(ctx, stockKey(sku), units, 0).Err()
}

// Deduct is WATCH, GET and one transaction on one connection. What comes before
// EXEC writes nothing, so only EXEC can end Unknown.
func (s watchMulti) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	key := stockKey(req.SKU)
	for range watchAttempts {
		outcome := model.Failed
		err := env.Redis.Watch(ctx, func(tx *redis.Tx) error {
			left, err := tx.Get(ctx, key).Int64()
			if errors.Is(err, redis.Nil) {
				return fmt.Errorf("%w: %s", ErrNoStock, req.SKU)
			}
			if err != nil {
				return err
			}
			if left < req.Qty {
				outcome = model.SoldOut
				return nil
			}
			_, err = tx.TxPipelined(ctx, func(p redis.Pipeliner) error {
				p.DecrBy(ctx, key, req.Qty)
				return nil
			})
			switch {
			case err == nil:
				outcome = model.Sold
			case !errors.Is(err, redis.TxFailedErr):
				outcome = afterRedis(env, err)
			}
			return err
		}, key)
		if !errors.Is(err, redis.TxFailedErr) {
			return outcome, err
		}
	}
	return model.Busy, nil // each attempt lost to somebody else's; nothing was deducted
}

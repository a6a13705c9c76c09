package schemes

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     hincrby{},
		Summary:    "HINCRBY -q, look at the reply, give back with HINCRBY +q when it is negative",
		Stores:     Stores{Redis: true},
		Guarantees: hincrbyGuarantees,
	})
}

// stockField is the field of the goods hash that holds the units on sale.
const stockField = "stock"

func goodsKey(sku string) string { return "goods:" + sku }

// HashStock is the counter of the schemes that keep it in a hash field.
type HashStock struct{}

// Load sets the field; HSET overwrites, as a preload job does.
func (HashStock) Load(ctx context.Context, env Env, sku string, units int64) error {
	return env.Redis.HSet(ctx, goodsKey(sku), stockField, units).Err()
}

// Read answers the field; ErrNoStock when it is missing.
func (HashStock) Read(ctx context.Context, env Env, sku string) (int64, error) {
	left, err := env.Redis.HGet(ctx, goodsKey(sku), stockField).Int64()
	if err == redis.Nil {
		return 0, fmt.Errorf("%w: %s", ErrNoStock, sku)
	}
	return left, err
}

// Restock adds the units with one HINCRBY.
func (HashStock) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if err := env.Redis.HIncrBy(ctx, goodsKey(req.SKU), stockField, req.Qty).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.OK, nil
}

// ReadThenDecrement is HGET, compare, HINCRBY -q, for who holds a lock meanwhile.
func (s HashStock) ReadThenDecrement(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	left, err := s.Read(ctx, env, req.SKU)
	if err != nil {
		return model.Failed, err // nothing was written yet
	}
	if left < req.Qty {
		return model.SoldOut, nil
	}
	if err := env.Redis.HIncrBy(ctx, goodsKey(req.SKU), stockField, -req.Qty).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.Sold, nil
}

// hincrby is scheme "decrement, look, give back".
type hincrby struct{ HashStock }

func (hincrby) Name() string { return "hincrby" }

// Deduct takes the units first and asks afterwards. When the give-back meets
// an error the buyer is still told sold-out, because that was decided by the
// first reply; the error reports that the counter may stay short.
func (hincrby) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	left, err := env.Redis.HIncrBy(ctx, goodsKey(req.SKU), stockField, -req.Qty).Result()
	if err != nil {
		return afterRedis(env, err), err
	}
	if left >= 0 {
		return model.Sold, nil
	}
	if err := env.Redis.HIncrBy(ctx, goodsKey(req.SKU), stockField, req.Qty).Err(); err != nil {
		return model.SoldOut, fmt.Errorf("give back %d: %w", req.Qty, err)
	}
	return model.SoldOut, nil
}

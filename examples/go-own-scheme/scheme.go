// Package own is a stock-deduction scheme of somebody's own.
package own

import (
	"context"

	"github.com/redis/go-redis/v9"

	"stockproof"
)

type Scheme struct{}

var take = redis.NewScript(`
	if tonumber(redis.call('GET', KEYS[1])) < tonumber(ARGV[1]) then return 0 end
	redis.call('DECRBY', KEYS[1], ARGV[1])
	return 1`)

func (Scheme) Name() string { return "own" }

func (Scheme) Load(ctx context.Context, env stockproof.Env, sku string, units int64) error {
	return env.Redis.Set(ctx, "units:"+sku, units, 0).Err()
}

func (Scheme) Read(ctx context.Context, env stockproof.Env, sku string) (int64, error) {
	return env.Redis.Get(ctx, "units:"+sku).Int64()
}

func (Scheme) Deduct(ctx context.Context, env stockproof.Env, r stockproof.Request) (stockproof.Outcome, error) {
	switch taken, err := take.Run(ctx, env.Redis, []string{"units:" + r.SKU}, r.Qty).Int(); {
	case err != nil:
		return stockproof.Unknown, err
	case taken == 0:
		return stockproof.SoldOut, nil
	}
	return stockproof.Sold, nil
}

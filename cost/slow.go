package cost

import (
	"context"
	"strconv"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
	"stockproof/schemes"
)

// slowScript is lua-string with a loop before it that runs for some milliseconds by
// the server's clock.
type slowScript struct{ ms int }

var slowTake = redis.NewScript(`
local function now() local t = redis.call('TIME') return t[1] * 1000000 + t[2] end
local ms = tonumber(ARGV[2])
if ms > 0 then
	local till = now() + ms * 1000
	while now() < till do end
end
local left = tonumber(redis.call('GET', KEYS[1]))
if left < tonumber(ARGV[1]) then return 0 end
redis.call('DECRBY', KEYS[1], ARGV[1])
return 1`)

// slow is the scheme with scripts of so many milliseconds.
func slow(ms string) schemes.Entry {
	n, err := strconv.Atoi(ms)
	if err != nil {
		panic(err) // the plan's own numbers
	}
	return schemes.Entry{Scheme: slowScript{n}, Stores: schemes.Stores{Redis: true}}
}

func (slowScript) Name() string { return "lua-string" }

func slowKey(sku string) string { return "slow:" + sku }

func (slowScript) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	if err := slowTake.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	return env.Redis.Set(ctx, slowKey(sku), units, 0).Err()
}

func (slowScript) Read(ctx context.Context, env schemes.Env, sku string) (int64, error) {
	return env.Redis.Get(ctx, slowKey(sku)).Int64()
}

func (s slowScript) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	switch taken, err := slowTake.EvalSha(ctx, env.Redis, []string{slowKey(req.SKU)}, req.Qty, s.ms).Int(); {
	case err != nil:
		return model.Unknown, err
	case taken == 0:
		return model.SoldOut, nil
	}
	return model.Sold, nil
}

package schemes

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     luaString{},
		Summary:    "one script on a string key: compare, then DECRBY q",
		Stores:     Stores{Redis: true},
		Waits:      true,
		Guarantees: luaGuarantees,
	})
}

//go:embed lua_string.lua
var luaStringSource string

var luaStringScript = named("lua-string", luaStringSource)

func stockKey(sku string) string { return "stock:" + sku }

// stringStock is the counter of the schemes that keep it in a string key.
type stringStock struct{}

// Load sets the key and loads the script.
func (stringStock) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := luaStringScript.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	return env.Redis.Set(ctx, stockKey(sku), units, 0).Err()
}

// Read answers the key; ErrNoStock when it is missing.
func (stringStock) Read(ctx context.Context, env Env, sku string) (int64, error) {
	left, err := env.Redis.Get(ctx, stockKey(sku)).Int64()
	if err == redis.Nil {
		return 0, fmt.Errorf("%w: %s", ErrNoStock, sku)
	}
	return left, err
}

// Restock adds the units with one INCRBY.
func (stringStock) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if err := env.Redis.IncrBy(ctx, stockKey(req.SKU), req.Qty).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.OK, nil
}

func (stringStock) deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return deductByScript(ctx, env, luaStringScript, []string{stockKey(req.SKU)}, req.Qty)
}

// luaString is the atomic script on a string key.
type luaString struct{ stringStock }

func (luaString) Name() string { return "lua-string" }

// Deduct is one EVALSHA.
func (s luaString) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return s.deduct(ctx, env, req)
}

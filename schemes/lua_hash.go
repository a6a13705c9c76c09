package schemes

import (
	"context"
	_ "embed"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     luaHash{},
		Summary:    "one script on a hash field: compare, then HINCRBY -q",
		Stores:     Stores{Redis: true},
		Waits:      true,
		Guarantees: luaGuarantees,
	})
}

//go:embed lua_hash.lua
var luaHashSource string

var luaHashScript = named("lua-hash", luaHashSource)

// luaHash is the atomic script on a hash field.
type luaHash struct{ HashStock }

func (luaHash) Name() string { return "lua-hash" }

// Load stores the units and loads the script.
func (s luaHash) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := luaHashScript.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	return s.HashStock.Load(ctx, env, sku, units)
}

// Deduct is one EVALSHA.
func (luaHash) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return deductByScript(ctx, env, luaHashScript, []string{goodsKey(req.SKU)}, stockField, req.Qty)
}

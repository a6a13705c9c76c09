package schemes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     luaLimit{},
		Summary:    "the lua-string script with one purchase for each buyer: a set of buyers is asked and filled in the same script",
		Stores:     Stores{Redis: true},
		Guarantees: luaLimitGuarantees,
		Wider:      true,
	})
}

//go:embed lua_limit.lua
var luaLimitSource string

var luaLimitScript = named("lua-limit", luaLimitSource)

// ErrLimit refuses a buyer who has bought before.
var ErrLimit = errors.New("one purchase for each buyer")

// luaLimit checks the limit where the stock is checked, so two requests of one
// buyer cannot both pass.
type luaLimit struct{ stringStock }

func (luaLimit) Name() string { return "lua-limit" }

func buyersKey(sku string) string { return "buyers:" + sku }

// Load stores the units, forgets who bought in an earlier sale, and loads the
// script.
func (luaLimit) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := luaLimitScript.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	if err := env.Redis.Del(ctx, buyersKey(sku)).Err(); err != nil {
		return err
	}
	return env.Redis.Set(ctx, stockKey(sku), units, 0).Err()
}

// Deduct is one EVALSHA. That the buyer has bought is no certain refusal where
// the client library repeats commands: it may have been this very command.
func (luaLimit) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	done, err := luaLimitScript.Run(ctx, env.Redis, []string{stockKey(req.SKU), buyersKey(req.SKU)}, req.Qty, req.Buyer).Int64()
	switch {
	case err != nil:
		return afterRedis(env, err), err
	case done == 1:
		return model.Sold, nil
	case done == 0:
		return model.SoldOut, nil
	case env.Redis.Options().MaxRetries != 0:
		return model.Unknown, fmt.Errorf("%w: %s", ErrLimit, req.Buyer)
	}
	return model.Failed, fmt.Errorf("%w: %s", ErrLimit, req.Buyer)
}

package schemes

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     tokenList{},
		Summary:    "a list with one token a unit: LPOP q; fewer than q came: RPUSH them back, sold-out",
		Stores:     Stores{Redis: true},
		Guarantees: tokenListGuarantees,
		Wider:      true,
	})
}

// tokenList keeps a token for each unit; who holds a token has bought. Its
// counter is the length of the list.
type tokenList struct{}

func (tokenList) Name() string { return "token-list" }

func tokensKey(sku string) string { return "tokens:" + sku }

// maxTokens bounds one command: a list of tokens is for small stocks, and a
// command with millions of arguments is refused by the server anyway.
const maxTokens = 1 << 20

// errTokens: a quantity that no list of tokens can serve.
var errTokens = errors.New("more units than a list of tokens holds")

func tokens(sku string, n int64) []any { return slices.Repeat([]any{sku}, int(n)) }

// Load pushes a token for each unit. As published it does not ask whether there
// are some already: run twice, it doubles the stock.
func (tokenList) Load(ctx context.Context, env Env, sku string, units int64) error {
	if units > maxTokens {
		return fmt.Errorf("%w: %d", errTokens, units)
	}
	if units <= 0 {
		return nil
	}
	return env.Redis.RPush(ctx, tokensKey(sku), tokens(sku, units)...).Err()
}

// Read answers the number of tokens. A list that was never loaded is an empty
// one to Redis, so a missing counter reads 0.
func (tokenList) Read(ctx context.Context, env Env, sku string) (int64, error) {
	return env.Redis.LLen(ctx, tokensKey(sku)).Result()
}

// Restock pushes tokens.
func (tokenList) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if req.Qty > maxTokens {
		return model.Failed, fmt.Errorf("%w: %d", errTokens, req.Qty)
	}
	if err := env.Redis.RPush(ctx, tokensKey(req.SKU), tokens(req.SKU, req.Qty)...).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.OK, nil
}

// Deduct takes what is there up to the quantity. Too few are pushed back; when
// that meets an error the buyer is still told sold-out, which was decided
// before, and the error reports that tokens may be missing.
func (tokenList) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if req.Qty > maxTokens {
		return model.Failed, fmt.Errorf("%w: %d", errTokens, req.Qty)
	}
	key := tokensKey(req.SKU)
	got, err := env.Redis.LPopCount(ctx, key, int(req.Qty)).Result()
	if errors.Is(err, redis.Nil) {
		return model.SoldOut, nil
	}
	if err != nil {
		return afterRedis(env, err), err
	}
	if int64(len(got)) == req.Qty {
		return model.Sold, nil
	}
	if err := env.Redis.RPush(ctx, key, tokens(req.SKU, int64(len(got)))...).Err(); err != nil {
		return model.SoldOut, fmt.Errorf("push %d tokens back: %w", len(got), err)
	}
	return model.SoldOut, nil
}

package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     naive{},
		Summary:    "positive control: GET, compare, DECRBY with nothing to protect what was read",
		Stores:     Stores{Redis: true},
		Guarantees: naiveGuarantees,
	})
}

// naive reads, compares and decrements. A suite that cannot convict it proves
// nothing.
type naive struct{ stringStock }

func (naive) Name() string { return "naive" }

// Deduct is GET, compare, DECRBY.
func (s naive) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	left, err := s.Read(ctx, env, req.SKU)
	if err != nil {
		return model.Failed, err // nothing was written yet
	}
	if left < req.Qty {
		return model.SoldOut, nil
	}
	if err := env.Redis.DecrBy(ctx, stockKey(req.SKU), req.Qty).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.Sold, nil
}

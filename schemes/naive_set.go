package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     naiveSet{},
		Summary:    "positive control: GET, compare, SET the difference; oversells and is never negative",
		Stores:     Stores{Redis: true},
		Guarantees: naiveSetGuarantees,
	})
}

// naiveSet writes the value it computed: two buyers who read the same number
// both sell, and the counter never tells.
type naiveSet struct{ stringStock }

func (naiveSet) Name() string { return "naive-set" }

// Deduct is GET, compare, SET.
func (s naiveSet) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
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
	if err := env.Redis.Set(ctx, stockKey(req.SKU), left-req.Qty, 0).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.Sold, nil
}

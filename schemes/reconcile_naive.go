package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     reconcileNaive{},
		Summary:    "lua-string, then the order in SQL; a job sets the counter to the units put on sale minus those ordered",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: reconcileNaiveGuarantees,
		Wider:      true,
	})
}

// putOnSale remembers in the row of goods how many units were ever put on sale,
// beside the counter in Redis.
type putOnSale struct {
	stringStock
	orderTable
}

// Load sets both.
func (s putOnSale) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := (rowStock{}).Load(ctx, env, sku, units); err != nil {
		return err
	}
	return s.stringStock.Load(ctx, env, sku, units)
}

// Restock adds the units to both. When the second is in doubt, so is the whole.
func (s putOnSale) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if outcome, err := (rowStock{}).Restock(ctx, env, req); outcome != model.OK {
		return outcome, err
	}
	if outcome, err := s.stringStock.Restock(ctx, env, req); outcome != model.OK {
		return model.Unknown, err
	}
	return model.OK, nil
}

// reconcileNaive has a job that overwrites the counter with what the database
// makes of it.
type reconcileNaive struct{ putOnSale }

func (reconcileNaive) Name() string { return "reconcile-naive" }

// Deduct is the script, then the order.
func (s reconcileNaive) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if outcome, err := s.deduct(ctx, env, req); outcome != model.Sold {
		return outcome, err
	}
	if err := s.insert(ctx, env.DB, req); err != nil {
		return model.Unknown, err // the units are taken; the order may or may not be there
	}
	return model.Sold, nil
}

// Work is a run of the job. It takes a request that has deducted and not yet
// ordered for units that were lost.
func (reconcileNaive) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	var units, ordered int64
	if err := env.DB.QueryRowContext(ctx, `SELECT stock FROM goods WHERE sku = $1`, sku).Scan(&units); err != nil {
		return true, err
	}
	if err := env.DB.QueryRowContext(ctx, `SELECT coalesce(sum(qty), 0) FROM orders WHERE sku = $1`, sku).Scan(&ordered); err != nil {
		return true, err
	}
	return false, env.Redis.Set(ctx, stockKey(sku), units-ordered, 0).Err()
}

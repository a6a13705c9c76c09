package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     reserveConfirm{},
		Summary:    "reserve in Redis for a time, order in SQL, confirm; a sweeper gives back what was not confirmed in time",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: reserveConfirmGuarantees,
		Wider:      true,
	})
}

// reserveConfirm takes a reservation that was not confirmed in time for one that
// will not be. A late confirm is honoured all the same: the buyer has paid.
type reserveConfirm struct{ holds }

func (reserveConfirm) Name() string { return "reserve-confirm" }

// Deduct is reserve, order, confirm.
func (s reserveConfirm) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return s.sell(ctx, env, req)
}

// Work is a round of the sweeper.
func (s reserveConfirm) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	return s.sweep(ctx, env, sku, func(string) (bool, error) { return false, nil })
}

package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     reconcileDiff{},
		Summary:    "a journal of requests in flight beside the counter; a job gives back what is older than the window and has no order",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: reconcileDiffGuarantees,
		Wider:      true,
	})
}

// reconcileDiff corrects the counter by differences: request by request, what
// was deducted and, after the time that a request may take, is not ordered.
type reconcileDiff struct{ holds }

func (reconcileDiff) Name() string { return "reconcile-diff" }

// Deduct is deduct and note, order, strike off.
func (s reconcileDiff) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return s.sell(ctx, env, req)
}

// Work is a run of the job. It looks for the order and then gives back: an order
// that is written between the two it does not see.
func (s reconcileDiff) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	return s.sweep(ctx, env, sku, func(request string) (bool, error) {
		var orders int64
		err := env.DB.QueryRowContext(ctx, `SELECT count(*) FROM orders WHERE request_id = $1`, request).Scan(&orders)
		return orders > 0, err
	})
}

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
	Register(Entry{
		Scheme:     reserveConfirmOnce{},
		Summary:    "reserve-confirm in which order and cancellation are rows under the same key, so that only one of them can be",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: reserveConfirmOnceGuarantees,
		Wider:      true,
	})
	Register(Entry{
		Scheme:     reconcileDiff{},
		Summary:    "a journal of requests in flight beside the counter; a job gives back what is older than the window and has no order",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: reconcileDiffGuarantees,
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

// reserveConfirmOnce lets the database decide between a late confirm and the
// sweeper: each inserts a row under the request id, and the second of them
// cannot. A cancelled request is an order of no units.
type reserveConfirmOnce struct{ holds }

func (reserveConfirmOnce) Name() string { return "reserve-confirm-once" }

// Deduct is reserve, order, confirm. An order that comes too late fails, as
// does one for a request that has one.
func (s reserveConfirmOnce) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return s.sell(ctx, env, req)
}

// Work is a round of the sweeper. One that died between the cancellation and the
// give-back leaves the hold, and the next finds the cancellation.
func (s reserveConfirmOnce) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	return s.sweep(ctx, env, sku, func(request string) (bool, error) {
		_, err := env.DB.ExecContext(ctx,
			`INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, '', 0) ON CONFLICT (request_id) DO NOTHING`, request, sku)
		if err != nil {
			return false, err
		}
		var units int64
		err = env.DB.QueryRowContext(ctx, `SELECT qty FROM orders WHERE request_id = $1`, request).Scan(&units)
		return units > 0, err
	})
}

// Orders leaves the cancellations out.
func (reserveConfirmOnce) Orders(ctx context.Context, env Env, sku string) ([]model.Order, error) {
	rows, err := env.DB.QueryContext(ctx,
		`SELECT request_id, qty FROM orders WHERE sku = $1 AND qty > 0 ORDER BY request_id`, sku)
	if err != nil {
		return nil, err
	}
	return scanOrders(rows)
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

package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     reserveConfirmOnce{},
		Summary:    "reserve-confirm in which order and cancellation are rows under the same key, so that only one of them can be",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: reserveConfirmOnceGuarantees,
		Wider:      true,
	})
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

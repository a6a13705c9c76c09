package schemes

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     outbox{},
		Summary:    "transactional outbox: stock and outbox row in one SQL transaction; a relay publishes the orders to Redis, at least once",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: outboxGuarantees,
		Wider:      true,
	})
}

// outbox sells in the database and hands the orders over to fulfilment, a list
// in Redis, by a relay. That a sale and its message are one transaction keeps
// either from being without the other. The relay publishes and then notes that
// it did; between the two it can die.
type outbox struct{ rowStock }

func (outbox) Name() string { return "outbox" }

func fulfilmentKey(sku string) string { return "fulfilment:" + sku }

// Deduct is one transaction; only its COMMIT can end Unknown. The row of a
// request stays in the outbox after it was sent, so that the same request
// cannot come in again.
func (s outbox) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	tx, err := env.DB.BeginTx(ctx, nil)
	if err != nil {
		return model.Failed, err
	}
	defer tx.Rollback() // after Commit it does nothing
	if outcome, err := s.take(ctx, tx, req); outcome != model.Sold {
		return outcome, err
	}
	if _, err := tx.ExecContext(ctx,
		`INSERT INTO outbox (request_id, sku, qty, sent) VALUES ($1, $2, $3, 0)`, req.ID, req.SKU, req.Qty); err != nil {
		return model.Failed, err
	}
	return committed(tx)
}

// Work is a round of the relay.
func (outbox) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	rows, err := env.DB.QueryContext(ctx,
		`SELECT request_id, qty FROM outbox WHERE sku = $1 AND sent = 0 ORDER BY request_id`, sku)
	if err != nil {
		return true, err
	}
	waiting, err := scanOrders(rows)
	if err != nil {
		return true, err
	}
	for _, o := range waiting {
		if err := env.Redis.RPush(ctx, fulfilmentKey(sku), fmt.Sprintf("%s %d", o.Request, o.Qty)).Err(); err != nil {
			return true, err
		}
		if _, err := env.DB.ExecContext(ctx, `UPDATE outbox SET sent = 1 WHERE request_id = $1`, o.Request); err != nil {
			return true, err
		}
	}
	return false, nil
}

// Orders are what fulfilment was given: it has no other way to know of an order.
func (outbox) Orders(ctx context.Context, env Env, sku string) ([]model.Order, error) {
	lines, err := env.Redis.LRange(ctx, fulfilmentKey(sku), 0, -1).Result()
	if err != nil {
		return nil, err
	}
	var orders []model.Order
	for _, line := range lines {
		request, qty, _ := strings.Cut(line, " ")
		units, err := strconv.ParseInt(qty, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("fulfilment of %s: %q: want a request and its units", sku, line)
		}
		orders = append(orders, model.Order{Request: request, Qty: units})
	}
	return orders, nil
}

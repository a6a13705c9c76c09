package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     streamOrderBlind{},
		Summary:    "stream-order whose consumer gives every message it gets an order number of its own",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: streamOrderBlindGuarantees,
		Wider:      true,
	})
}

// orderNumbers is the key that numbers the orders of stream-order-blind.
func orderNumbers(sku string) string { return "order-number:" + sku }

// streamOrderBlind makes an order of every message.
type streamOrderBlind struct{ streamStock }

func (streamOrderBlind) Name() string { return "stream-order-blind" }

// Work is a round of the consumer. Nothing in the table of shipments says that a
// message was there before: an order's key is its number, taken from a counter.
func (s streamOrderBlind) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	return s.consume(ctx, env, sku, func(o model.Order) error {
		number, err := env.Redis.Incr(ctx, orderNumbers(sku)).Result()
		if err != nil {
			return err
		}
		_, err = env.DB.ExecContext(ctx,
			`INSERT INTO shipments (sku, number, request_id, qty) VALUES ($1, $2, $3, $4)`, sku, number, o.Request, o.Qty)
		return err
	})
}

// Orders lists the shipments by number.
func (streamOrderBlind) Orders(ctx context.Context, env Env, sku string) ([]model.Order, error) {
	rows, err := env.DB.QueryContext(ctx, `SELECT request_id, qty FROM shipments WHERE sku = $1 ORDER BY number`, sku)
	if err != nil {
		return nil, err
	}
	return scanOrders(rows)
}

package schemes

import (
	"context"
	"database/sql"
	_ "embed"

	"stockproof/model"
)

//go:embed schema.sql
var schemaSQL string

// Schema is the DDL of the tables the SQL schemes use: goods and orders.
func Schema() string { return schemaSQL }

// execer is what *sql.DB and *sql.Tx have in common here.
type execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// orderTable is the durable record of sales. The request id is the order
// number, so one request cannot have two orders.
type orderTable struct{}

func (orderTable) insert(ctx context.Context, db execer, req Request) error {
	_, err := db.ExecContext(ctx,
		`INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, $3, $4)`,
		req.ID, req.SKU, req.Buyer, req.Qty)
	return err
}

// Orders lists the durable orders of a SKU by request id.
func (orderTable) Orders(ctx context.Context, env Env, sku string) ([]model.Order, error) {
	return ordersWhere(ctx, env, `SELECT request_id, qty FROM orders WHERE sku = $1 ORDER BY request_id`, sku)
}

func ordersWhere(ctx context.Context, env Env, query, sku string) ([]model.Order, error) {
	rows, err := env.DB.QueryContext(ctx, query, sku)
	if err != nil {
		return nil, err
	}
	return scanOrders(rows)
}

// scanOrders reads rows of request id and units to their end.
func scanOrders(rows *sql.Rows) ([]model.Order, error) {
	defer rows.Close()
	var orders []model.Order
	for rows.Next() {
		var o model.Order
		if err := rows.Scan(&o.Request, &o.Qty); err != nil {
			return nil, err
		}
		orders = append(orders, o)
	}
	return orders, rows.Err()
}

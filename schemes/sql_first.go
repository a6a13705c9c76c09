package schemes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     sqlFirst{},
		Summary:    "recommended with a database: the order first, keyed by its request, then UPDATE … WHERE stock >= q, in one transaction",
		Stores:     Stores{SQL: true},
		Guarantees: sqlFirstGuarantees,
		Wider:      true,
	})
}

// sqlFirst lets the database decide alone. The order comes before the row that
// everybody wants, so that this row is locked from one statement to COMMIT only.
// See docs/recommended.md.
type sqlFirst struct{ dbVersion }

func (sqlFirst) Name() string { return "sql-first" }

// Load puts the article on sale once: a preload that runs again changes nothing.
func (sqlFirst) Load(ctx context.Context, env Env, sku string, units int64) error {
	_, err := env.DB.ExecContext(ctx, `INSERT INTO goods (sku, stock, version) VALUES ($1, $2, 0) ON CONFLICT (sku) DO NOTHING`, sku, units)
	return err
}

// Orders lists the purchases: the records of units put back are negative.
func (sqlFirst) Orders(ctx context.Context, env Env, sku string) ([]model.Order, error) {
	return ordersWhere(ctx, env, `SELECT request_id, qty FROM orders WHERE sku = $1 AND qty > 0 ORDER BY request_id`, sku)
}

// Deduct answers Unknown only for an error of COMMIT; the order says then, by
// the request's id, what became of it.
func (s sqlFirst) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return s.move(ctx, env, req, -req.Qty, model.Sold)
}

// Restock is recorded like a purchase, so a cancel that comes twice counts once.
func (s sqlFirst) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return s.move(ctx, env, req, req.Qty, model.OK)
}

// move adds units to the stock, where that leaves any, and records it.
func (sqlFirst) move(ctx context.Context, env Env, req Request, units int64, done model.Outcome) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	tx, err := env.DB.BeginTx(ctx, nil)
	if err != nil {
		return model.Failed, err
	}
	defer tx.Rollback() // after Commit it does nothing
	rows, err := affected(tx.ExecContext(ctx,
		`INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, $3, $4) ON CONFLICT (request_id) DO NOTHING`,
		req.ID, req.SKU, req.Buyer, -units))
	if err != nil {
		return model.Failed, err
	}
	if rows == 0 {
		return model.Failed, fmt.Errorf("%w: %s", ErrRepeated, req.ID)
	}
	rows, err = affected(tx.ExecContext(ctx,
		`UPDATE goods SET stock = stock + $1, version = version + 1 WHERE sku = $2 AND stock + $1 >= 0`, units, req.SKU))
	if err != nil {
		return model.Failed, err
	}
	if rows == 0 {
		var left int64
		switch err := tx.QueryRowContext(ctx, `SELECT stock FROM goods WHERE sku = $1`, req.SKU).Scan(&left); {
		case errors.Is(err, sql.ErrNoRows):
			return model.Failed, fmt.Errorf("%w: %s", ErrNoStock, req.SKU)
		case err != nil:
			return model.Failed, err
		}
		return model.SoldOut, nil
	}
	if err := tx.Commit(); err != nil {
		return afterCommit(err), err
	}
	return done, nil
}

// affected is the number of rows a statement changed.
func affected(res sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

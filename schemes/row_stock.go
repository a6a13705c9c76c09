package schemes

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"stockproof/model"
)

// rowStock is the counter of the schemes that keep it in a row of goods.
type rowStock struct{}

// Load stores the units as version 0; loading again overwrites.
func (rowStock) Load(ctx context.Context, env Env, sku string, units int64) error {
	_, err := env.DB.ExecContext(ctx,
		`INSERT INTO goods (sku, stock, version) VALUES ($1, $2, 0)
		 ON CONFLICT (sku) DO UPDATE SET stock = EXCLUDED.stock, version = goods.version + 1`, sku, units)
	return err
}

// Read answers the committed stock; ErrNoStock when the row is missing.
func (rowStock) Read(ctx context.Context, env Env, sku string) (int64, error) {
	var left int64
	err := env.DB.QueryRowContext(ctx, `SELECT stock FROM goods WHERE sku = $1`, sku).Scan(&left)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, fmt.Errorf("%w: %s", ErrNoStock, sku)
	}
	return left, err
}

// Restock adds the units in one statement that commits by itself.
func (rowStock) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	res, err := env.DB.ExecContext(ctx,
		`UPDATE goods SET stock = stock + $1, version = version + 1 WHERE sku = $2`, req.Qty, req.SKU)
	if err != nil {
		return afterCommit(err), err
	}
	if rows, _ := res.RowsAffected(); rows != 1 {
		return model.Failed, fmt.Errorf("%w: %s", ErrNoStock, req.SKU)
	}
	return model.OK, nil
}

// take deducts in a transaction where enough is left. What fails before COMMIT
// is undone by the server, so its outcome is Failed.
func (s rowStock) take(ctx context.Context, tx *sql.Tx, req Request) (model.Outcome, error) {
	res, err := tx.ExecContext(ctx,
		`UPDATE goods SET stock = stock - $1 WHERE sku = $2 AND stock >= $1`, req.Qty, req.SKU)
	if err != nil {
		return model.Failed, err
	}
	if rows, _ := res.RowsAffected(); rows == 1 {
		return model.Sold, nil
	}
	// Too few left, or no such article: the row count does not tell.
	var left int64
	err = tx.QueryRowContext(ctx, `SELECT stock FROM goods WHERE sku = $1`, req.SKU).Scan(&left)
	if errors.Is(err, sql.ErrNoRows) {
		return model.Failed, fmt.Errorf("%w: %s", ErrNoStock, req.SKU)
	}
	if err != nil {
		return model.Failed, err
	}
	return model.SoldOut, nil
}

// committed commits a sale.
func committed(tx *sql.Tx) (model.Outcome, error) {
	if err := tx.Commit(); err != nil {
		return afterCommit(err), err
	}
	return model.Sold, nil
}

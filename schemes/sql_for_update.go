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
		Scheme:     sqlForUpdate{},
		Summary:    "row lock in SQL: SELECT … FOR UPDATE, check, UPDATE, order in the same transaction",
		Stores:     Stores{SQL: true},
		Guarantees: sqlForUpdateGuarantees,
		Wider:      true,
	})
}

// sqlForUpdate locks the row before it looks at it, so what it has read stays
// true until it commits.
type sqlForUpdate struct {
	rowStock
	orderTable
}

func (sqlForUpdate) Name() string { return "sql-for-update" }

// Deduct is one transaction; only its COMMIT can end Unknown.
func (s sqlForUpdate) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	tx, err := env.DB.BeginTx(ctx, nil)
	if err != nil {
		return model.Failed, err
	}
	defer tx.Rollback() // after Commit it does nothing
	var left int64
	err = tx.QueryRowContext(ctx, `SELECT stock FROM goods WHERE sku = $1 FOR UPDATE`, req.SKU).Scan(&left)
	if errors.Is(err, sql.ErrNoRows) {
		return model.Failed, fmt.Errorf("%w: %s", ErrNoStock, req.SKU)
	}
	if err != nil {
		return model.Failed, err
	}
	if left < req.Qty {
		return model.SoldOut, nil
	}
	if _, err := tx.ExecContext(ctx, `UPDATE goods SET stock = stock - $1 WHERE sku = $2`, req.Qty, req.SKU); err != nil {
		return model.Failed, err
	}
	if err := s.insert(ctx, tx, req); err != nil {
		return model.Failed, err
	}
	return committed(tx)
}

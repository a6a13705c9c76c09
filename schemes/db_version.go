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
		Scheme:     dbVersion{},
		Summary:    "optimistic lock in SQL: read stock and version, UPDATE … WHERE version = the one read, order in the same transaction, no retry",
		Stores:     Stores{SQL: true},
		Guarantees: dbVersionGuarantees,
	})
}

// dbVersion is the optimistic lock in SQL.
type dbVersion struct {
	rowStock
	orderTable
}

func (dbVersion) Name() string { return "db-version" }

// Deduct reads, then updates under the version it read and writes the order in
// the same transaction. Everything before COMMIT is undone by the server when
// the connection or the client dies, so only COMMIT can end Unknown.
func (s dbVersion) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	var left, version int64
	err := env.DB.QueryRowContext(ctx,
		`SELECT stock, version FROM goods WHERE sku = $1`, req.SKU).Scan(&left, &version)
	if errors.Is(err, sql.ErrNoRows) {
		return model.Failed, fmt.Errorf("%w: %s", ErrNoStock, req.SKU)
	}
	if err != nil {
		return model.Failed, err // only read so far
	}
	if left < req.Qty {
		return model.SoldOut, nil
	}
	tx, err := env.DB.BeginTx(ctx, nil)
	if err != nil {
		return model.Failed, err
	}
	defer tx.Rollback() // after Commit it does nothing
	res, err := tx.ExecContext(ctx,
		`UPDATE goods SET stock = stock - $1, version = version + 1 WHERE sku = $2 AND version = $3 AND stock >= $1`,
		req.Qty, req.SKU, version)
	if err != nil {
		return model.Failed, err
	}
	if rows, _ := res.RowsAffected(); rows != 1 {
		return model.Busy, nil // somebody else was first; nothing was deducted
	}
	if err := s.insert(ctx, tx, req); err != nil {
		return model.Failed, err
	}
	if err := tx.Commit(); err != nil {
		return afterCommit(err), err
	}
	return model.Sold, nil
}

package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     sqlConditional{},
		Summary:    "conditional update in SQL: UPDATE … SET stock = stock - q WHERE stock >= q, order in the same transaction",
		Stores:     Stores{SQL: true},
		Guarantees: sqlConditionalGuarantees,
		Wider:      true,
	})
}

// sqlConditional lets the database compare and deduct in one statement. At READ
// COMMITTED an UPDATE that has waited for a row evaluates WHERE on the newest
// version, so nothing has to be read before and no version is needed.
type sqlConditional struct {
	rowStock
	orderTable
}

func (sqlConditional) Name() string { return "sql-conditional" }

// Deduct is one transaction; only its COMMIT can end Unknown.
func (s sqlConditional) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
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
	if err := s.insert(ctx, tx, req); err != nil {
		return model.Failed, err
	}
	return committed(tx)
}

package schemes

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     degrade{},
		Summary:    "lua-string and the order in SQL; when Redis does not answer, the conditional update in SQL instead, and Redis again for the next buyer",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: degradeGuarantees,
		Wider:      true,
	})
}

// degrade sells by Redis and writes each sale down in the database, stock and
// order, so that the database can sell when Redis is out. There are two
// counters, and while a request is at one of them nobody asks the other: that a
// reply did not come does not say that Redis is gone, or that it did nothing.
type degrade struct {
	stringStock
	orderTable
}

func (degrade) Name() string { return "degrade" }

// Load puts the units on sale in both.
func (s degrade) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := (rowStock{}).Load(ctx, env, sku, units); err != nil {
		return err
	}
	return s.stringStock.Load(ctx, env, sku, units)
}

// Restock adds the units in the database and then in Redis. When the second is
// in doubt, so is the whole.
func (s degrade) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if outcome, err := (rowStock{}).Restock(ctx, env, req); outcome != model.OK {
		return outcome, err
	}
	if outcome, err := s.stringStock.Restock(ctx, env, req); outcome != model.OK {
		return model.Unknown, err
	}
	return model.OK, nil
}

// Deduct asks Redis and, when no reply came, the database.
func (s degrade) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	outcome, err := s.deduct(ctx, env, req)
	var refused redis.Error
	switch {
	case outcome == model.Sold:
		outcome, err = s.book(ctx, env, req, false)
		if outcome == model.Failed {
			outcome = model.Unknown // not in the database, but Redis has taken the units
		}
		return outcome, err
	case err == nil, errors.As(err, &refused):
		return outcome, err
	}
	return s.book(ctx, env, req, true)
}

// book writes a sale down. What Redis has sold is sold, however much the
// database thinks is left; what it has not sold is only where enough is left.
func (s degrade) book(ctx context.Context, env Env, req Request, guarded bool) (model.Outcome, error) {
	tx, err := env.DB.BeginTx(ctx, nil)
	if err != nil {
		return model.Failed, err
	}
	defer tx.Rollback() // after Commit it does nothing
	if guarded {
		if outcome, err := (rowStock{}).take(ctx, tx, req); outcome != model.Sold {
			return outcome, err
		}
	} else if _, err := tx.ExecContext(ctx, `UPDATE goods SET stock = stock - $1 WHERE sku = $2`, req.Qty, req.SKU); err != nil {
		return model.Failed, err
	}
	if err := s.insert(ctx, tx, req); err != nil {
		return model.Failed, err
	}
	return committed(tx)
}

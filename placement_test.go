package stockproof_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/live"
	"stockproof/model"
	"stockproof/schemes"
)

// lingering answers while its transaction still holds the row for a while.
var lingering = mutant{"keeps the row for a while after its answer", "db-version",
	func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
		tx, err := env.DB.BeginTx(ctx, nil)
		if err != nil {
			return model.Failed, err
		}
		if _, err := tx.ExecContext(ctx, `UPDATE goods SET stock = stock - $1, version = version + 1 WHERE sku = $2`, req.Qty, req.SKU); err != nil {
			return model.Failed, err
		}
		if req.Buyer != faults.ClientName(a) {
			return model.Sold, tx.Commit()
		}
		go func() {
			time.Sleep(200 * time.Millisecond)
			_ = tx.Commit() // the test looks at the order of steps alone
		}()
		return model.Sold, nil
	}}

func init() {
	schemes.Register(schemes.Entry{Scheme: lingering, Stores: schemes.Stores{SQL: true}, Hidden: true})
}

// Client b's UPDATE waits for the row that a still holds, so b comes to its
// placement after everybody has had their turn.
func TestAClientThatComesToItsPlacementLateIsStillLetGoOn(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for _, p := range []faults.Placement{preempted(b, 2), at(faults.ClientPauseShort, b, 2)} {
		run, err := liveWorld(t).Run(ctx, live.Case{Entry: entry(t, lingering.Name()), Workload: workload(t, "unit"), Retries: "off", Placement: p})
		require.NoError(t, err, p)
		require.True(t, run.Fired, p)
	}
}

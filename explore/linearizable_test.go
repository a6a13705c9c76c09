package explore

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"

	"stockproof/model"
)

// The search decides linearizability at its ends itself, because it has to do
// it thousands of times. It must say what porcupine and the exact stock checker
// say.
func TestTheJudgeAgreesWithPorcupineAndTheStockChecker(t *testing.T) {
	r := rand.New(rand.NewPCG(20261201, 5))
	legal, illegal := 0, 0
	for range 4000 {
		initial := r.Int64N(3)
		var ops []model.Operation
		for c := range 2 + r.IntN(5) {
			o := model.Operation{Client: c, Op: model.Deduct, Qty: 1 + r.Int64N(2), Call: r.Int64N(8), Outcome: model.Sold}
			o.Return = o.Call + r.Int64N(6)
			switch r.IntN(9) {
			case 0, 1:
				o.Outcome = model.SoldOut
			case 2:
				o.Op, o.Outcome = model.Restock, model.OK
			case 3:
				o.Outcome, o.Open, o.Return = model.Unknown, true, 0
			case 4:
				o.Op, o.Outcome, o.Open, o.Return = model.Restock, model.Unknown, true, 0
			case 5:
				o.Op, o.Outcome, o.Qty, o.Value = model.Read, model.Value, 0, r.Int64N(3)
			case 6:
				o.Outcome = model.Busy
			}
			ops = append(ops, o)
		}
		got, _ := linearizable(ops, initial, nil)
		m, asked := model.PorcupineModel(initial, ops)
		require.Equal(t, porcupine.CheckOperationsTimeout(m, asked, time.Minute) == porcupine.Ok, got, "%d units, %v", initial, ops)
		require.Equal(t, model.Judge(initial, ops, model.Limits{}).Ruling == model.Legal, got, "%d units, %v", initial, ops)
		if got {
			legal++
		} else {
			illegal++
		}
	}
	require.Greater(t, legal, 400)
	require.Greater(t, illegal, 400)
}

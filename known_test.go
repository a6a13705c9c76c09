package stockproof_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/live"
	"stockproof/model"
)

// The clients of the workloads, in order of arrival.
const (
	a = iota
	b
	c
)

func at(kind faults.Kind, client, step int) faults.Placement {
	return faults.Placement{Kind: kind, Order: faults.InTurn, Client: client, Step: step}
}

func preempted(client, step int) faults.Placement {
	return faults.Placement{Kind: faults.None, Order: faults.Preempted, Client: client, Step: step}
}

var (
	inTurn  = faults.Placement{Kind: faults.None, Order: faults.InTurn}
	barrier = faults.Placement{Kind: faults.None, Order: faults.Barrier}
)

// everyPlacement runs every placement of every live fault in the named workloads
// and hands each run over.
func everyPlacement(t *testing.T, scheme string, loads []string, judge func(t *testing.T, run *live.Run)) {
	t.Helper()
	world := liveWorld(t)
	for _, name := range loads {
		load := workload(t, name)
		for _, retries := range live.RetriesFor(entry(t, scheme)) {
			steps, err := world.Observe(t.Context(), entry(t, scheme), load, retries)
			require.NoError(t, err)
			for _, kind := range live.KindsFor(entry(t, scheme)) {
				if faults.HitsServer(kind) || kind == faults.CommitReplyLost {
					continue // reply-lost has the COMMIT as well
				}
				runs, err := world.RunAll(t.Context(), entry(t, scheme), load, retries, faults.Plan(kind, steps), "")
				require.NoError(t, err)
				for _, run := range runs {
					require.True(t, run.Fired, run.Case.Name())
					judge(t, run)
				}
			}
		}
	}
}

func TestHincrbyGoesBelowZeroForAMomentWithNoFaultAndDoesNotOversell(t *testing.T) {
	run := sale(t, "hincrby", "unit", "off", inTurn)
	requireBroken(t, run, model.NegativeTransient, -1)
	requireHeld(t, run, model.Oversell, model.NegativePermanent, model.LostUnits, model.NonLinearizable)
}

func TestHincrbyAnswersAFalseSoldOutWithNoFaultWhenQuantitiesDiffer(t *testing.T) {
	run := sale(t, "hincrby", "mixed", "off", preempted(b, 1))
	requireBroken(t, run, model.FalseSoldOut, 1)
	requireBroken(t, run, model.NonLinearizable, 1)
	requireHeld(t, run, model.Oversell, model.NegativePermanent)
}

func TestHincrbyAnswersAFalseSoldOutWithNoFaultWhenABuyerCancels(t *testing.T) {
	run := sale(t, "hincrby", "restock", "off", preempted(b, 1))
	requireBroken(t, run, model.FalseSoldOut, 1)
	requireBroken(t, run, model.NonLinearizable, 1)
}

func TestHincrbyStaysNegativeWhenTheGiveBackNeverComes(t *testing.T) {
	thenCrash := at(faults.ClientPause, b, 1)
	thenCrash.ThenCrash = true
	for name, p := range map[string]faults.Placement{
		"crash before it":               at(faults.ClientCrash, b, 1),
		"stop before it, then crash":    thenCrash,
		"its request is lost":           at(faults.RequestLost, b, 2),
		"the decrement's reply is lost": at(faults.ReplyLost, b, 1),
	} {
		t.Run(name, func(t *testing.T) {
			run := sale(t, "hincrby", "unit", "off", p)
			requireBroken(t, run, model.NegativePermanent, -1)
			requireBroken(t, run, model.LostUnits, 1)
			requireHeld(t, run, model.Oversell)
		})
	}
}

func TestHincrbyLosesAUnitWhenItsBuyerDiesAfterAGoodDecrement(t *testing.T) {
	run := sale(t, "hincrby", "unit", "off", at(faults.ClientCrash, a, 1))
	requireBroken(t, run, model.LostUnits, 1)
	require.Equal(t, model.Unknown, outcome(run, a))
}

func TestHincrbyOversellsWhenTheLibraryRepeatsAGiveBackWhoseReplyWasLost(t *testing.T) {
	run := sale(t, "hincrby", "unit", "default", at(faults.ReplyLost, b, 2))
	requireBroken(t, run, model.Oversell, 1)
	require.Equal(t, model.Sold, outcome(run, c))
	require.Equal(t, model.SoldOut, outcome(sale(t, "hincrby", "unit", "off", at(faults.ReplyLost, b, 2)), c),
		"with the retries off it does not")
}

func outcome(run *live.Run, client int) model.Outcome { return run.OutcomeOf(client, 0) }

func TestOneScriptIsNeverNegativeAndNeverOversellsUnderAnyClientOrWireFault(t *testing.T) {
	for _, scheme := range []string{"lua-hash", "lua-string"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			everyPlacement(t, scheme, []string{"unit", "mixed", "restock"}, func(t *testing.T, run *live.Run) {
				requireHeld(t, run, model.Oversell, model.NegativeTransient, model.NegativePermanent)
			})
		})
	}
}

func TestOneScriptLosesAUnitWhenItsBuyerDies(t *testing.T) {
	for _, scheme := range []string{"lua-hash", "lua-string"} {
		run := sale(t, scheme, "unit", "off", at(faults.ClientCrash, a, 1))
		requireBroken(t, run, model.LostUnits, 1)
	}
}

func TestOneScriptAnswersSoldOutForTheLastUnitItSoldWhenTheLibraryRepeatsIt(t *testing.T) {
	for _, scheme := range []string{"lua-hash", "lua-string"} {
		run := sale(t, scheme, "unit", "default", at(faults.ReplyLost, a, 1))
		require.Equal(t, model.SoldOut, outcome(run, a))
		requireBroken(t, run, model.LostUnits, 1)
		requireBroken(t, run, model.NonLinearizable, 1)
	}
}

func TestOneScriptWithRetriesOffIsLinearizableWithAnUnknown(t *testing.T) {
	for _, scheme := range []string{"lua-hash", "lua-string"} {
		run := sale(t, scheme, "unit", "off", at(faults.ReplyLost, a, 1))
		require.Equal(t, model.Unknown, outcome(run, a))
		require.Equal(t, 1, run.Open)
		requireHeld(t, run, model.NonLinearizable)
		requireBroken(t, run, model.LostUnits, 1)
	}
}

// Steps of a client that gets the lock: acquire, HGET, HINCRBY, release.
const (
	acquired = 1
	hasRead  = 2
)

func TestTheLockDoesNotOversellWithoutAFault(t *testing.T) {
	world := liveWorld(t)
	for _, scheme := range []string{"lock", "lock-watchdog"} {
		for _, load := range faults.Workloads() {
			steps, err := world.Observe(t.Context(), entry(t, scheme), load, "off")
			require.NoError(t, err)
			runs, err := world.RunAll(t.Context(), entry(t, scheme), load, "off", faults.Plan(faults.None, steps), "")
			require.NoError(t, err)
			for _, run := range runs {
				require.True(t, run.Fired, run.Case.Name())
				requireHeld(t, run, model.Oversell, model.NegativeTransient, model.NonLinearizable)
			}
		}
	}
}

func TestTheLockOversellsWhenAStopOutlastsTheLease(t *testing.T) {
	for _, scheme := range []string{"lock", "lock-watchdog"} { // the watchdog is stopped as well
		t.Run(scheme, func(t *testing.T) {
			run := sale(t, scheme, "unit", "off", at(faults.ClientPause, a, hasRead))
			requireBroken(t, run, model.Oversell, 1)
			requireBroken(t, run, model.NegativePermanent, -1)
		})
	}
}

func TestTheLockWithAComputedValueOversellsAndItsCounterNeverTells(t *testing.T) {
	run := sale(t, "lock-set", "unit", "off", at(faults.ClientPause, a, hasRead))
	requireBroken(t, run, model.Oversell, 1)
	requireHeld(t, run, model.NegativeTransient, model.NegativePermanent)
}

func TestTheLockSurvivesAStopShorterThanTheLease(t *testing.T) {
	run := sale(t, "lock", "unit", "off", at(faults.ClientPauseShort, a, hasRead))
	requireHeld(t, run, model.Oversell, model.NegativeTransient, model.NegativePermanent, model.NonLinearizable)
	require.Equal(t, model.Sold, outcome(run, a))
}

func TestADeadHoldersLockKeepsOthersBusyUntilItsLeaseEnds(t *testing.T) {
	run := sale(t, "lock", "unit", "off", at(faults.ClientCrash, a, acquired))
	require.Equal(t, model.Busy, outcome(run, b), "arrives at once")
	require.Equal(t, model.Sold, outcome(run, c), "arrives when the lease is over")
	requireHeld(t, run, model.Oversell, model.LostUnits, model.Stuck)
}

func TestLuaLockLosesTheUnitWhenItsBuyerDiesBetweenScriptAndOrder(t *testing.T) {
	run := sale(t, "lua-lock", "unit", "off", at(faults.ClientCrash, a, 2))
	requireBroken(t, run, model.LostUnits, 1)
	require.Zero(t, *run.Rest.Counter, "the stock is gone")
	require.Empty(t, *run.Rest.Orders, "and there is no order")
}

func TestLuaLockTurnsBusyIntoAnErrorBecauseItUnlocksWhatItDoesNotHold(t *testing.T) {
	run := sale(t, "lua-lock", "unit", "off", preempted(a, 2))
	require.Equal(t, model.Sold, outcome(run, a))
	require.Equal(t, model.Failed, outcome(run, b))
	require.Contains(t, strings.Join(run.Notes, "\n"), "finally: lock is not held by this holder")
	requireHeld(t, run, model.Oversell, model.LostUnits, model.OrderMismatch)
}

func TestLuaLockReportsACompletedSaleAsAnErrorWhenTheLeaseEndedBeforeTheUnlock(t *testing.T) {
	run := sale(t, "lua-lock", "unit", "off", at(faults.ClientPause, a, 3))
	require.Equal(t, model.Unknown, outcome(run, a), "the buyer saw an exception")
	require.Len(t, *run.Rest.Orders, 1, "but the order is there")
	require.Equal(t, 1, run.Decided, "which settles it")
}

// In the unit workload; TestLive has the others.
func TestDBVersionIsNeverOversold(t *testing.T) {
	everyPlacement(t, "db-version", []string{"unit"}, func(t *testing.T, run *live.Run) {
		requireHeld(t, run, model.Oversell, model.NegativeTransient, model.LostUnits, model.OrderMismatch, model.NonLinearizable)
	})
}

func TestDBVersionWithoutRetryLeavesStockUnsoldUnderContention(t *testing.T) {
	crowd := faults.Workload{Name: "crowd", Stock: 8}
	for range 8 {
		crowd.Clients = append(crowd.Clients, []faults.Call{{Op: model.Deduct, Qty: 1}})
	}
	run, err := liveWorld(t).Run(t.Context(), live.Case{Entry: entry(t, "db-version"), Workload: crowd, Retries: "off", Placement: barrier})
	require.NoError(t, err)
	require.NoError(t, run.Check(""))
	require.True(t, run.Fired)
	// All eight read the same version: one wins, seven are told to come back.
	requireBroken(t, run, model.Unsold, 7)
	requireHeld(t, run, model.Oversell, model.LostUnits)
}

func TestNaiveOversellsWithNoFault(t *testing.T) {
	run := sale(t, "naive", "unit", "off", barrier)
	requireBroken(t, run, model.Oversell, 2)
	requireBroken(t, run, model.NegativePermanent, -2)
	run = sale(t, "naive-set", "unit", "off", barrier)
	requireBroken(t, run, model.Oversell, 2)
	requireHeld(t, run, model.NegativePermanent)
}

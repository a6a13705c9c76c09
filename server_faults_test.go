package stockproof_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

func onServer(kind faults.Kind, setting faults.Setting, client, step int) faults.Placement {
	p := at(kind, client, step)
	p.Setting = setting
	return p
}

func TestOneScriptOversellsOnlyWhenTheServerLosesTheSale(t *testing.T) {
	for _, c := range []struct {
		kind    faults.Kind
		setting faults.Setting
		sold    int64 // of one unit
		proof   string
	}{
		{faults.RedisRestart, faults.AOFAlways, 1, "another redis answers, with 1 of 1 keys as they were"},
		{faults.RedisRestart, faults.AOFEverySec, 2, "another redis answers, with 0 of 1 keys as they were"},
		{faults.RedisRestart, faults.Snapshot, 2, "another redis answers, with 0 of 1 keys as they were"},
		{faults.RedisRestart, faults.NoPersistence, 1, "another redis answers, with 0 of 1 keys as they were"},
		{faults.RedisFailover, faults.Async, 2, "the old primary has thrown its own away"},
		{faults.RedisFailover, faults.MinReplicas, 2, "the old primary has thrown its own away"},
		{faults.StockReloaded, faults.NoSetting, 2, "loaded again"},
		{faults.KeyEvicted, faults.NoSetting, 1, "redis evicted stock:"},
		{faults.KeyExpired, faults.NoSetting, 1, "1 keys have expired"},
		{faults.ScriptFlush, faults.NoSetting, 1, "1 scripts are forgotten"},
	} {
		t.Run(faults.Row(c.kind, c.setting), func(t *testing.T) {
			t.Parallel()
			run := sale(t, "lua-string", "unit", "off", onServer(c.kind, c.setting, a, 1))
			require.Contains(t, run.Proof, c.proof)
			sold := int64(0)
			for _, o := range run.History.Ops {
				if o.Outcome == model.Sold {
					sold++
				}
			}
			require.Equal(t, c.sold, sold)
		})
	}
}

func TestAServerThatStoodStillExecutesTheDeductionOfABuyerWhoHasGone(t *testing.T) {
	run := sale(t, "lua-string", "unit", "off", onServer(faults.RedisFreeze, faults.NoSetting, a, 1))
	require.Equal(t, model.Unknown, outcome(run, a))
	require.Equal(t, model.SoldOut, outcome(run, b), "the unit is gone")
	require.Equal(t, int64(1), run.Finding(model.LostUnits).Amount)
}

func TestPostgresForgetsAnAcknowledgedSaleOnlyWithSynchronousCommitOff(t *testing.T) {
	commit := 5 // SELECT, BEGIN, UPDATE, INSERT, COMMIT
	run := sale(t, "db-version", "unit", "off", onServer(faults.PostgresRestart, faults.SyncCommitOff, a, commit))
	require.Equal(t, model.Sold, outcome(run, a))
	require.Equal(t, model.Sold, outcome(run, b), "the unit is sold again")
	require.Equal(t, int64(1), run.Finding(model.OrderMismatch).Amount)
	run = sale(t, "db-version", "unit", "off", onServer(faults.PostgresRestart, faults.SyncCommitOn, a, commit))
	require.Equal(t, model.SoldOut, outcome(run, b))
	requireHeld(t, run, model.Oversell, model.OrderMismatch, model.LostUnits, model.NonLinearizable)
}

// What the job read before an order was written it writes over the deduction that the
// order is of.
func TestAReconciliationThatOverlapsASaleSellsItsUnitAgain(t *testing.T) {
	const deducted = 2 // after the lock
	run := sale(t, "lua-lock", "unit", "off", onServer(faults.ReconcileOverlap, faults.NoSetting, a, deducted))
	require.Contains(t, run.Proof, "read before the client went on, and wrote after it")
	require.Equal(t, model.Sold, outcome(run, a))
	require.Equal(t, model.Sold, outcome(run, b), "the unit is sold again")
	require.Equal(t, int64(1), run.Finding(model.Oversell).Amount)
}

// A snapshot of just what Redis holds takes nothing when Redis restarts from it: that is
// no place of the fault, and no proof of anything.
func TestARestartThatFindsNothingToTakeIsNoPlaceOfIt(t *testing.T) {
	for load, vacuous := range map[string]bool{"restock": true, "unit": false} {
		client, step := 2, 1 // a sells the unit, c puts it back
		if !vacuous {
			client = a
		}
		run, err := liveWorld(t).Run(t.Context(), live.Case{Entry: entry(t, "lua-string"), Workload: workload(t, load), Retries: "off",
			Placement: onServer(faults.RedisRestart, faults.Snapshot, client, step)})
		require.NoError(t, err)
		require.Equal(t, vacuous, run.Vacuous, "%s: %s", load, run.Proof)
		require.Equal(t, !vacuous, run.Fired, "%s: %s", load, run.Proof)
	}
}

// Each of these looks like the fault, and a suite that took it for one would
// prove nothing.
func TestWhatOnlyLooksLikeAFaultOfAServerHasNotFired(t *testing.T) {
	for _, c := range []struct {
		scheme string
		p      faults.Placement
		why    string
	}{
		{"lua-string", onServer(faults.RedisFreeze, faults.NoSetting, a, 1), "redis did not stand still"},
		{"lua-string", onServer(faults.RedisRestart, faults.AOFEverySec, a, 1), "lost nothing"},
		{"lua-string", onServer(faults.RedisFailover, faults.Async, a, 1), "lacked nothing"},
		{"lua-string", onServer(faults.KeyEvicted, faults.NoSetting, a, 1), "did not evict"},
		{"db-version", onServer(faults.PostgresRestart, faults.SyncCommitOff, a, 5), "lost nothing"},
		{"lua-lock", onServer(faults.ReconcileOverlap, faults.NoSetting, a, 2), "over before the client went on"},
	} {
		t.Run(faults.Row(c.p.Kind, c.p.Setting), func(t *testing.T) {
			t.Parallel()
			run, err := liveWorld(t).Run(t.Context(), live.Case{Entry: entry(t, c.scheme), Workload: workload(t, "unit"), Retries: "off", Placement: c.p, Sham: true})
			require.NoError(t, err)
			require.False(t, run.Fired, run.Proof)
			require.Contains(t, run.Proof, c.why)
		})
	}
}

// Nobody is told that they bought when there was no connection to ask over.
func TestAnExhaustedPoolIsNeverASale(t *testing.T) {
	world := liveWorld(t)
	for _, scheme := range []string{"hincrby", "lua-string", "lock", "lua-lock", "db-version"} {
		t.Run(scheme, func(t *testing.T) {
			e := entry(t, scheme)
			env, err := clients.Connect(clients.Setup{
				Scheme: scheme, Client: "pool-" + scheme, RedisAddr: world.Servers.RedisAddr, DSN: world.Servers.PostgresDSN(""),
				Retries: "off", Patience: 100 * time.Millisecond, Pool: 1,
			})
			require.NoError(t, err)
			defer clients.Disconnect(env)
			sku := "pool-" + scheme
			require.NoError(t, e.Scheme.(schemes.Loader).Load(t.Context(), env, sku, 1))
			if e.Stores.Redis {
				held := env.Redis.Conn()
				require.NoError(t, held.Ping(t.Context()).Err())
				defer held.Close()
			} else {
				held, err := env.DB.Conn(t.Context())
				require.NoError(t, err)
				defer held.Close()
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			answer := clients.Do(ctx, e.Scheme, env, clients.Operation{Op: model.Deduct, SKU: sku, Qty: 1, Request: "r@" + sku, Buyer: "a"})
			require.Contains(t, []model.Outcome{model.Busy, model.Failed}, answer.Outcome, answer.Err)
			require.True(t, strings.Contains(answer.Err, "pool timeout") || strings.Contains(answer.Err, "deadline"), answer.Err)
		})
	}
}

// Claim B9: a hash tag {product}:stock:<id> spreads keys evenly over shards. It
// does not: all have one slot.
func TestAHashTagThatAllKeysShareKeepsThemOnOneNode(t *testing.T) {
	cluster, err := liveWorld(t).Servers.StartCluster(t.Context(), 3)
	require.NoError(t, err)
	defer func() { require.NoError(t, cluster.Close()) }()
	const articles = 3000
	for _, c := range []struct {
		key         string
		least, most int // different slots
		keys        int // of the node with the fewest, of 1,000
	}{
		{"{product}:stock:%d", 1, 1, 0},
		// As many balls thrown at random hit 2,740 of 16,384 bins.
		{"product:{%d}:stock", 2700, articles, 950},
	} {
		slots, nodes := map[int64]bool{}, map[int]int{}
		for i := range articles {
			slot := cluster.Slot(fmt.Sprintf(c.key, i))
			slots[slot] = true
			nodes[cluster.Owner(slot)]++
		}
		told, err := cluster.AskSlot(t.Context(), fmt.Sprintf(c.key, 7))
		require.NoError(t, err)
		require.Equal(t, told, cluster.Slot(fmt.Sprintf(c.key, 7)), "a node computes the same")
		require.GreaterOrEqual(t, len(slots), c.least)
		require.LessOrEqual(t, len(slots), c.most)
		for n := range cluster.Nodes {
			require.GreaterOrEqual(t, nodes[n], c.keys, "%s: %v", c.key, nodes)
		}
		t.Logf("%s: %d articles in %d slots, on the nodes %v", c.key, articles, len(slots), nodes)
	}
}

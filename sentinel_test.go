package stockproof_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/live/clients"
	"stockproof/live/servers"
	"stockproof/model"
	"stockproof/schemes"
)

// sentinelPatience is for one failover. Sentinels with a short patience on a busy
// machine may fail over once more, or wait ten seconds before they try again.
const sentinelPatience = 30 * time.Second

// Three Sentinels, of which two must agree, promote a replica that had lost its link
// before the last unit was sold. Who then buys over go-redis's FailoverClient is sold
// it again exactly by those schemes that are declared to oversell when a replica takes
// over that is behind.
func TestSentinelsMakeThoseSchemesOversellThatAreDeclaredTo(t *testing.T) {
	liveWorld(t)
	var sold map[string][2]model.Outcome
	var err error
	for try := range 4 {
		if sold, err = sellAcrossAFailover(t, fmt.Sprintf("-sentinels-%d", try)); err == nil {
			break
		}
		t.Log(err)
	}
	require.NoError(t, err, "the sentinels fail over")
	oversold := 0
	for name, outcomes := range sold {
		must, _ := entry(t, name).Guarantees.Declared(faults.Row(faults.RedisFailover, faults.Async), "unit", "off", "explore")
		require.Equal(t, model.Sold, outcomes[0], name)
		require.Equal(t, must[model.Oversell], outcomes[1] == model.Sold, "%s: %v", name, outcomes)
		if outcomes[1] == model.Sold {
			oversold++
		}
	}
	require.Positive(t, oversold)
	require.Less(t, oversold, len(sold), "there is a scheme that holds, too")
}

// sellAcrossAFailover sells the only unit of each scheme's article before a failover
// and tries to sell it again after it.
func sellAcrossAFailover(t *testing.T, sku string) (map[string][2]model.Outcome, error) {
	world := liveWorld(t)
	w, err := world.Servers.StartWatched(t.Context(), servers.WatchedOptions{Sentinels: 3, Quorum: 2})
	require.NoError(t, err)
	defer func() { require.NoError(t, w.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), sentinelPatience)
	defer cancel()
	failover := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: w.Name, SentinelAddrs: w.Addrs(), MaxRetries: -1})
	defer failover.Close()
	own, err := clients.Connect(clients.Setup{DSN: world.Servers.PostgresDSN(""), Retries: "off"})
	require.NoError(t, err)
	defer clients.Disconnect(own)

	env := func(buyer string) schemes.Env { return schemes.Env{Redis: failover, DB: own.DB, Client: buyer} }
	buy := func(e schemes.Entry, buyer string) model.Outcome {
		outcome, _ := e.Scheme.Deduct(ctx, env(buyer), schemes.Request{SKU: e.Scheme.Name() + sku, Qty: 1, ID: buyer + "@" + e.Scheme.Name() + sku, Buyer: buyer})
		return outcome
	}
	var all []schemes.Entry
	for _, e := range schemes.All() {
		if loader, loads := e.Scheme.(schemes.Loader); loads && e.Stores.Redis {
			all = append(all, e)
			require.NoError(t, loader.Load(ctx, env("loader"), e.Scheme.Name()+sku, 1), e.Scheme.Name())
		}
	}
	if err := w.Replica.CutLink(ctx, w.Primary); err != nil {
		return nil, err
	}
	sold := map[string][2]model.Outcome{}
	for _, e := range all {
		sold[e.Scheme.Name()] = [2]model.Outcome{buy(e, "a")}
	}
	require.NoError(t, w.Primary.Kill(ctx))
	if err := w.Promoted(ctx); err != nil {
		return nil, err
	}
	for failover.Ping(ctx).Err() != nil {
		if ctx.Err() != nil {
			return nil, errors.New("the client does not find the new primary")
		}
	}
	for _, e := range all {
		was := sold[e.Scheme.Name()]
		sold[e.Scheme.Name()] = [2]model.Outcome{was[0], buy(e, "b")}
	}
	return sold, context.Cause(ctx)
}

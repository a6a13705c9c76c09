package explore

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// other is a registered scheme with a Deduct of its own.
type other struct {
	schemes.Scheme
	schemes.Loader
	schemes.Reader
	schemes.Restocker
	deduct func(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error)
}

func (o other) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	return o.deduct(ctx, env, req)
}

func like(t *testing.T, scheme string, deduct func(context.Context, schemes.Env, schemes.Request) (model.Outcome, error)) schemes.Entry {
	e := entry(t, scheme)
	e.Scheme = other{e.Scheme, e.Scheme.(schemes.Loader), e.Scheme.(schemes.Reader), e.Scheme.(schemes.Restocker), deduct}
	return e
}

// watching watches, reads, and lets exec send the transaction.
func watching(exec func(ctx context.Context, env schemes.Env, tx *redis.Tx, take func(redis.Pipeliner) error) error) func(context.Context, schemes.Env, schemes.Request) (model.Outcome, error) {
	return func(ctx context.Context, env schemes.Env, req schemes.Request) (outcome model.Outcome, err error) {
		err = env.Redis.Watch(ctx, func(tx *redis.Tx) error {
			left, err := tx.Get(ctx, "stock:"+req.SKU).Int64()
			if err != nil || left < req.Qty {
				outcome = model.SoldOut
				return err
			}
			outcome = model.Sold
			return exec(ctx, env, tx, func(p redis.Pipeliner) error { return p.DecrBy(ctx, "stock:"+req.SKU, req.Qty).Err() })
		}, "stock:"+req.SKU)
		switch {
		case errors.Is(err, redis.TxFailedErr):
			return model.Busy, nil
		case err != nil:
			return model.Unknown, err
		}
		return outcome, nil
	}
}

// Catalogue O-72: WATCH on one connection, EXEC on another. S=1, two buyers: both
// are told yes and the stock is -1. On the watching connection nothing is oversold.
func TestATransactionOnAnotherConnectionThanItsWatchOversells(t *testing.T) {
	lab := newLab(t)
	for name, c := range map[string]struct {
		exec func(ctx context.Context, env schemes.Env, tx *redis.Tx, take func(redis.Pipeliner) error) error
		want string
	}{
		"the watching connection": {func(ctx context.Context, _ schemes.Env, tx *redis.Tx, take func(redis.Pipeliner) error) error {
			_, err := tx.TxPipelined(ctx, take)
			return err
		}, ""},
		"another of the pool": {func(ctx context.Context, env schemes.Env, _ *redis.Tx, take func(redis.Pipeliner) error) error {
			_, err := env.Redis.TxPipelined(ctx, take)
			return err
		}, "OTNX"},
	} {
		cfg := Config{Entry: like(t, "watch-multi", watching(c.exec)), Workload: workload(t, "unit"), Clients: 2}
		r := search(t, lab, cfg)
		require.Equal(t, c.want, only(letters(r), "TNOLPX"), name)
		if c.want != "" {
			require.Equal(t, int64(1), r.Verdicts[model.Oversell].Amount)
			require.Equal(t, int64(-1), r.Verdicts[model.NegativePermanent].Amount)
		}
		cfg.NoSymmetry = true
		require.Empty(t, agree(r, search(t, lab, cfg)), name)
	}
}

func TestASchemeThatLeavesAConnectionWatchingIsRefused(t *testing.T) {
	e := like(t, "watch-multi", func(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
		conn := env.Redis.Conn()
		defer conn.Close()
		return model.Busy, conn.Do(ctx, "WATCH", "stock:"+req.SKU).Err()
	})
	_, err := newLab(t).Run(t.Context(), Config{Entry: e, Workload: workload(t, "unit")})
	require.ErrorIs(t, err, ErrScheme)
	require.ErrorContains(t, err, "leaves a connection watching")
}

func TestWhatASessionCannotBeModelledForIsRefusedByName(t *testing.T) {
	for command, args := range map[string][]any{"PING": {"PING"}, "WATCH": {"WATCH", "k"}} {
		e := like(t, "watch-multi", func(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
			conn := env.Redis.Conn()
			defer conn.Close()
			return model.Busy, errors.Join(conn.Do(ctx, "MULTI").Err(), conn.Do(ctx, args...).Err(), conn.Do(ctx, "DISCARD").Err())
		})
		_, err := newLab(t).Run(t.Context(), Config{Entry: e, Workload: workload(t, "unit")})
		require.ErrorIs(t, err, redisstore.ErrOutside, command)
		require.ErrorContains(t, err, command+" inside of a transaction")
	}
}

// A restart ends connections: who was watching gets an error, never an EXEC that
// looks at nothing.
func TestARestartBreaksTheConnectionsThatWatch(t *testing.T) {
	lab := newLab(t)
	r := search(t, lab, one(t, "watch-multi", faults.StoreLoses, "unit", "off"))
	w := r.Verdicts[model.Oversell].Witness
	require.NotNil(t, w)
	require.NoError(t, lab.Replay(w.Schedule(), "miniredis"))
	without := like(t, "watch-multi", watching(func(ctx context.Context, _ schemes.Env, tx *redis.Tx, take func(redis.Pipeliner) error) error {
		_, err := tx.TxPipelined(ctx, take)
		return err
	}))
	cfg := Config{Entry: without, Workload: workload(t, "unit"), Faults: []faults.Kind{faults.StoreLoses}, MaxFaults: 1}
	r = search(t, lab, cfg)
	require.NotContains(t, letters(r), "T", "two that had read the same stock never both deduct it")
	cfg.NoSymmetry = true
	require.Empty(t, agree(r, search(t, lab, cfg)))
}

func TestWatchersAreNotCounted(t *testing.T) {
	for _, scheme := range []string{"watch-multi", "segmented"} {
		r, err := newLab(t).RunAny(t.Context(), AnyConfig{Config: Config{Entry: entry(t, scheme), Workload: workload(t, "unit")}})
		require.NoError(t, err)
		require.Equal(t, Inconclusive, r.Verdicts[model.Oversell].Status, scheme)
		require.NotEmpty(t, r.Verdicts[model.Oversell].Detail)
	}
}

// A scheme that goes by names and does not say so is found by the comparison
// with a search without symmetry.
func TestASchemeThatGoesByNamesWithoutSayingSoIsFound(t *testing.T) {
	lab := newLab(t)
	cfg := Config{Entry: entry(t, "segmented"), Workload: workload(t, "restock")}
	named := search(t, lab, cfg)
	require.False(t, named.Symmetry)
	cfg.Entry.ByName = false
	silent := search(t, newLab(t), cfg)
	require.True(t, silent.Symmetry)
	require.NotEmpty(t, agree(named, silent))
}

// Catalogue O-20 in every interleaving: a request that is submitted again is
// deducted again where its record has ended, and never where it has no end.
func TestARequestSubmittedAgainAfterItsRecordHasEnded(t *testing.T) {
	lab := newLab(t)
	for life, want := range map[time.Duration]Status{300 * time.Millisecond: Violated, schemes.Forever: Holds} {
		cfg := one(t, "lua-journal", faults.DuplicateRequest, "unit", "off")
		cfg.Stock, cfg.Times = 2, DefaultTimes
		cfg.Times.Record = life
		r := search(t, lab, cfg)
		require.Equal(t, want, r.Verdicts[model.DoubleDeduct].Status, "%v", life)
		require.Equal(t, want, r.Verdicts[model.DoubleSale].Status, "%v", life)
	}
}

const fencedRead = `local seen = tonumber(redis.call('HGET', KEYS[1], 'fence') or '0')
if tonumber(ARGV[1]) > seen then redis.call('HSET', KEYS[1], 'fence', ARGV[1]) end
return redis.call('HGET', KEYS[1], 'stock')`

// A fencing token that only writes show is not enough: who pauses between read
// and write comes back while the next holder has read and not written yet. With the
// token shown at the read too, the late write is refused.
func TestAFencingTokenHasToBeShownAtTheReadToo(t *testing.T) {
	lab := newLab(t)
	cfg := one(t, "lock-fenced", faults.ClientPause, "unit", "off")
	require.Equal(t, "OTNX", only(letters(search(t, lab, cfg)), "TNOLPX"))
	cfg.Entry = like(t, "lock-fenced", func(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
		return schemes.DeductFenced(ctx, env, req, func(token int64) (int64, error) {
			return env.Redis.Eval(ctx, fencedRead, []string{"goods:" + req.SKU}, token).Int64()
		})
	})
	require.Equal(t, "", only(letters(search(t, lab, cfg)), "TNOLPX"))
}

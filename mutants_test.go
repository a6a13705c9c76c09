package stockproof_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/model"
	"stockproof/schemes"
)

// mutant is a scheme broken on purpose: another one's stock with a deduct of
// its own. Client processes of this test binary know it by name.
type mutant struct {
	name   string
	base   string
	deduct func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error)
}

func (m mutant) baseScheme() schemes.Scheme {
	e, err := schemes.ByName(m.base)
	if err != nil {
		panic(err)
	}
	return e.Scheme
}

func (m mutant) Name() string { return "mutant: " + m.name }

func (m mutant) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return m.baseScheme().(schemes.Loader).Load(ctx, env, sku, units)
}

func (m mutant) Read(ctx context.Context, env schemes.Env, sku string) (int64, error) {
	return m.baseScheme().(schemes.Reader).Read(ctx, env, sku)
}

func (m mutant) Restock(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	return m.baseScheme().(schemes.Restocker).Restock(ctx, env, req)
}

func (m mutant) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	return m.deduct(ctx, env, req, m.baseScheme())
}

// auditedMutant is a mutant of a scheme that writes orders.
type auditedMutant struct{ mutant }

func (m auditedMutant) Orders(ctx context.Context, env schemes.Env, sku string) ([]model.Order, error) {
	return m.baseScheme().(schemes.Auditor).Orders(ctx, env, sku)
}

// convictions lists the mutants with a run that must convict them and the
// property it must find broken.
var convictions = []struct {
	scheme    schemes.Scheme
	stores    schemes.Stores
	workload  string
	placement faults.Placement
	breaks    []model.Property
}{
	{mutant{"answers sold whatever the script says", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			_, err := base.Deduct(ctx, env, req)
			return model.Sold, err
		}}, schemes.Stores{Redis: true}, "unit", inTurn, []model.Property{model.Oversell, model.NonLinearizable}},

	{mutant{"guard is off by one", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
			const script = `if tonumber(redis.call('GET', KEYS[1])) < 0 then return 0 end
				redis.call('DECRBY', KEYS[1], ARGV[1]) return 1`
			done, err := env.Redis.Eval(ctx, script, []string{"stock:" + req.SKU}, req.Qty).Int64()
			if err != nil {
				return model.Unknown, err
			}
			if done == 1 {
				return model.Sold, nil
			}
			return model.SoldOut, nil
		}}, schemes.Stores{Redis: true}, "unit", inTurn, []model.Property{model.Oversell, model.NegativePermanent}},

	{mutant{"does not give back", "hincrby",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
			left, err := env.Redis.HIncrBy(ctx, "goods:"+req.SKU, "stock", -req.Qty).Result()
			if err != nil {
				return model.Unknown, err
			}
			if left < 0 {
				return model.SoldOut, nil
			}
			return model.Sold, nil
		}}, schemes.Stores{Redis: true}, "unit", inTurn, []model.Property{model.NegativePermanent, model.LostUnits}},

	{mutant{"gives back twice", "hincrby",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			outcome, err := base.Deduct(ctx, env, req)
			if outcome == model.SoldOut {
				err = env.Redis.HIncrBy(ctx, "goods:"+req.SKU, "stock", req.Qty).Err()
			}
			return outcome, err
		}}, schemes.Stores{Redis: true}, "unit", inTurn, []model.Property{model.Oversell}},

	{mutant{"gives back what it sold", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			outcome, err := base.Deduct(ctx, env, req)
			if outcome == model.Sold && req.ID[0] == 'c' {
				err = env.Redis.IncrBy(ctx, "stock:"+req.SKU, req.Qty).Err()
			}
			return outcome, err
		}}, schemes.Stores{Redis: true}, "restock", inTurn, []model.Property{model.PhantomUnits}},

	{mutant{"takes the unit and answers sold-out", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			_, err := base.Deduct(ctx, env, req)
			return model.SoldOut, err
		}}, schemes.Stores{Redis: true}, "unit", inTurn, []model.Property{model.LostUnits, model.FalseSoldOut, model.NonLinearizable}},

	{mutant{"deducts twice", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			outcome, err := base.Deduct(ctx, env, req)
			if outcome == model.Sold {
				_, err = base.Deduct(ctx, env, req)
			}
			return outcome, err
		}}, schemes.Stores{Redis: true}, "mixed", inTurn, []model.Property{model.DoubleDeduct, model.LostUnits}},

	{mutant{"takes twice with one command", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
			left, err := env.Redis.DecrBy(ctx, "stock:"+req.SKU, 2*req.Qty).Result()
			if err != nil || left < 0 {
				return model.SoldOut, err
			}
			return model.Sold, nil
		}}, schemes.Stores{Redis: true}, "mixed", inTurn, []model.Property{model.LostUnits}},

	{mutant{"takes an error for a sale", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			outcome, err := base.Deduct(ctx, env, req)
			if err != nil {
				outcome = model.Sold
			}
			return outcome, err
		}}, schemes.Stores{Redis: true}, "unit", at(faults.RequestLost, a, 1), []model.Property{model.Oversell}},

	{mutant{"takes a lost reply for a failure and gives back", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			outcome, err := base.Deduct(ctx, env, req)
			if err != nil {
				return model.Failed, env.Redis.IncrBy(ctx, "stock:"+req.SKU, req.Qty).Err()
			}
			return outcome, nil
		}}, schemes.Stores{Redis: true}, "unit", at(faults.RequestLost, a, 1), []model.Property{model.Oversell}},

	{mutant{"deletes a lock that is somebody else's", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
			lock := "lock:" + req.SKU
			defer env.Redis.Del(ctx, lock)
			if !env.Redis.SetNX(ctx, lock, env.Client, time.Minute).Val() {
				return model.Busy, nil
			}
			left, err := env.Redis.Get(ctx, "stock:"+req.SKU).Int64()
			if err != nil || left < req.Qty {
				return model.SoldOut, err
			}
			return model.Sold, env.Redis.DecrBy(ctx, "stock:"+req.SKU, req.Qty).Err()
		}}, schemes.Stores{Redis: true}, "unit", preempted(a, 2), []model.Property{model.Oversell, model.NegativePermanent}},

	// Catalogue O-72.
	{mutant{"sends its transaction over another connection than its WATCH", "watch-multi",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (outcome model.Outcome, err error) {
			key := "stock:" + req.SKU
			err = env.Redis.Watch(ctx, func(tx *redis.Tx) error {
				left, err := tx.Get(ctx, key).Int64()
				if err != nil || left < req.Qty {
					outcome = model.SoldOut
					return err
				}
				outcome = model.Sold
				_, err = env.Redis.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.DecrBy(ctx, key, req.Qty).Err() })
				return err
			}, key)
			return outcome, err
		}}, schemes.Stores{Redis: true}, "unit", preempted(a, 2), []model.Property{model.Oversell, model.NegativePermanent}},

	{mutant{"takes a lock that never expires", "lua-string",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			lock := "lock:" + req.SKU
			if !env.Redis.SetNX(ctx, lock, env.Client, 0).Val() {
				return model.Busy, nil
			}
			defer env.Redis.Del(ctx, lock)
			return base.Deduct(ctx, env, req)
		}}, schemes.Stores{Redis: true}, "unit", at(faults.ClientCrash, a, 1), []model.Property{model.Stuck, model.Unsold}},

	{mutant{"writes the stock it computed", "db-version",
		func(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
			left, err := base.(schemes.Reader).Read(ctx, env, req.SKU)
			if err != nil || left < req.Qty {
				return model.SoldOut, err
			}
			_, err = env.DB.ExecContext(ctx, `UPDATE goods SET stock = $1 WHERE sku = $2`, left-req.Qty, req.SKU)
			return model.Sold, err
		}}, schemes.Stores{SQL: true}, "unit", barrier, []model.Property{model.Oversell, model.NonLinearizable}},

	{auditedMutant{mutant{"sells without an order", "lua-lock",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
			e, err := schemes.ByName("lua-string")
			if err != nil {
				return model.Failed, err
			}
			return e.Scheme.Deduct(ctx, env, req)
		}}}, schemes.Stores{Redis: true, SQL: true}, "unit", inTurn, []model.Property{model.OrderMismatch}},

	{auditedMutant{mutant{"orders what it did not sell", "lua-lock",
		func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
			_, err := env.DB.ExecContext(ctx, `INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, $3, $4)`,
				req.ID, req.SKU, req.Buyer, req.Qty)
			return model.SoldOut, err
		}}}, schemes.Stores{Redis: true, SQL: true}, "unit", inTurn, []model.Property{model.OrderMismatch, model.FalseSoldOut}},

	// The fourth client does the background role.
	{workingMutant{auditedMutant{mutant{"its consumer acknowledges before it writes", "stream-order", deductsAsItsBase}}, acknowledgesFirst},
		schemes.Stores{Redis: true, SQL: true}, "unit", at(faults.ClientCrash, c+1, 2), []model.Property{model.OrderMismatch}},

	{workingMutant{auditedMutant{mutant{"its consumer only looks", "stream-order", deductsAsItsBase}}, looksOnly},
		schemes.Stores{Redis: true, SQL: true}, "unit", inTurn, []model.Property{model.OrderMismatch}},
}

func init() {
	for _, c := range convictions {
		schemes.Register(schemes.Entry{Scheme: c.scheme, Stores: c.stores, Hidden: true})
	}
}

func TestEachBrokenSchemeIsConvicted(t *testing.T) {
	require.GreaterOrEqual(t, len(convictions), 10)
	for _, m := range convictions {
		t.Run(m.scheme.Name(), func(t *testing.T) {
			run := sale(t, m.scheme.Name(), m.workload, "off", m.placement)
			cells := evidence.FromLive(groupOf(run))
			for _, p := range m.breaks {
				require.True(t, run.Finding(p).Broken, "%s: %s", p, run.Finding(p).Detail)
				require.Equal(t, evidence.Violated, cell(t, cells, p).Verdict)
				require.False(t, cell(t, cells, p).AsDeclared(), "it promised %s", p)
			}
		})
	}
}

func cell(t *testing.T, cells []evidence.Cell, p model.Property) evidence.Cell {
	t.Helper()
	for _, c := range cells {
		if c.Property == p {
			return c
		}
	}
	t.Fatalf("no cell for %s", p)
	return evidence.Cell{}
}

func TestAFaultThatDidNotFireIsInconclusiveAndNotAsDeclared(t *testing.T) {
	run, err := liveWorld(t).Run(t.Context(), live.Case{Entry: entry(t, "lua-hash"), Workload: workload(t, "unit"), Retries: "off", Placement: at(faults.ReplyLost, a, 99)})
	require.NoError(t, err)
	require.NoError(t, run.Check(""))
	require.False(t, run.Fired)
	for _, c := range evidence.FromLive(groupOf(run)) {
		if c.Verdict == evidence.NotApplicable {
			continue
		}
		require.Equal(t, evidence.Inconclusive, c.Verdict, c.Property)
		require.False(t, c.AsDeclared(), c.Property)
	}
}

func TestAFaultDoesNotFireAtAStepThatIsNotTheCommandThatWasCounted(t *testing.T) {
	p := at(faults.ReplyLost, a, 1)
	for command, fires := range map[string]bool{"EVALSHA lua-hash": true, "HINCRBY": false} {
		p.At = command
		run, err := liveWorld(t).Run(t.Context(), live.Case{Entry: entry(t, "lua-hash"), Workload: workload(t, "unit"), Retries: "off", Placement: p})
		require.NoError(t, err)
		require.Equal(t, fires, run.Fired, command)
	}
}

func TestADeclaredWeaknessThatDoesNotShowIsNotAsDeclared(t *testing.T) {
	run := sale(t, "lua-hash", "unit", "off", inTurn)
	e := entry(t, "lua-hash")
	e.Guarantees = schemes.Guarantees{Weaknesses: []schemes.Weakness{{Fault: string(faults.None), Breaks: []model.Property{model.Oversell}}}}
	group := groupOf(run)
	group.Entry = e
	cells := evidence.FromLive(group)
	require.Equal(t, evidence.Holds, cell(t, cells, model.Oversell).Verdict)
	require.False(t, cell(t, cells, model.Oversell).AsDeclared())
}

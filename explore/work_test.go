package explore

import (
	"context"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// bentWork is stream-order with a background role broken on purpose.
type bentWork struct {
	schemes.Scheme
	work func(ctx context.Context, env schemes.Env, sku string, whole schemes.Worker) (left bool, err error)
}

func (b *bentWork) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	return b.Scheme.(schemes.Loader).Load(ctx, env, sku, units)
}

func (b *bentWork) Read(ctx context.Context, env schemes.Env, sku string) (int64, error) {
	return b.Scheme.(schemes.Reader).Read(ctx, env, sku)
}

func (b *bentWork) Orders(ctx context.Context, env schemes.Env, sku string) ([]model.Order, error) {
	return b.Scheme.(schemes.Auditor).Orders(ctx, env, sku)
}

func (b *bentWork) Work(ctx context.Context, env schemes.Env, sku string) (bool, error) {
	return b.work(ctx, env, sku, b.Scheme.(schemes.Worker))
}

func bent(t *testing.T, work func(ctx context.Context, env schemes.Env, sku string, whole schemes.Worker) (bool, error)) schemes.Entry {
	e := entry(t, "stream-order")
	e.Scheme = &bentWork{e.Scheme, work}
	return e
}

func roles(e schemes.Entry, t *testing.T, clients int, kinds ...faults.Kind) Config {
	cfg := Config{Entry: e, Workload: workload(t, "unit"), Clients: clients, Faults: kinds}
	if len(kinds) > 0 {
		cfg.MaxFaults = 1
	}
	return cfg
}

func TestARoundOfTheBackgroundRoleTakesPartAndIsNoOperationOfTheHistory(t *testing.T) {
	r := search(t, newLab(t), roles(entry(t, "stream-order-blind"), t, 1, faults.ClientCrash))
	require.True(t, r.Exhaustive, r.Why)
	w := r.Verdicts[model.DoubleSale].Witness
	require.NotNil(t, w, "its consumer dies between order and acknowledgement")
	s := w.Schedule()
	require.Equal(t, []schedule.Call{{Op: model.Work}}, s.Clients[1].Calls)
	crash := slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Fault == faults.ClientCrash })
	require.Equal(t, "b", s.Steps[crash].Client, "\n%s", s)
	require.Contains(t, s.Steps[crash].Statement, "INSERT INTO shipments", "\n%s", s)
	require.Equal(t, []schedule.Answer{{Client: "a", N: 1, Outcome: model.Sold}, {Client: "b", N: 1, Outcome: model.Unknown}}, s.Outcomes)
	require.Equal(t, Holds, r.Verdicts[model.NonLinearizable].Status, "an open round is no open operation")

	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	defer engine.Close()
	require.NoError(t, Replay(entry(t, "stream-order-blind"), reread(t, w), engine))
	once := search(t, newLab(t), roles(entry(t, "stream-order"), t, 1, faults.ClientCrash))
	require.Equal(t, Holds, once.Verdicts[model.DoubleSale].Status, "with an idempotent insert the same crash does nothing")
	require.Equal(t, Holds, once.Verdicts[model.OrderMismatch].Status)
}

// At rest the role has done all it can: an order that only a later round writes
// is no missing one. That this is looked at shows a role that does nothing.
func TestASaleIsAtRestWhenItsBackgroundRoleIsDone(t *testing.T) {
	whole := search(t, newLab(t), roles(entry(t, "stream-order"), t, 2))
	require.Equal(t, Holds, whole.Verdicts[model.OrderMismatch].Status)

	idle := bent(t, func(ctx context.Context, env schemes.Env, sku string, _ schemes.Worker) (bool, error) {
		return false, env.Redis.XLen(ctx, "orders:"+sku).Err()
	})
	r := search(t, newLab(t), roles(idle, t, 2))
	require.Equal(t, Violated, r.Verdicts[model.OrderMismatch].Status)

	// A first round that only looks is made up for by a second.
	lazy := bent(t, func(ctx context.Context, env schemes.Env, sku string, whole schemes.Worker) (bool, error) {
		if env.Redis.SetNX(ctx, "looked", "1", 0).Val() {
			return true, nil
		}
		return whole.Work(ctx, env, sku)
	})
	r = search(t, newLab(t), roles(lazy, t, 2))
	require.Equal(t, Holds, r.Verdicts[model.OrderMismatch].Status)
}

func TestABackgroundRoleThatNeverComesToRestIsAnError(t *testing.T) {
	endless := bent(t, func(ctx context.Context, env schemes.Env, _ string, _ schemes.Worker) (bool, error) {
		return true, env.Redis.Get(ctx, "stock:1001").Err()
	})
	_, err := newLab(t).Run(t.Context(), roles(endless, t, 1))
	require.ErrorIs(t, err, ErrScheme)
	require.ErrorContains(t, err, "background role")
}

// A consumer that does not ask for what was given to it before its death loses
// the order it died over.
func TestAConsumerThatCanLoseAnOrderIsConvicted(t *testing.T) {
	forgets := bent(t, func(ctx context.Context, env schemes.Env, sku string, whole schemes.Worker) (bool, error) {
		env.Redis.AddHook(skipsOwnPending{})
		return whole.Work(ctx, env, sku)
	})
	r := search(t, newLab(t), roles(forgets, t, 1))
	require.Equal(t, Holds, r.Verdicts[model.OrderMismatch].Status, "as long as nobody dies")
	r = search(t, newLab(t), roles(forgets, t, 1, faults.ClientCrash))
	require.Equal(t, Violated, r.Verdicts[model.OrderMismatch].Status)
}

// Two who do the role at a time are clients like any other.
func TestAWorkloadMaySayItselfWhoDoesTheBackgroundRole(t *testing.T) {
	cfg := roles(entry(t, "stream-order-blind"), t, 3)
	cfg.Workload = faults.Workload{Name: "two consumers", Stock: 1, Clients: [][]faults.Call{
		{{Op: model.Deduct, Qty: 1}}, {{Op: model.Work}}, {{Op: model.Work}}}}
	r := search(t, newLab(t), cfg)
	w := r.Verdicts[model.DoubleSale].Witness
	require.NotNil(t, w, "two that go by one name are both given what is pending")
	require.Len(t, w.Clients, 3)
	cfg.Entry = entry(t, "stream-order")
	require.Equal(t, Holds, search(t, newLab(t), cfg).Verdicts[model.DoubleSale].Status)
}

// With any number of clients only what is found with few is told; nothing holds.
func TestAnyNumberOfClientsBesideABackgroundRoleIsNotDecided(t *testing.T) {
	cfg := AnyConfig{Config: roles(entry(t, "reconcile-naive"), t, 0), MostClients: 2}
	r, err := newLab(t).RunAny(t.Context(), cfg)
	require.NoError(t, err)
	require.False(t, r.Finite)
	require.Equal(t, Violated, r.Verdicts[model.Oversell].Status)
	require.Equal(t, Inconclusive, r.Verdicts[model.PhantomUnits].Status)
	require.Contains(t, r.Verdicts[model.PhantomUnits].Detail, "background role")
}

// What shows each scheme with a role at its weakest, and what does not break it.
func TestTheBackgroundRolesShowWhatTheyAreKnownFor(t *testing.T) {
	lab := newLab(t)
	for _, c := range []struct {
		scheme string
		kind   faults.Kind
		breaks []model.Property
		keeps  []model.Property
	}{
		// The job sees no order of who is between deduction and order.
		{"reconcile-naive", faults.None, []model.Property{model.Oversell, model.NegativePermanent}, []model.Property{model.LostUnits}},
		{"reconcile-diff", faults.None, nil, []model.Property{model.Oversell, model.PhantomUnits, model.LostUnits, model.FalseSoldOut}},
		// What a dead client took comes back.
		{"reconcile-diff", faults.ClientCrash, nil, []model.Property{model.Oversell, model.PhantomUnits, model.LostUnits}},
		// Who stands still for longer than the window orders what was given back.
		{"reconcile-diff", faults.ClientPause, []model.Property{model.Oversell}, nil},
		{"reserve-confirm", faults.ClientPause, []model.Property{model.Oversell}, nil},
		{"reserve-confirm-once", faults.ClientPause, nil, []model.Property{model.Oversell, model.PhantomUnits, model.LostUnits, model.OrderMismatch}},
		{"reserve-confirm", faults.ClientCrash, []model.Property{model.Oversell}, nil},
		{"reserve-confirm-once", faults.ClientCrash, nil, []model.Property{model.Oversell, model.PhantomUnits, model.LostUnits, model.OrderMismatch}},
		// Redis was only slow: the database sells what Redis has sold or will sell.
		{"degrade", faults.RequestDelayed, []model.Property{model.Oversell, model.LostUnits}, nil},
		{"outbox", faults.ClientCrash, []model.Property{model.DoubleSale}, []model.Property{model.Oversell, model.LostUnits, model.NonLinearizable}},
	} {
		var kinds []faults.Kind
		if c.kind != faults.None {
			kinds = append(kinds, c.kind)
		}
		r := search(t, lab, roles(entry(t, c.scheme), t, 2, kinds...))
		require.True(t, r.Exhaustive, r.Why)
		for _, p := range c.breaks {
			require.Equal(t, Violated, r.Verdicts[p].Status, "%s %s %s", c.scheme, c.kind, p)
		}
		for _, p := range c.keeps {
			require.Equal(t, Holds, r.Verdicts[p].Status, "%s %s %s: %s", c.scheme, c.kind, p, r.Verdicts[p].Detail)
		}
	}
}

// skipsOwnPending makes a consumer ask for new messages only.
type skipsOwnPending struct{}

func (skipsOwnPending) DialHook(next redis.DialHook) redis.DialHook { return next }

func (skipsOwnPending) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if args := cmd.Args(); args[0] == "xreadgroup" && args[len(args)-1] == "0" {
			return redis.Nil
		}
		return next(ctx, cmd)
	}
}

func (skipsOwnPending) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

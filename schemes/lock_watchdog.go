package schemes

import (
	"context"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     lockWatchdog{},
		Summary:    "as lock, taken without a lease: a watchdog renews it every third of its lifetime",
		Stores:     Stores{Redis: true},
		Guarantees: lockWatchdogGuarantees,
	})
}

// lockWatchdog is lock with Redisson's watchdog instead of a fixed lease.
type lockWatchdog struct{ lock }

func (lockWatchdog) Name() string { return "lock-watchdog" }

// Deduct is lock.Deduct without a lease.
func (s lockWatchdog) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return locked(ctx, env, req, 0, func() (model.Outcome, error) {
		return s.ReadThenDecrement(ctx, env, req)
	})
}

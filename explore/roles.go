package explore

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9/maintnotifications"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// perform runs one action of a scheme, as a client process would.
func perform(ctx context.Context, scheme schemes.Scheme, env schemes.Env, r role) result {
	buyer, _ := faults.SplitRequestID(r.request) // also when another client submits it again
	req := schemes.Request{SKU: sku, Qty: r.qty, ID: r.request, Buyer: buyer}
	ended := func(o model.Outcome, err error) result {
		res := result{outcome: o}
		if err != nil {
			res.err = err.Error()
		}
		return res
	}
	lacks := func(what string) result {
		return ended(model.Failed, fmt.Errorf("scheme %s has no %s", scheme.Name(), what))
	}
	switch r.action {
	case deduct:
		return ended(scheme.Deduct(ctx, env, req))
	case restock:
		if s, ok := scheme.(schemes.Restocker); ok {
			return ended(s.Restock(ctx, env, req))
		}
		return lacks("Restock")
	case read:
		s, ok := scheme.(schemes.Reader)
		if !ok {
			return lacks("Read")
		}
		left, err := s.Read(ctx, env, sku)
		res := ended(model.Value, err)
		if res.value = left; err != nil {
			res.outcome = model.Failed
		}
		return res
	case load:
		s, ok := scheme.(schemes.Loader)
		if !ok {
			return lacks("Load")
		}
		res := ended(model.OK, s.Load(ctx, env, sku, r.qty))
		if res.err != "" {
			res.outcome = model.Failed
		}
		return res
	case reconcile:
		s, ok := scheme.(schemes.Reconciler)
		if !ok {
			return lacks("Reconcile")
		}
		res := ended(model.OK, s.Reconcile(ctx, env, sku, r.qty))
		if res.err != "" {
			res.outcome = model.Unknown
		}
		return res
	case work:
		s, ok := scheme.(schemes.Worker)
		if !ok {
			return lacks("Work")
		}
		left, err := s.Work(ctx, env, sku)
		res := ended(model.OK, err)
		if left {
			res.value = 1
		}
		if err != nil {
			res.outcome = model.Failed
		}
		return res
	case orders:
		s, ok := scheme.(schemes.Auditor)
		if !ok {
			return lacks("Orders")
		}
		list, err := s.Orders(ctx, env, sku)
		res := ended(model.OK, err)
		if res.orders = encodeOrders(list); err != nil {
			res.outcome = model.Failed
		}
		return res
	}
	return ended(model.Failed, fmt.Errorf("unknown action %q", r.action))
}

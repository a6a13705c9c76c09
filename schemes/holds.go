package schemes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

//go:embed hold_reserve.lua
var holdReserveSource string

//go:embed hold_end.lua
var holdEndSource string

//go:embed hold_due.lua
var holdDueSource string

var (
	holdReserve = named("hold-reserve", holdReserveSource)
	holdEnd     = named("hold-end", holdEndSource)
	holdDue     = named("hold-due", holdDueSource)
)

// holdLife is how long a hold has by default: the time to pay of many shops.
const holdLife = 15 * time.Minute

// holds is a counter in a string key from which requests take units for a time.
// What a request holds stands in a hash, so that it can be found when its client
// is gone, and a mark with a time to live says how long nobody may touch it.
type holds struct{ putOnSale }

func holdsKey(sku string) string { return "holds:" + sku }

func markPrefix(sku string) string { return "hold:" + sku + ":" }

// LeaseKeys are the marks.
func (holds) LeaseKeys(sku string) []string { return []string{markPrefix(sku) + "*"} }

// Load sets the counter and loads the scripts.
func (s holds) Load(ctx context.Context, env Env, sku string, units int64) error {
	for _, script := range []*redis.Script{holdReserve, holdEnd, holdDue} {
		if err := script.Load(ctx, env.Redis).Err(); err != nil {
			return err
		}
	}
	return s.putOnSale.Load(ctx, env, sku, units)
}

var errHoldEnded = errors.New("the reservation of this request has ended")

// reserve takes the units of a request from the counter, once.
func (holds) reserve(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	life := or(env.Config.Lease, holdLife)
	got, err := holdReserve.Run(ctx, env.Redis, []string{stockKey(req.SKU), holdsKey(req.SKU), markPrefix(req.SKU) + req.ID},
		req.Qty, req.ID, life.Milliseconds()).Int64()
	switch {
	case err != nil:
		return afterRedis(env, err), err
	case got == 0:
		return model.SoldOut, nil
	case got == 2:
		return model.Failed, errHoldEnded
	}
	return model.Sold, nil
}

// end ends the hold of a request: its units are gone, or on sale again.
func (holds) end(ctx context.Context, env Env, sku, request string, giveBack bool) error {
	back := 0
	if giveBack {
		back = 1
	}
	return holdEnd.Run(ctx, env.Redis, []string{stockKey(sku), holdsKey(sku), markPrefix(sku) + request}, request, back).Err()
}

// due lists the requests whose time to hold is over, and says whether others
// have time left.
func (holds) due(ctx context.Context, env Env, sku string) (requests []string, young bool, err error) {
	answer, err := holdDue.Run(ctx, env.Redis, []string{holdsKey(sku)}, markPrefix(sku)).Slice()
	if err != nil {
		return nil, true, err
	}
	if len(answer) == 2 {
		count, counted := answer[0].(int64)
		list, listed := answer[1].([]any)
		if counted && listed {
			for _, id := range list {
				requests = append(requests, fmt.Sprint(id))
			}
			return requests, count > 0, nil
		}
	}
	return nil, true, fmt.Errorf("holds of %s: unexpected answer %v", sku, answer)
}

// sell is reserve, order, end. The order is the sale: what comes after it only
// tidies up.
func (s holds) sell(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if outcome, err := s.reserve(ctx, env, req); outcome != model.Sold {
		return outcome, err
	}
	if err := s.insert(ctx, env.DB, req); err != nil {
		return afterCommit(err), err
	}
	return model.Sold, s.end(ctx, env, req.SKU, req.ID, false)
}

// sweep is a round of a sweeper, which decides what becomes of each hold whose
// time is over.
func (s holds) sweep(ctx context.Context, env Env, sku string, sold func(request string) (bool, error)) (left bool, err error) {
	requests, young, err := s.due(ctx, env, sku)
	if err != nil {
		return true, err
	}
	for _, id := range requests {
		ordered, err := sold(id)
		if err != nil {
			return true, err
		}
		if err := s.end(ctx, env, sku, id, !ordered); err != nil {
			return true, err
		}
	}
	return young, nil
}

package schemes

import (
	"context"
	"fmt"
	"strconv"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     segmented{},
		Summary:    "stock split over two keys: the lua-string script on the buyer's own key, then on the other",
		Stores:     Stores{Redis: true},
		Guarantees: segmentedGuarantees,
		Wider:      true,
		ByName:     true,
	})
}

// segments is how many keys the stock is split over. More spread the load over
// more shards; what goes wrong needs only two.
const segments = 2

// segmented splits the stock so that no single key is hot. Its counter is the
// sum over the keys. In a cluster the keys are meant to lie on different
// shards, where nobody can read the sum in one command.
type segmented struct{}

func (segmented) Name() string { return "segmented" }

func segmentKey(sku string, i int) string { return stockKey(sku) + ":" + strconv.Itoa(i) }

// own is the buyer's first segment: the last byte of the buyer's id modulo the
// number of segments, as user ids are commonly spread.
func own(buyer string) int {
	if buyer == "" {
		return 0
	}
	return int(buyer[len(buyer)-1]) % segments
}

// Load splits the units, the first segments getting what is left over.
func (segmented) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := luaStringScript.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	var pairs []any
	for i := range int64(segments) {
		share := units / segments
		if i < units%segments {
			share++
		}
		pairs = append(pairs, segmentKey(sku, int(i)), share)
	}
	return env.Redis.MSet(ctx, pairs...).Err()
}

// Read answers the sum of the segments; ErrNoStock when one is missing.
func (segmented) Read(ctx context.Context, env Env, sku string) (int64, error) {
	var keys []string
	for i := range segments {
		keys = append(keys, segmentKey(sku, i))
	}
	list, err := env.Redis.MGet(ctx, keys...).Result()
	if err != nil {
		return 0, err
	}
	var sum int64
	for i, v := range list {
		text, there := v.(string)
		if !there {
			return 0, fmt.Errorf("%w: %s", ErrNoStock, keys[i])
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("%w: %s holds %q", ErrNoStock, keys[i], text)
		}
		sum += n
	}
	return sum, nil
}

// Restock adds the units to the buyer's own segment.
func (segmented) Restock(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	if err := env.Redis.IncrBy(ctx, segmentKey(req.SKU, own(req.Buyer)), req.Qty).Err(); err != nil {
		return afterRedis(env, err), err
	}
	return model.OK, nil
}

// Deduct asks each segment once, the buyer's own first. It never takes from
// two: a request for more than any segment holds is refused although the sum
// would do.
func (segmented) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	for i := range segments {
		key := segmentKey(req.SKU, (own(req.Buyer)+i)%segments)
		outcome, err := deductByScript(ctx, env, luaStringScript, []string{key}, req.Qty)
		if outcome != model.SoldOut {
			return outcome, err
		}
	}
	return model.SoldOut, nil
}

package schemes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     streamOrder{},
		Summary:    "one script deducts and puts the order into a Redis stream; a consumer inserts it in SQL, ON CONFLICT DO NOTHING",
		Stores:     Stores{Redis: true, SQL: true},
		Guarantees: streamOrderGuarantees,
		Wider:      true,
	})
}

//go:embed stream_order.lua
var streamOrderSource string

var streamOrderScript = named("stream-order", streamOrderSource)

// The consumer group of the orders, and its consumer. The name stays the same
// over restarts: that is how who comes back finds what it had begun.
const (
	orderGroup    = "orders"
	orderConsumer = "consumer"
)

func orderStream(sku string) string { return "orders:" + sku }

// streamStock is the deduction that stream-order and stream-order-blind share.
type streamStock struct{ stringStock }

// Load sets the counter and makes the group before there is a first order.
func (s streamStock) Load(ctx context.Context, env Env, sku string, units int64) error {
	if err := s.makeGroup(ctx, env, sku); err != nil {
		return err
	}
	if err := streamOrderScript.Load(ctx, env.Redis).Err(); err != nil {
		return err
	}
	return s.stringStock.Load(ctx, env, sku, units)
}

func (streamStock) makeGroup(ctx context.Context, env Env, sku string) error {
	err := env.Redis.XGroupCreateMkStream(ctx, orderStream(sku), orderGroup, "0").Err()
	if redis.HasErrorPrefix(err, "BUSYGROUP") {
		return nil
	}
	return err
}

// Deduct is one EVALSHA: what is deducted is ordered, or neither.
func (streamStock) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	return deductByScript(ctx, env, streamOrderScript, []string{stockKey(req.SKU), orderStream(req.SKU)}, req.Qty, req.ID)
}

// consume is a round of the consumer: first what it, or who had its name before,
// was given and did not acknowledge, then what is new. write comes before the
// acknowledgement, so a message can come again but not get lost.
func (s streamStock) consume(ctx context.Context, env Env, sku string, write func(model.Order) error) (left bool, err error) {
	for _, from := range []string{"0", ">"} {
		streams, err := env.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{
			Group: orderGroup, Consumer: orderConsumer, Streams: []string{orderStream(sku), from}, Block: -1,
		}).Result()
		if errors.Is(err, redis.Nil) {
			continue // nothing new
		}
		if redis.HasErrorPrefix(err, "NOGROUP") { // Redis has lost the stream
			return true, s.makeGroup(ctx, env, sku)
		}
		if err != nil {
			return true, err
		}
		for _, m := range streams[0].Messages {
			o := model.Order{Request: fmt.Sprint(m.Values["request"])}
			if o.Qty, err = strconv.ParseInt(fmt.Sprint(m.Values["qty"]), 10, 64); err != nil {
				return true, fmt.Errorf("message %s of %s: %w", m.ID, orderStream(sku), err)
			}
			if err := write(o); err != nil {
				return true, err
			}
			if err := env.Redis.XAck(ctx, orderStream(sku), orderGroup, m.ID).Err(); err != nil {
				return true, err
			}
		}
	}
	return false, nil
}

// streamOrder inserts a message's order under its request id.
type streamOrder struct {
	streamStock
	orderTable
}

func (streamOrder) Name() string { return "stream-order" }

// Work is a round of the consumer. A message that comes again finds its order.
func (s streamOrder) Work(ctx context.Context, env Env, sku string) (left bool, err error) {
	return s.consume(ctx, env, sku, func(o model.Order) error {
		_, err := env.DB.ExecContext(ctx,
			`INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, '', $3) ON CONFLICT (request_id) DO NOTHING`,
			o.Request, sku, o.Qty)
		return err
	})
}

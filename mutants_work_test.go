package stockproof_test

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
	"stockproof/schemes"
)

// workingMutant is a mutant of a scheme with a background role, which is broken
// on purpose too.
type workingMutant struct {
	auditedMutant
	work func(ctx context.Context, env schemes.Env, sku string, base schemes.Worker) (bool, error)
}

func (m workingMutant) Work(ctx context.Context, env schemes.Env, sku string) (bool, error) {
	return m.work(ctx, env, sku, m.baseScheme().(schemes.Worker))
}

func deductsAsItsBase(ctx context.Context, env schemes.Env, req schemes.Request, base schemes.Scheme) (model.Outcome, error) {
	return base.Deduct(ctx, env, req)
}

// acknowledgesFirst takes new messages and writes their orders after it has
// acknowledged them.
func acknowledgesFirst(ctx context.Context, env schemes.Env, sku string, _ schemes.Worker) (bool, error) {
	stream := "orders:" + sku
	read, err := env.Redis.XReadGroup(ctx, &redis.XReadGroupArgs{Group: "orders", Consumer: "consumer", Streams: []string{stream, ">"}, Block: -1}).Result()
	if err == redis.Nil {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	for _, m := range read[0].Messages {
		if err := env.Redis.XAck(ctx, stream, "orders", m.ID).Err(); err != nil {
			return true, err
		}
		if _, err := env.DB.ExecContext(ctx, `INSERT INTO orders (request_id, sku, buyer, qty) VALUES ($1, $2, '', 1)`,
			fmt.Sprint(m.Values["request"]), sku); err != nil {
			return true, err
		}
	}
	return false, nil
}

// looksOnly does nothing of what it should.
func looksOnly(ctx context.Context, env schemes.Env, sku string, _ schemes.Worker) (bool, error) {
	return false, env.Redis.XLen(ctx, "orders:"+sku).Err()
}

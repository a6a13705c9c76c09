package schemes

import (
	"context"
	_ "embed"
	"errors"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

func init() {
	Register(Entry{
		Scheme:     lockFenced{},
		Summary:    "lock with a fencing token around HGET, compare, decrement; the decrement is refused when a larger token has written",
		Stores:     Stores{Redis: true},
		Guarantees: lockFencedGuarantees,
		Wider:      true,
	})
}

//go:embed fenced_acquire.lua
var fencedAcquireSource string

//go:embed fenced_write.lua
var fencedWriteSource string

//go:embed fenced_release.lua
var fencedReleaseSource string

var (
	fencedAcquire = named("fenced-acquire", fencedAcquireSource)
	fencedWrite   = named("fenced-write", fencedWriteSource)
	fencedRelease = named("fenced-release", fencedReleaseSource)
)

// ErrFenced: somebody with a later token has written since this lock was taken.
var ErrFenced = errors.New("the lock's fencing token is no longer the newest")

// lockFenced is a lock whose holders are numbered. As the advice usually goes,
// the store compares the number at the write, and only there.
type lockFenced struct {
	lock
}

func (lockFenced) Name() string { return "lock-fenced" }

// Load stores the units and loads the scripts. The counter of tokens goes on.
func (s lockFenced) Load(ctx context.Context, env Env, sku string, units int64) error {
	for _, script := range []*redis.Script{fencedAcquire, fencedWrite, fencedRelease} {
		if err := script.Load(ctx, env.Redis).Err(); err != nil {
			return err
		}
	}
	return s.HashStock.Load(ctx, env, sku, units)
}

// Deduct takes the lock, reads, decides, and decrements under its token.
func (s lockFenced) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	return DeductFenced(ctx, env, req, func(int64) (int64, error) { return s.Read(ctx, env, req.SKU) })
}

// DeductFenced is the deduct of lock-fenced with a read of the caller's, which is
// told the token of the lock it is made under.
func DeductFenced(ctx context.Context, env Env, req Request, read func(token int64) (int64, error)) (model.Outcome, error) {
	if err := CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	key := lockKey(req.SKU)
	var token int64
	taken, err := poll(ctx, env.Config, func() (taken bool, err error) {
		lease := or(env.Config.Lease, lockLease).Milliseconds()
		token, err = fencedAcquire.Run(ctx, env.Redis, []string{key, "fence:" + req.SKU}, lease).Int64()
		return token > 0, err
	})
	if err != nil {
		return model.Failed, err // the lock may have been taken, the stock was not touched
	}
	if !taken {
		return model.Busy, nil
	}
	outcome, err := readThenWrite(ctx, env, req, token, read)
	return outcome, errors.Join(err, fencedRelease.Run(ctx, env.Redis, []string{key}, token).Err())
}

func readThenWrite(ctx context.Context, env Env, req Request, token int64, read func(int64) (int64, error)) (model.Outcome, error) {
	left, err := read(token)
	if err != nil {
		return model.Failed, err // nothing was written yet
	}
	if left < req.Qty {
		return model.SoldOut, nil
	}
	done, err := fencedWrite.Run(ctx, env.Redis, []string{goodsKey(req.SKU)}, stockField, req.Qty, token).Int64()
	switch {
	case err != nil:
		return afterRedis(env, err), err
	case done == 0 && env.Redis.Options().MaxRetries != 0:
		// The library may have sent it twice; the first may have been in time.
		return model.Unknown, ErrFenced
	case done == 0:
		return model.Busy, ErrFenced
	}
	return model.Sold, nil
}

// Package thirdparty holds schemes built on lock libraries of others, each used
// as its documentation shows it: a lock with a lease around HGET, compare,
// HINCRBY -q, as in scheme lock. Importing the package registers them. A name ends
// with the version of the library that was judged.
package thirdparty

import (
	"context"
	"errors"
	"time"

	"stockproof/model"
	"stockproof/schemes"
)

// Settings where nothing else is configured: those of scheme lock, so that the
// libraries can be compared with it.
const (
	lease = 10 * time.Second
	wait  = 1 * time.Second
	retry = 100 * time.Millisecond
)

// times are those that are configured, or the ones above.
func times(c schemes.Config) schemes.Config {
	if c.Lease == 0 {
		c.Lease = lease
	}
	if c.Wait == 0 {
		c.Wait = wait
	}
	if c.Retry == 0 {
		c.Retry = retry
	}
	return c
}

// again is how often a lock that is not free is asked for once more: after each
// retry interval that begins within the patience.
func again(t schemes.Config) int { return int((t.Wait + t.Retry - 1) / t.Retry) }

// warmKey is a lock that nobody asks for: taking it once is how scripts are
// loaded, for which these libraries have no function.
func warmKey(sku string) string { return "warm:" + sku }

// stock is the counter and the name of the lock, as in scheme lock.
type stock struct {
	schemes.HashStock
	schemes.Leased
}

// guarded runs the read, the check and the decrement while a lock is held.
// acquire answers how to release it, or nil when it was not free. An error of
// acquire leaves open whether the lock was taken; the stock was not touched.
func (s stock) guarded(ctx context.Context, env schemes.Env, req schemes.Request, acquire func() (release func() error, err error)) (model.Outcome, error) {
	if err := schemes.CheckQuantity(req); err != nil {
		return model.Failed, err
	}
	release, err := acquire()
	switch {
	case err != nil:
		return model.Failed, err
	case release == nil:
		return model.Busy, nil
	}
	outcome, err := s.ReadThenDecrement(ctx, env, req)
	return outcome, errors.Join(err, release())
}

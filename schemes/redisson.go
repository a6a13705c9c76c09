package schemes

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"
)

//go:embed redisson_acquire.lua
var redissonAcquireSource string

//go:embed redisson_release.lua
var redissonReleaseSource string

//go:embed redisson_renew.lua
var redissonRenewSource string

// AcquireScript is the name of the script that asks for a lock. It answers nil
// when the lock was taken, else what remains of another holder's lease in ms.
const AcquireScript = "lock-acquire"

var (
	redissonAcquire = named(AcquireScript, redissonAcquireSource)
	redissonRelease = named("lock-release", redissonReleaseSource)
	redissonRenew   = named("lock-renew", redissonRenewSource)
)

// ErrNotHolder is Redisson's IllegalMonitorStateException: the lock is not
// held by who wants to release it.
var ErrNotHolder = errors.New("lock is not held by this holder")

// watchdogLease is Redisson's lockWatchdogTimeout, the lease of a lock taken
// without one; it is renewed every third of it.
const watchdogLease = 30 * time.Second

// RedissonLock speaks the protocol of Redisson's RLock: a hash from holder to
// hold count with an expiry, waiters subscribed to an unlock channel, release
// by the holder only, and a watchdog that renews the lock when it was taken
// without a lease. It is not safe for use by several goroutines.
type RedissonLock struct {
	client *redis.Client
	key    string
	holder string
	// watchdog is the lease of a lock taken without one.
	watchdog time.Duration
	// retry caps the sleep between two attempts; 0 leaves it to the unlock
	// message and to the end of the present lease.
	retry time.Duration

	lease       time.Duration // of the hold, for the release script
	stopRenewal context.CancelFunc
	renewed     chan struct{} // closed when the watchdog has ended
}

// NewRedissonLock makes a handle on the lock called name for one holder,
// "client-uuid:thread-id" in Redisson's terms. It sends nothing.
func NewRedissonLock(client *redis.Client, name, holder string, cfg Config) *RedissonLock {
	watchdog := watchdogLease
	if cfg.Lease > 0 {
		watchdog = cfg.Lease
	}
	return &RedissonLock{client: client, key: name, holder: holder, watchdog: watchdog, retry: cfg.Retry}
}

func (l *RedissonLock) channel() string { return "redisson_lock__channel:{" + l.key + "}" }

// loadRedisson loads the lock's scripts.
func loadRedisson(ctx context.Context, client *redis.Client) error {
	for _, s := range []*redis.Script{redissonAcquire, redissonRelease, redissonRenew} {
		if err := s.Load(ctx, client).Err(); err != nil {
			return err
		}
	}
	return nil
}

// attempt tries once. taken is false when another holder has the lock; ttl is
// then what remains of that holder's lease.
func (l *RedissonLock) attempt(ctx context.Context, lease time.Duration) (taken bool, ttl time.Duration, err error) {
	ms, err := redissonAcquire.Run(ctx, l.client, []string{l.key}, lease.Milliseconds(), l.holder).Int64()
	switch {
	case errors.Is(err, redis.Nil):
		return true, 0, nil
	case err != nil:
		return false, 0, err
	}
	return false, time.Duration(ms) * time.Millisecond, nil
}

// TryLock waits at most wait for the lock. With lease 0 the lock lives as long
// as the watchdog renews it. false without an error means that the wait is
// over; after an error it is not known whether the lock was taken.
func (l *RedissonLock) TryLock(ctx context.Context, wait, lease time.Duration) (bool, error) {
	asked := lease
	if lease == 0 {
		lease = l.watchdog
	}
	deadline := time.Now().Add(wait)
	taken, _, err := l.attempt(ctx, lease)
	if err != nil {
		return false, err
	}
	if !taken {
		if time.Until(deadline) <= 0 {
			return false, nil
		}
		if taken, err = l.await(ctx, deadline, lease); err != nil || !taken {
			return false, err
		}
	}
	l.lease = lease
	if asked == 0 {
		l.renew(lease)
	}
	return true, nil
}

// await subscribes to the unlock channel and tries again after every message,
// at the end of the holder's lease, and after the retry interval.
func (l *RedissonLock) await(ctx context.Context, deadline time.Time, lease time.Duration) (bool, error) {
	sub := l.client.Subscribe(ctx, l.channel())
	defer sub.Close()
	if _, err := sub.Receive(ctx); err != nil { // the confirmation
		return false, fmt.Errorf("subscribe to %s: %w", l.channel(), err)
	}
	unlocked := sub.Channel(redis.WithChannelHealthCheckInterval(0))
	for {
		taken, ttl, err := l.attempt(ctx, lease)
		if err != nil || taken {
			return taken, err
		}
		left := time.Until(deadline)
		if left <= 0 {
			return false, nil
		}
		pause := left
		if ttl >= 0 && ttl < pause {
			pause = ttl
		}
		if l.retry > 0 && l.retry < pause {
			pause = l.retry
		}
		timer := time.NewTimer(pause)
		select {
		case <-unlocked:
			timer.Stop()
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false, ctx.Err()
		}
		if time.Until(deadline) <= 0 {
			return false, nil
		}
	}
}

// renew starts the watchdog: every third of the lease it extends the lock, and
// it ends when the lock is released or turns out to be somebody else's.
func (l *RedissonLock) renew(lease time.Duration) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	l.stopRenewal, l.renewed = cancel, ended
	go func() {
		defer close(ended)
		ticker := time.NewTicker(lease / 3)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			held, err := redissonRenew.Run(ctx, l.client, []string{l.key}, lease.Milliseconds(), l.holder).Int64()
			if err == nil && held == 0 {
				return
			}
			// After an error the next tick tries again, as Redisson does.
		}
	}()
}

// Unlock releases one hold. It is ErrNotHolder when the lock was never taken
// by this holder, or its lease has ended.
func (l *RedissonLock) Unlock(ctx context.Context) error {
	if l.stopRenewal != nil {
		l.stopRenewal()
		<-l.renewed
		l.stopRenewal = nil
	}
	lease := l.lease
	if lease == 0 {
		lease = l.watchdog
	}
	keys := []string{l.key, l.channel()}
	err := redissonRelease.Run(ctx, l.client, keys, "0", lease.Milliseconds(), l.holder).Err()
	if errors.Is(err, redis.Nil) {
		return fmt.Errorf("%w: %s", ErrNotHolder, l.key)
	}
	return err
}

// Leased is embedded by the schemes that take the SKU's lock.
type Leased struct{}

func lockKey(sku string) string { return "lock:" + sku }

// LockKey is that lock.
func (Leased) LockKey(sku string) string { return lockKey(sku) }

// LeaseKeys is the lock of the SKU.
func (Leased) LeaseKeys(sku string) []string { return []string{lockKey(sku)} }

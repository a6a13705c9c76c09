package schemes

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Its time stands still unless a test moves it.
func startRedis(t *testing.T) (*miniredis.Miniredis, *redis.Client) {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	require.NoError(t, loadRedisson(t.Context(), client))
	return server, client
}

const lease = 10 * time.Second

func handle(client *redis.Client, holder string) *RedissonLock {
	return NewRedissonLock(client, "lock:1", holder, Config{Lease: lease})
}

func take(t *testing.T, l *RedissonLock, wait, lease time.Duration) bool {
	t.Helper()
	taken, err := l.TryLock(t.Context(), wait, lease)
	require.NoError(t, err)
	return taken
}

func TestTheLockKeepsOthersOutUntilItsHolderReleasesIt(t *testing.T) {
	_, client := startRedis(t)
	a, b := handle(client, "a:1"), handle(client, "b:1")
	require.True(t, take(t, a, 0, lease))
	require.False(t, take(t, b, 0, lease))
	require.ErrorIs(t, b.Unlock(t.Context()), ErrNotHolder)
	require.NoError(t, a.Unlock(t.Context()))
	require.True(t, take(t, b, 0, lease))
}

func TestTheLockIsReentrantForOneHolderAndFreeAfterAsManyReleases(t *testing.T) {
	_, client := startRedis(t)
	a, b := handle(client, "a:1"), handle(client, "b:1")
	require.True(t, take(t, a, 0, lease))
	require.True(t, take(t, a, 0, lease))
	require.NoError(t, a.Unlock(t.Context()))
	require.False(t, take(t, b, 0, lease))
	require.NoError(t, a.Unlock(t.Context()))
	require.True(t, take(t, b, 0, lease))
	require.ErrorIs(t, a.Unlock(t.Context()), ErrNotHolder)
}

func TestAnotherThreadOfTheSameClientIsAnotherHolder(t *testing.T) {
	_, client := startRedis(t)
	require.True(t, take(t, handle(client, "a:1"), 0, lease))
	require.False(t, take(t, handle(client, "a:2"), 0, lease))
}

func TestTheLeaseEndsByItselfAndTheLateReleaseIsRefused(t *testing.T) {
	server, client := startRedis(t)
	a, b := handle(client, "a:1"), handle(client, "b:1")
	require.True(t, take(t, a, 0, lease))
	server.FastForward(lease - time.Millisecond)
	require.False(t, take(t, b, 0, lease))
	server.FastForward(time.Millisecond)
	require.True(t, take(t, b, 0, lease))
	require.ErrorIs(t, a.Unlock(t.Context()), ErrNotHolder)
	require.False(t, take(t, handle(client, "c:1"), 0, lease), "b's lock is still there")
}

func TestAWaiterIsWokenByTheRelease(t *testing.T) {
	server, client := startRedis(t)
	a, b := handle(client, "a:1"), handle(client, "b:1")
	require.True(t, take(t, a, 0, lease))
	taken := make(chan bool)
	go func() {
		// An hour of patience, and the lease never ends: only the message helps.
		got, _ := b.TryLock(context.Background(), time.Hour, lease)
		taken <- got
	}()
	require.Eventually(t, func() bool { return server.PubSubNumSub(a.channel())[a.channel()] == 1 }, time.Minute, time.Millisecond)
	require.NoError(t, a.Unlock(t.Context()))
	require.True(t, <-taken)
}

func TestAWaiterGivesUpWhenItsPatienceEnds(t *testing.T) {
	_, client := startRedis(t)
	require.True(t, take(t, handle(client, "a:1"), 0, lease))
	began := time.Now()
	require.False(t, take(t, handle(client, "b:1"), 20*time.Millisecond, lease))
	require.GreaterOrEqual(t, time.Since(began), 20*time.Millisecond)
}

func TestTheWatchdogRenewsALockTakenWithoutALeaseUntilItIsReleased(t *testing.T) {
	server, client := startRedis(t)
	a := NewRedissonLock(client, "lock:1", "a:1", Config{Lease: 300 * time.Millisecond})
	require.True(t, take(t, a, 0, 0))
	server.FastForward(200 * time.Millisecond)
	require.Equal(t, 100*time.Millisecond, server.TTL("lock:1"))
	require.Eventually(t, func() bool { return server.TTL("lock:1") == 300*time.Millisecond }, time.Minute, time.Millisecond, "nobody renewed it")
	require.NoError(t, a.Unlock(t.Context()))
	select {
	case <-a.renewed:
	default:
		t.Fatal("the watchdog outlives the lock")
	}
	require.False(t, server.Exists("lock:1"))
}

func TestTheWatchdogEndsWhenTheLockIsSomebodyElses(t *testing.T) {
	server, client := startRedis(t)
	a := NewRedissonLock(client, "lock:1", "a:1", Config{Lease: 30 * time.Millisecond})
	require.True(t, take(t, a, 0, 0))
	server.Del("lock:1")
	require.True(t, take(t, handle(client, "b:1"), 0, lease))
	<-a.renewed
	require.Equal(t, lease, server.TTL("lock:1"), "b's lease is b's")
	require.ErrorIs(t, a.Unlock(t.Context()), ErrNotHolder)
}

func TestALockTakenWithALeaseHasNoWatchdog(t *testing.T) {
	_, client := startRedis(t)
	a := handle(client, "a:1")
	require.True(t, take(t, a, 0, lease))
	require.Nil(t, a.renewed)
}

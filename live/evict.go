package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// evict has Redis drop the key of the stock to free memory.
func (f *serverFault) evict(ctx context.Context) error {
	if len(f.loaded) == 0 {
		f.nothing("loading made no key")
		return nil
	}
	name := slices.Min(f.loaded)
	there, err := f.redis.client.Exists(ctx, name).Result()
	if err != nil {
		return err
	}
	if there == 0 {
		f.nothing("%s was not there to be evicted", name)
		return nil
	}
	policy := "allkeys-random"
	if f.sham {
		policy = "volatile-ttl" // the key has no time to live
	}
	dropped, err := f.redis.evict(ctx, policy, name)
	if errors.Is(err, errNotEvicted) {
		f.doubt("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	f.prove("redis evicted %s, the %d. key that it dropped", name, dropped)
	return nil
}

// Sizes for an eviction, in bytes. The room is small beside what Redis itself
// takes, and holds so few fillers that the key's turn soon comes.
const (
	evictionRoom = 256 << 10
	fillerSize   = 8 << 10
	fillers      = 4000 // written at most; the key's turn comes after some dozens
)

// errNotEvicted: Redis was short of memory and kept the key.
var errNotEvicted = errors.New("redis did not evict the key")

// evict makes Redis short of memory, under a policy by which it may drop the key,
// until it has dropped the one named, and gives the memory back. Others that it
// drops meanwhile are put back, so that exactly one is missing. It says how many
// keys Redis dropped until then.
func (o *ownRedis) evict(ctx context.Context, policy, name string) (dropped int64, err error) {
	was, err := o.look(ctx)
	if err != nil {
		return 0, err
	}
	if dropped, err = o.press(ctx, policy, name); err != nil {
		return dropped, err
	}
	for other, k := range was.keys {
		left := time.Duration(0)
		if !k.ends.IsZero() {
			if left = time.Until(k.ends); left <= 0 {
				continue
			}
		}
		if other == name {
			continue
		}
		err := o.client.Restore(ctx, other, left, k.value).Err()
		if err != nil && !redis.HasErrorPrefix(err, "BUSYKEY") { // it was not dropped
			return dropped, fmt.Errorf("put %s back: %w", other, err)
		}
	}
	there, err := o.client.Exists(ctx, name).Result()
	if err == nil && there != 0 {
		err = fmt.Errorf("%s is there again", name)
	}
	return dropped, err
}

// press makes Redis short of memory under a policy until it has dropped a key,
// and then gives the memory back. The error is errNotEvicted when it drops
// others only, or none; and with noeviction what it answered a write.
func (o *ownRedis) press(ctx context.Context, policy, name string) (dropped int64, err error) {
	before, err := o.number(ctx, o.client, "stats", "Stats", "evicted_keys")
	if err != nil {
		return 0, err
	}
	used, err := o.number(ctx, o.client, "memory", "Memory", "used_memory")
	if err != nil {
		return 0, err
	}
	err = errors.Join(
		o.client.ConfigSet(ctx, "maxmemory-policy", policy).Err(),
		o.client.ConfigSet(ctx, "maxmemory", fmt.Sprint(used+evictionRoom)).Err())
	if err != nil {
		return 0, err
	}
	filler := strings.Repeat("x", fillerSize)
	there := int64(1)
	var refused error
	n := 0
	for ; n < fillers && there == 1 && refused == nil; n++ {
		refused = o.client.Set(ctx, fmt.Sprintf("stockproof:filler:%d", n), filler, 0).Err()
		if there, err = o.client.Exists(ctx, name).Result(); err != nil {
			return 0, err
		}
	}
	after, err := o.number(ctx, o.client, "stats", "Stats", "evicted_keys")
	if err != nil {
		return 0, err
	}
	if err := o.relieve(ctx, n); err != nil {
		return 0, err
	}
	if there == 1 {
		return after - before, errors.Join(errNotEvicted, refused)
	}
	return after - before, nil
}

// relieve gives the memory back.
func (o *ownRedis) relieve(ctx context.Context, n int) error {
	if err := o.client.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		return err
	}
	for i := range n {
		if err := o.client.Unlink(ctx, fmt.Sprintf("stockproof:filler:%d", i)).Err(); err != nil {
			return err
		}
	}
	return o.client.ConfigSet(ctx, "maxmemory-policy", "noeviction").Err()
}

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/faults"
)

// restartRedis kills Redis and starts it with what its persistence kept.
func (f *serverFault) restartRedis(ctx context.Context) error {
	o := f.redis
	was, err := o.look(ctx)
	if err != nil {
		return err
	}
	run, err := o.runID(ctx)
	if err != nil {
		return err
	}
	var want moment
	switch {
	case f.p.Setting == faults.NoPersistence && len(was.keys) == 0:
		f.nothing("redis held no key")
		return nil
	case f.p.Setting == faults.Snapshot && o.same(unexpired(was), unexpired(o.tie)):
		f.nothing("redis held what the snapshot has")
		return nil
	}
	switch f.p.Setting {
	case faults.NoPersistence:
		err = o.comeBackWith(ctx, "rm -f dump.rdb")
	case faults.Snapshot:
		want, err = o.tie, o.comeBackWith(ctx, ":")
	case faults.AOFEverySec:
		if len(o.writes) == 0 {
			f.doubt("there was no write to lose")
			return nil
		}
		want = o.writes[len(o.writes)-1]
		tail := was.aof - want.aof
		if f.sham {
			tail = 0
		}
		err = o.comeBackWith(ctx, cutTail(tail))
	case faults.AOFAlways:
		want, err = was, o.comeBackWith(ctx, ":")
	default:
		err = fmt.Errorf("no restart with %q", f.p.Setting)
	}
	if err != nil {
		return err
	}
	again, err := o.runID(ctx)
	if err != nil {
		return err
	}
	is, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case run == again:
		f.doubt("the same redis answers")
	case f.p.Setting != faults.AOFAlways && o.same(unexpired(was), unexpired(is)):
		f.doubt("redis restarted and lost nothing")
	case !o.same(unexpired(want), unexpired(is)):
		return fmt.Errorf("redis came back with %v, not with %v", slices.Collect(maps.Keys(is.keys)), slices.Collect(maps.Keys(want.keys)))
	default:
		f.prove("another redis answers, with %d of %d keys as they were", kept(was, is), len(was.keys))
	}
	return nil
}

// kept counts the keys that are the same in two moments.
func kept(was, is moment) (n int) {
	for name, k := range was.keys {
		if now, ok := is.keys[name]; ok && now.holds == k.holds {
			n++
		}
	}
	return n
}

// unexpired is a moment without what has come to its end since.
func unexpired(m moment) moment {
	// A key of Redis lives up to a millisecond longer than its time.
	soon := time.Now().Add(waitMargin)
	alive := moment{keys: map[string]key{}, aof: m.aof}
	for name, k := range m.keys {
		if k.ends.IsZero() || k.ends.After(soon) {
			alive.keys[name] = k
		}
	}
	return alive
}

func (o *ownRedis) runID(ctx context.Context) (string, error) {
	info, err := o.client.InfoMap(ctx, "server").Result()
	if err != nil {
		return "", fmt.Errorf("look at redis: %w", err)
	}
	return info["Server"]["run_id"], nil
}

// fallBehind cuts the link to the replica. A replica that is merely frozen, the
// sham, is behind only until it goes on: the kernel keeps the writes for it.
func (f *serverFault) fallBehind(ctx context.Context) (err error) {
	if !f.sham {
		return f.redis.keep(ctx)
	}
	if f.redis.tie, err = f.redis.look(ctx); err == nil {
		err = f.redis.server.Replica.Freeze(ctx)
	}
	return err
}

// takeOver makes the replica, whose link was cut, the primary. The old one comes
// back as its replica, which throws its own writes away.
func (f *serverFault) takeOver(ctx context.Context) error {
	o := f.redis
	was, err := o.look(ctx)
	if err != nil {
		return err
	}
	if f.sham {
		err = errors.Join(o.server.Freeze(ctx), o.server.Replica.Thaw(ctx), o.catchUp(ctx, was))
	}
	if err = errors.Join(err, o.comeBack(ctx, 0)); err != nil {
		return err
	}
	if f.sham {
		err = o.server.Thaw(ctx)
	}
	is, lookErr := o.look(ctx)
	if err = errors.Join(err, lookErr); err != nil {
		return err
	}
	switch {
	case o.same(unexpired(was), unexpired(is)):
		f.doubt("the replica took over and lacked nothing")
		return nil
	case !o.same(unexpired(o.tie), unexpired(is)):
		return fmt.Errorf("the replica took over with %v, not with what it had when its link was cut", slices.Collect(maps.Keys(is.keys)))
	}
	if err := o.server.Rejoin(ctx, o.server.Replica); err != nil {
		return fmt.Errorf("the old primary does not rejoin: %w", err)
	}
	left, err := o.lookAt(ctx, o.server.Addr)
	if err != nil {
		return err
	}
	if !o.same(unexpired(is), unexpired(left)) {
		return errors.New("the old primary has rejoined and still has writes of its own")
	}
	f.prove("the replica leads, with %d of %d keys as they were, and the old primary has thrown its own away", kept(was, is), len(was.keys))
	return nil
}

// lookAt reads what another server holds.
func (o *ownRedis) lookAt(ctx context.Context, addr string) (moment, error) {
	other := &ownRedis{client: redis.NewClient(&redis.Options{Addr: addr})}
	defer other.client.Close()
	return other.look(ctx)
}

// catchUp waits until the replica holds what its primary did: what it was sent
// while it stood still is there for it.
func (o *ownRedis) catchUp(ctx context.Context, want moment) error {
	for {
		is, err := o.lookAt(ctx, o.server.Replica.Addr)
		if err != nil || o.same(unexpired(want), unexpired(is)) {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refuseWrites lets the primary notice that its replica is gone: it refuses every
// write from now on. min-replicas-to-write counts a replica that is merely silent
// until min-replicas-max-lag is over; that time is the one until this is called.
func (o *ownRedis) refuseWrites(ctx context.Context) error {
	if err := o.client.ConfigSet(ctx, "min-replicas-to-write", "1").Err(); err != nil {
		return err
	}
	for {
		err := o.client.Set(ctx, "stockproof:refused", 1, 0).Err()
		if redis.HasErrorPrefix(err, "NOREPLICAS") {
			return nil
		}
		if err = errors.Join(err, o.client.Del(ctx, "stockproof:refused").Err()); err != nil {
			return err
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// frozenMark is written by a client that leaves while the server stands still.
const frozenMark = "stockproof:frozen"

// freeze stops the server and has a client of its own send a command and leave.
// Only a server that really stands still executes it afterwards: one that reads
// on, as with CLIENT PAUSE, drops it with its client.
func (f *serverFault) freeze(ctx context.Context) error {
	f.acting.Lock()
	defer f.acting.Unlock()
	var err error
	if f.sham {
		err = f.redis.client.Do(ctx, "CLIENT", "PAUSE", "300", "ALL").Err()
	} else {
		err = f.redis.server.Freeze(ctx)
	}
	if err != nil {
		return err
	}
	f.mu.Lock()
	f.frozen, f.struck = true, true
	f.mu.Unlock()
	return f.redis.depart(ctx)
}

// depart sends a command and leaves.
func (o *ownRedis) depart(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp4", o.server.Addr)
	if err != nil {
		return fmt.Errorf("leave a command: %w", err)
	}
	_, err = conn.Write([]byte("SET " + frozenMark + " 1\r\n"))
	return errors.Join(err, conn.Close())
}

// thaw lets the server go on.
func (f *serverFault) thaw(ctx context.Context) error {
	// What it had kept is executed, and looked at, as soon as it goes on.
	f.mu.Lock()
	f.frozen = false
	f.mu.Unlock()
	var err error
	if f.sham {
		err = f.redis.client.Ping(ctx).Err() // is answered when it is over
	} else {
		err = f.redis.server.Thaw(ctx)
	}
	if err != nil {
		return err
	}
	executed, err := f.redis.departed(ctx)
	switch {
	case err != nil:
		return err
	case executed:
		f.prove("a command whose client had left was executed afterwards")
	default:
		f.doubt("a command whose client had left was dropped: redis did not stand still")
	}
	return nil
}

// departed says whether the command of depart was executed. Who asks connected
// later than it, and the server takes both in that order.
func (o *ownRedis) departed(ctx context.Context) (bool, error) {
	late := redis.NewClient(&redis.Options{Addr: o.server.Addr})
	defer late.Close()
	n, err := late.Del(ctx, frozenMark).Result()
	return n == 1, err
}

// flushScripts empties the script cache.
func (f *serverFault) flushScripts(ctx context.Context) error {
	const section, title, field = "memory", "Memory", "number_of_cached_scripts"
	was, err := f.redis.number(ctx, f.redis.client, section, title, field)
	if err != nil {
		return err
	}
	if err := f.redis.client.ScriptFlush(ctx).Err(); err != nil {
		return err
	}
	is, err := f.redis.number(ctx, f.redis.client, section, title, field)
	if err == nil && was > 0 && is == 0 {
		f.prove("%d scripts are forgotten", was)
	} else {
		f.doubt("there were %d scripts, there are %d", was, is)
	}
	return err
}

// expire lets the keys that were loaded come to an end.
func (f *serverFault) expire(ctx context.Context) error {
	if len(f.loaded) == 0 {
		f.nothing("loading made no key")
		return nil
	}
	there, err := f.redis.client.Exists(ctx, f.loaded...).Result()
	if err != nil {
		return err
	}
	if there == 0 {
		f.nothing("none of %v was there to expire", f.loaded)
		return nil
	}
	if err := f.redis.expire(ctx, f.loaded); err != nil {
		return err
	}
	f.prove("%d keys have expired", there)
	return nil
}

// expire lets keys reach the end of a time to live, and waits until they are gone.
func (o *ownRedis) expire(ctx context.Context, names []string) error {
	for _, name := range names {
		if err := o.client.PExpire(ctx, name, time.Millisecond).Err(); err != nil {
			return err
		}
	}
	for {
		left, err := o.client.Exists(ctx, names...).Result()
		if err != nil || left == 0 {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
}

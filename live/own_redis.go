package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/live/servers"
	"stockproof/live/wire"
)

// ownRedis is a Redis for one replay or one run at a time.
type ownRedis struct {
	loss   Loss // how it is set up to lose writes
	server *servers.Redis
	relay  *wire.Relay
	client *redis.Client // past the relay
	now    string        // address of who serves
	grain  time.Duration // stretched

	// writes are the writes of the replay so far, latest last: for each, where
	// the server stood before it.
	writes []moment
	last   moment
	lines  []int  // of the writes, beside writes
	line   int    // under way
	tie    moment // what was kept
	// keepAt is the step, from 0, before which the moment to come back to is kept
	// by Snapshot and StaleReplica.
	keepAt int
	kept   bool
}

// moment is a state of the server.
type moment struct {
	keys map[string]key
	aof  int64 // length of the append-only file, in bytes
}

// key is what Redis holds under a name.
type key struct {
	value string    // as DUMP gives it
	holds string    // what counts of it, where DUMP tells more: the order of a set, when a consumer was last seen
	ends  time.Time // zero when it lives on
}

// startOwnRedis hands out a Redis that loses writes in one way: one that another
// replay is done with, or a new one.
func (w *World) startOwnRedis(ctx context.Context, loss Loss) (*ownRedis, error) {
	w.spareMu.Lock()
	for i, o := range w.spare {
		if o.loss == loss {
			w.spare = slices.Delete(w.spare, i, i+1)
			w.spareMu.Unlock()
			return o, nil
		}
	}
	w.spareMu.Unlock()
	options := servers.RedisOptions{Replica: loss == StaleReplica}
	if loss == AOFTail {
		options.Persistence = servers.AOFAlways
	}
	server, err := w.Servers.StartRedis(ctx, options)
	if err != nil {
		return nil, err
	}
	relay, err := wire.NewRelay(server.Addr)
	if err != nil {
		return nil, errors.Join(err, server.Close())
	}
	o := &ownRedis{loss: loss, server: server, relay: relay}
	o.serves(server.Addr)
	return o, nil
}

// giveBack keeps a Redis for the next if it can be made as good as new.
func (w *World) giveBack(ctx context.Context, o *ownRedis, inOrder bool) {
	if inOrder && o.renew(ctx) == nil {
		w.spareMu.Lock()
		w.spare = append(w.spare, o)
		w.spareMu.Unlock()
		return
	}
	// Its servers end with the set at the latest.
	_ = o.close()
}

// renew makes it as good as new.
func (o *ownRedis) renew(ctx context.Context) error {
	if o.loss == StaleReplica {
		if err := o.server.Promote(ctx); err != nil {
			return err
		}
		// Scripts are not replicated, and neither is that they are forgotten.
		replica := redis.NewClient(&redis.Options{Addr: o.server.Replica.Addr})
		defer replica.Close()
		if err := errors.Join(o.server.Replica.Rejoin(ctx, o.server.Node), replica.ScriptFlush(ctx).Err()); err != nil {
			return err
		}
		o.relay.Hold()
		if err := o.relay.Resume(o.server.Addr); err != nil {
			return err
		}
		o.serves(o.server.Addr)
	}
	o.writes, o.lines, o.last, o.tie, o.kept, o.keepAt = nil, nil, moment{}, moment{}, false, 0
	return errors.Join(o.client.ConfigSet(ctx, "min-replicas-to-write", "0").Err(), o.client.FlushAll(ctx).Err(), o.client.ScriptFlush(ctx).Err())
}

// closeSpares ends the servers kept for further replays and runs.
func (w *World) closeSpares() error {
	var errs []error
	for _, o := range w.spare {
		errs = append(errs, o.close())
	}
	for _, o := range w.sparePG {
		errs = append(errs, o.close())
	}
	return errors.Join(errs...)
}

func (o *ownRedis) close() error {
	return errors.Join(o.relay.Close(), o.client.Close(), o.server.Close())
}

// serves makes addr the one that is asked.
func (o *ownRedis) serves(addr string) {
	if o.client != nil {
		_ = o.client.Close() // its connections lead nowhere
	}
	o.now, o.client = addr, redis.NewClient(&redis.Options{Addr: addr})
}

// before notes where the server stands before a step.
func (o *ownRedis) before(ctx context.Context, line int) (err error) {
	o.line = line
	if line == o.keepAt && o.loss != AOFTail {
		if err := o.keep(ctx); err != nil {
			return err
		}
	}
	o.last, err = o.look(ctx)
	return err
}

// keep keeps the moment to come back to: in a snapshot, or in a replica whose link
// is cut.
func (o *ownRedis) keep(ctx context.Context) (err error) {
	if o.kept = true; o.loss == Snapshot {
		err = o.client.Save(ctx).Err()
	} else {
		err = o.server.Replica.CutLink(ctx, o.server.Node)
	}
	if err == nil {
		o.tie, err = o.look(ctx)
	}
	if err != nil {
		return fmt.Errorf("keep a moment of redis: %w", err)
	}
	return nil
}

// after notes whether the step was a write: it is one when what Redis holds is
// not the same any more.
func (o *ownRedis) after(ctx context.Context) error {
	now, err := o.look(ctx)
	if err != nil {
		return err
	}
	if !o.same(o.last, now) {
		o.writes, o.lines = append(o.writes, o.last), append(o.lines, o.line)
	}
	return nil
}

// same says whether two moments hold the same; the ends of leases may differ by
// what the two looks were late.
func (o *ownRedis) same(a, b moment) bool {
	return maps.EqualFunc(a.keys, b.keys, func(a, b key) bool {
		return a.holds == b.holds && a.ends.IsZero() == b.ends.IsZero() && (o.grain == 0 || a.ends.Sub(b.ends).Abs() < o.grain/2)
	})
}

// look reads everything that Redis holds, which is a handful of keys.
func (o *ownRedis) look(ctx context.Context) (moment, error) {
	m := moment{keys: map[string]key{}}
	names, err := o.client.Keys(ctx, "*").Result()
	if err != nil {
		return m, fmt.Errorf("look at redis: %w", err)
	}
	for _, name := range names {
		value, err := o.client.Dump(ctx, name).Result()
		if errors.Is(err, redis.Nil) {
			continue // its lease has just ended
		}
		left, ttlErr := o.client.PTTL(ctx, name).Result()
		if err := errors.Join(err, ttlErr); err != nil {
			return m, fmt.Errorf("look at redis: %w", err)
		}
		holds, err := o.holds(ctx, name, value)
		if err != nil {
			return m, fmt.Errorf("look at redis: %w", err)
		}
		k := key{value: value, holds: holds}
		if left > 0 {
			k.ends = time.Now().Add(left)
		}
		m.keys[name] = k
	}
	if o.loss == AOFTail {
		if m.aof, err = o.number(ctx, o.client, "persistence", "Persistence", "aof_current_size"); err != nil {
			return m, err
		}
	}
	return m, nil
}

// holds is what counts of a key's value.
func (o *ownRedis) holds(ctx context.Context, name, dump string) (string, error) {
	switch kind, err := o.client.Type(ctx, name).Result(); {
	case err != nil:
		return "", err
	case kind == "set":
		members, err := o.client.SMembers(ctx, name).Result()
		slices.Sort(members)
		return strings.Join(members, "\n"), err
	case kind == "stream":
		entries, err := o.client.XRange(ctx, name, "-", "+").Result()
		if err != nil {
			return "", err
		}
		groups, err := o.client.XInfoGroups(ctx, name).Result()
		text := fmt.Sprint(entries)
		for _, g := range groups {
			text += fmt.Sprint(g.Name, g.Pending, g.LastDeliveredID)
		}
		return text, err
	}
	return dump, nil
}

func (o *ownRedis) number(ctx context.Context, client *redis.Client, section, title, field string) (int64, error) {
	info, err := client.InfoMap(ctx, section).Result()
	if err != nil {
		return 0, fmt.Errorf("look at redis: %w", err)
	}
	n, err := strconv.ParseInt(info[title][field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("look at redis: %s: %w", field, err)
	}
	return n, nil
}

// lose makes Redis come back without the last n writes.
func (o *ownRedis) lose(ctx context.Context, n int) (err error) {
	keep := o.writes[len(o.writes)-n]
	at := o.lines[len(o.lines)-n]
	var now moment
	if now, err = o.look(ctx); err != nil {
		return err
	}
	if o.loss != AOFTail && (!o.kept || o.keepAt != at) {
		return fmt.Errorf("the moment to come back to is step %d, what was kept is step %d", at+1, o.keepAt+1)
	}
	if err := o.comeBack(ctx, now.aof-keep.aof); err != nil {
		return err
	}
	o.writes, o.lines = o.writes[:len(o.writes)-n], o.lines[:len(o.lines)-n]
	return nil
}

// comeBack makes Redis die and come back: without the last bytes of its
// append-only file, from its snapshot, or as its replica. The clients'
// connections are kept by the relay.
func (o *ownRedis) comeBack(ctx context.Context, tail int64) (err error) {
	if o.loss != StaleReplica {
		return o.comeBackWith(ctx, cutTail(tail))
	}
	o.relay.Hold()
	back := o.server.Addr
	defer func() { err = errors.Join(err, o.relay.Resume(back)) }()
	if err = o.server.Replica.Promote(ctx); err == nil {
		back = o.server.Replica.Addr
		o.serves(back)
	}
	return err
}

// comeBackWith kills Redis, runs a script in its folder, and starts it again.
func (o *ownRedis) comeBackWith(ctx context.Context, script string) (err error) {
	o.relay.Hold()
	defer func() { err = errors.Join(err, o.relay.Resume(o.server.Addr)) }()
	if err = o.server.Restart(ctx, script); err == nil {
		o.serves(o.server.Addr)
	}
	return err
}

// cutTail is the script that takes bytes off the end of an append-only file: what
// a machine that dies had not on disk. SIGKILL alone loses nothing, whatever
// appendfsync says, because the kernel has the bytes.
func cutTail(bytes int64) string {
	if bytes == 0 {
		return ":"
	}
	return fmt.Sprintf(`f=$(ls appendonlydir/*.incr.aof appendonly.aof 2>/dev/null | tail -n 1); s=$(wc -c < "$f"); truncate -s $((s - %d)) "$f"`, bytes)
}

package live

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/faults/schedule"
	"stockproof/live/servers"
	"stockproof/live/wire"
)

// Loss is a way for Redis to lose writes that it had acknowledged, and its
// scripts.
type Loss string

// The losses. In each the clients' connections are kept by a relay, see
// wire.Relay: a schedule says what the server does, not who notices.
const (
	// AOFTail kills the server, takes the writes off the end of its append-only
	// file, and starts it again: the file had not reached the disk.
	AOFTail Loss = "aof-tail"
	// Snapshot saves an RDB file before the writes, later kills the server, and
	// starts it from the file.
	Snapshot Loss = "snapshot"
	// StaleReplica cuts the link to the replica before the writes, and later
	// promotes the replica. The old server is out of everybody's reach.
	StaleReplica Loss = "stale-replica"
)

// Losses lists them; the first is the default.
func Losses() []Loss { return []Loss{AOFTail, Snapshot, StaleReplica} }

// needsOwnRedis says whether a schedule does something to Redis that no other
// run may see.
func needsOwnRedis(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Steps, func(st schedule.Step) bool {
		return st.Kind == schedule.Loses || st.Kind == schedule.Flush
	})
}

// ownRedis is a Redis for one replay at a time.
type ownRedis struct {
	loss   Loss
	server *servers.Redis
	relay  *wire.Relay
	client *redis.Client // past the relay
	now    string        // address of who serves
	grain  time.Duration // stretched

	// writes are the writes of the replay so far, latest last: for each, where
	// the server stood before it.
	writes []moment
	last   moment
	lines  []int // of the writes, beside writes
	line   int   // under way
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

// giveBack keeps a Redis for the next replay if it is as good as new.
func (w *World) giveBack(ctx context.Context, o *ownRedis, inOrder bool) {
	if inOrder && o.loss != StaleReplica {
		if err := errors.Join(o.client.FlushAll(ctx).Err(), o.client.ScriptFlush(ctx).Err()); err == nil {
			o.writes, o.lines, o.last, o.kept = nil, nil, moment{}, false
			w.spareMu.Lock()
			w.spare = append(w.spare, o)
			w.spareMu.Unlock()
			return
		}
	}
	// Its servers end with the set at the latest.
	_ = o.close()
}

// closeSpares ends the Redis servers kept for further replays.
func (w *World) closeSpares() error {
	var errs []error
	for _, o := range w.spare {
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
		if o.kept = true; o.loss == Snapshot {
			err = o.client.Save(ctx).Err()
		} else {
			err = o.cutLink(ctx)
		}
		if err != nil {
			return fmt.Errorf("keep a moment of redis: %w", err)
		}
	}
	o.last, err = o.look(ctx)
	return err
}

// after notes whether the step was a write: it is one when what Redis holds is
// not the same any more.
func (o *ownRedis) after(ctx context.Context) error {
	now, err := o.look(ctx)
	if err != nil {
		return err
	}
	same := func(a, b key) bool {
		return a.value == b.value && a.ends.IsZero() == b.ends.IsZero() && a.ends.Sub(b.ends).Abs() < o.grain/2
	}
	if !maps.EqualFunc(o.last.keys, now.keys, same) {
		o.writes, o.lines = append(o.writes, o.last), append(o.lines, o.line)
	}
	return nil
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
		k := key{value: value}
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

// cutLink leaves the replica with what it has, once it has everything so far.
func (o *ownRedis) cutLink(ctx context.Context) error {
	replica := redis.NewClient(&redis.Options{Addr: o.server.Replica.Addr})
	defer replica.Close()
	sent, err := o.number(ctx, o.client, "replication", "Replication", "master_repl_offset")
	if err != nil {
		return err
	}
	for {
		got, err := o.number(ctx, replica, "replication", "Replication", "slave_repl_offset")
		if err != nil {
			return err
		}
		if got >= sent {
			break
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	// A master that nobody can reach: the link is down, and it knows.
	return replica.Do(ctx, "REPLICAOF", "127.0.0.1", "1").Err()
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
	o.relay.Hold()
	back := o.server.Addr
	defer func() { err = errors.Join(err, o.relay.Resume(back)) }()
	switch o.loss {
	case AOFTail:
		err = o.server.Restart(ctx, fmt.Sprintf(
			`f=$(ls appendonlydir/*.incr.aof appendonly.aof 2>/dev/null | tail -n 1); s=$(wc -c < "$f"); truncate -s $((s - %d)) "$f"`, now.aof-keep.aof))
	case Snapshot:
		err = o.server.Restart(ctx, ":")
	case StaleReplica:
		back = o.server.Replica.Addr
	}
	if err != nil {
		return err
	}
	if o.serves(back); o.loss == StaleReplica {
		if err := o.client.Do(ctx, "REPLICAOF", "NO", "ONE").Err(); err != nil {
			return err
		}
	}
	o.writes, o.lines = o.writes[:len(o.writes)-n], o.lines[:len(o.lines)-n]
	return nil
}

// lose makes Redis lose the writes of a line.
func (r *replay) lose(ctx context.Context, i int) error {
	st := &r.s.Steps[i]
	if n := len(r.own.writes); st.Lost > n {
		return r.s.Diverges(i, fmt.Sprintf("%d writes to lose", st.Lost), strconv.Itoa(n))
	}
	r.kept = r.own.lines[len(r.own.lines)-st.Lost]
	err := r.own.lose(ctx, st.Lost)
	r.env.Redis = r.own.client
	return err
}

package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stockproof/faults"
	"stockproof/faults/schedule"
)

// happensToRedis says whether a line is something that befalls Redis, and so needs
// one of the replay's own.
func happensToRedis(st *schedule.Step) bool {
	switch st.Kind {
	case schedule.Loses, schedule.Flush, schedule.FallsBehind, schedule.Refuses, schedule.TakesOver,
		schedule.Freezes, schedule.Thaws, schedule.Evicts, schedule.Expires:
		return true
	case schedule.Restarts:
		return st.Server == schedule.Redis
	}
	return false
}

// lossOf is how the Redis of a replay has to be set up for a line; empty where it
// does not matter.
func lossOf(st *schedule.Step) Loss {
	switch {
	case st.Kind == schedule.FallsBehind:
		return StaleReplica
	case st.Kind == schedule.Restarts && st.Server == schedule.Redis:
		if st.Setting == faults.AOFEverySec || st.Setting == faults.AOFAlways {
			return AOFTail
		}
		return Snapshot
	}
	return ""
}

// setUp is how the Redis of a replay has to be set up, and why that is impossible.
//
// A client that has given up a command has cut its connection, and a server that
// stands still answers no login on another one: so each client can give up only
// one command while Redis stands still.
func setUp(s *schedule.Schedule, asked Loss) (loss Loss, reasons []string) {
	gaveUp := map[string]bool{}
	for i := range s.Steps {
		st := &s.Steps[i]
		want := lossOf(st)
		switch {
		case st.Kind == schedule.Thaws:
			clear(gaveUp)
		case st.Fault == faults.RedisFreeze && gaveUp[st.Client]:
			reasons = append(reasons, fmt.Sprintf("line %d: redis stands still and lets client %s not log in on another connection", st.Note.Line, st.Client))
		case st.Fault == faults.RedisFreeze:
			gaveUp[st.Client] = true
		case want == "" || loss == want:
		case loss != "":
			reasons = append(reasons, fmt.Sprintf("line %d: a redis set up for %s cannot also be set up for %s", st.Note.Line, loss, want))
		default:
			loss = want
		}
	}
	_, ofDatabase := setUpDatabase(s)
	reasons = append(reasons, ofDatabase...)
	if loses := slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return st.Kind == schedule.Loses }); loses && loss != "" && loss != asked {
		reasons = append(reasons, "redis loses writes in two ways")
	}
	if s.Times.Replicas > 0 && loss != StaleReplica {
		if loss != "" {
			reasons = append(reasons, "clients wait for a replica, and redis is set up without")
		}
		loss = StaleReplica
	}
	if loss == "" {
		loss = asked
	}
	return loss, reasons
}

// befalls makes happen what befalls Redis at a line, and holds what became of it
// against the line.
func (r *replay) befalls(ctx context.Context, i int) error {
	st, o := &r.s.Steps[i], r.own
	var err error
	switch st.Kind {
	case schedule.Restarts:
		if restartsDatabase(st) {
			return r.restartDatabase(ctx, i)
		}
		err = r.restart(ctx, i)
	case schedule.FallsBehind:
		o.kept, o.writes, o.lines = false, nil, nil
		err = o.keep(ctx)
	case schedule.Refuses:
		err = o.refuseWrites(ctx)
	case schedule.TakesOver:
		if n := len(o.writes); n != st.Lost {
			return r.s.Diverges(i, fmt.Sprintf("a replica that lacks %d writes", st.Lost), strconv.Itoa(n))
		}
		if err = o.comeBack(ctx, 0); err == nil {
			err = r.holds(ctx, o.tie)
		}
		o.writes, o.lines = nil, nil
	case schedule.Freezes:
		// The proxies keep what clients send and leave, in the place of the kernel, so
		// that it arrives in the order of the schedule.
		r.frozen, err = true, o.server.Freeze(ctx)
	case schedule.Thaws:
		r.frozen, err = false, o.server.Thaw(ctx)
		for _, c := range r.clients {
			c.touched = i
		}
	case schedule.Evicts:
		name := strings.ReplaceAll(st.Key, r.s.SKU, r.sku)
		_, err = o.evict(ctx, "allkeys-random", name)
	case schedule.Expires:
		err = o.expire(ctx, slices.Sorted(slices.Values(r.loaded)))
	}
	r.env.Redis = o.client
	return err
}

// restart kills Redis and starts it with what its persistence kept.
func (r *replay) restart(ctx context.Context, i int) error {
	st, o := &r.s.Steps[i], r.own
	was, err := o.look(ctx)
	if err != nil {
		return err
	}
	switch st.Setting {
	case faults.NoPersistence:
		err = errors.Join(o.comeBackWith(ctx, "rm -f dump.rdb"), r.holds(ctx, moment{}))
		o.writes, o.lines = nil, nil
	case faults.Snapshot:
		err = errors.Join(o.comeBackWith(ctx, ":"), r.holds(ctx, o.tie))
		o.writes, o.lines = nil, nil
	case faults.AOFAlways:
		err = errors.Join(o.comeBackWith(ctx, ":"), r.holds(ctx, was))
	case faults.AOFEverySec:
		n := len(o.writes)
		if st.Lost > n {
			return r.s.Diverges(i, fmt.Sprintf("%d writes to lose", st.Lost), strconv.Itoa(n))
		}
		want := o.writes[n-st.Lost]
		if err = o.lose(ctx, st.Lost); err == nil {
			err = r.holds(ctx, want)
		}
	}
	return err
}

// holds proves that Redis holds what it should after it came back.
func (r *replay) holds(ctx context.Context, want moment) error {
	is, err := r.own.look(ctx)
	if err == nil && !r.own.same(unexpired(want), unexpired(is)) {
		err = fmt.Errorf("redis came back with %d keys, which are not the %d it was to have", len(is.keys), len(want.keys))
	}
	return err
}

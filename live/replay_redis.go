package live

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"stockproof/faults/schedule"
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
	return s.Times.Replicas > 0 || slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return happensToRedis(&st) })
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

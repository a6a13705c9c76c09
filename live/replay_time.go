package live

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// Stretching of a schedule's times.
const (
	// realLease is what a schedule's lease is stretched to at least: a few hundred
	// times as long as a step takes.
	realLease = 900 * time.Millisecond
	// longestHold is how long a client may stand still and find its connections
	// as they were: go-redis gives a reply 3 s.
	longestHold = 2500 * time.Millisecond
)

// stretches are the factors to try, one after another, while the machine is too
// slow. A schedule with a scheme's published times is run with them.
func stretches(s *schedule.Schedule) []int {
	if s.Times.Lease <= 0 {
		return []int{1, 1}
	}
	first := int((realLease + s.Times.Lease - 1) / s.Times.Lease)
	var longest time.Duration // that somebody stands still
	for _, st := range s.Steps {
		if st.Kind == schedule.Wait && slices.Contains(s.Faults(), faults.ClientPause) {
			longest = max(longest, st.Wait)
		}
	}
	factors := []int{1, 2, 4, 4}
	if needsOwnRedis(s) {
		factors = []int{2, 8, 20} // a restart takes a while, in a container above all
	}
	most := first * factors[len(factors)-1]
	if longest > 0 {
		most = max(1, min(most, int(longestHold/longest)))
	}
	var list []int
	for _, f := range factors {
		list = append(list, min(f*first, most))
	}
	return list
}

// grain is the smallest time by which two moments of the schedule differ.
func grain(s *schedule.Schedule) time.Duration {
	g := time.Duration(0)
	add := func(d time.Duration) {
		for d > 0 {
			g, d = d, g%d
		}
	}
	for _, d := range []time.Duration{s.Times.Lease, s.Times.Wait, s.Times.Retry, s.Times.Record} {
		add(d)
	}
	for _, st := range s.Steps {
		add(st.Wait)
	}
	if g == 0 {
		g = time.Second // nothing of a schedule's own: the published times are whole seconds
	}
	return g
}

func total(s *schedule.Schedule) (d time.Duration) {
	for _, st := range s.Steps {
		d += st.Wait
	}
	return d + s.Times.Lease
}

// drift is how much later it is than the schedule says.
func (r *replay) drift() time.Duration { return time.Since(r.began) - r.passed - r.wasted }

// judged turns a divergence into ErrTooSlow when it may be the machine's doing:
// it is so late that what the schedule keeps apart may have met.
func (r *replay) judged(err error) error { return r.judgedAt(err, r.drift()) }

func (r *replay) judgedAt(err error, drift time.Duration) error {
	var diverged *schedule.DivergenceError
	if limit := r.scaled(r.grain) / 2; errors.As(err, &diverged) && drift > limit && r.timed() {
		return fmt.Errorf("%w: %s behind, and then %w", ErrTooSlow, drift.Round(time.Millisecond), err)
	}
	return err
}

// timed says whether time plays any part in the schedule.
func (r *replay) timed() bool {
	_, leases := r.entry.Scheme.(schemes.Leaser)
	_, records := r.entry.Scheme.(schemes.Recorder)
	return leases || records
}

func (r *replay) scaled(d time.Duration) time.Duration { return time.Duration(r.stretch) * d }

// times the clients run with. Their patience is a little shorter than the
// schedule's: where it ends at the same moment as a lease, it ends first.
func (r *replay) times() schemes.Config {
	t := schemes.Config{Lease: r.scaled(r.s.Times.Lease), Wait: r.scaled(r.s.Times.Wait), Retry: r.scaled(r.s.Times.Retry), Record: r.scaled(r.s.Times.Record), Replicas: r.s.Times.Replicas}
	if t.Wait > 0 {
		t.Wait -= r.scaled(r.grain) / 4
	}
	return t
}

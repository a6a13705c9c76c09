// Package cost measures what schemes cost: round trips and commands, throughput,
// latency and the server's time, on real servers with nothing in between.
package cost

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"stockproof/model"
)

// ask sends request n, from 0, over a connection, and answers its outcome.
type ask func(ctx context.Context, connection, n int) model.Outcome

// load is what came of one run of a driver.
type load struct {
	took     time.Duration // from the first request to the last answer
	requests int
	outcomes map[model.Outcome]int
	latency  *hdrhistogram.Histogram // nanoseconds
}

// Latencies from a microsecond to a minute, to three digits.
const (
	shortest = int64(time.Microsecond)
	longest  = int64(time.Minute)
	digits   = 3
)

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(shortest, longest, digits) }

func record(h *hdrhistogram.Histogram, d time.Duration) {
	// What is out of range is a minute or more: it stays visible as one.
	_ = h.RecordValue(min(max(int64(d), shortest), longest))
}

// errNoAnswer: a run that was called off is no measurement.
var errNoAnswer = errors.New("the run was called off")

// closed is the closed loop: each connection sends its next request after the
// answer to the one before, until so many were sent in all.
func closed(ctx context.Context, connections, requests int, do ask) (load, error) {
	var next atomic.Int64
	return drive(ctx, connections, requests, func(ctx context.Context, c int, out *load) {
		for ctx.Err() == nil {
			n := int(next.Add(1)) - 1
			if n >= requests {
				return
			}
			began := time.Now()
			out.outcomes[do(ctx, c, n)]++
			record(out.latency, time.Since(began))
		}
	})
}

// open is the open loop: requests are due at a fixed rate, whatever becomes of
// those before them, and wait for a free connection. A latency counts from the
// moment a request was due, so that the time it waited is in it: a driver that
// counts from when it was sent leaves out what a slow server does to everybody
// behind (coordinated omission; G. Tene, "How NOT to Measure Latency").
func open(ctx context.Context, connections, requests int, rate float64, do ask) (load, error) {
	began := time.Now()
	due := func(n int) time.Time { return began.Add(time.Duration(float64(n) / rate * float64(time.Second))) }
	var next atomic.Int64
	return drive(ctx, connections, requests, func(ctx context.Context, c int, out *load) {
		for ctx.Err() == nil {
			n := int(next.Add(1)) - 1
			if n >= requests {
				return
			}
			at := due(n)
			if wait := time.Until(at); wait > 0 {
				select {
				case <-time.After(wait):
				case <-ctx.Done():
					return
				}
			}
			out.outcomes[do(ctx, c, n)]++
			record(out.latency, time.Since(at))
		}
	})
}

// drive runs a loop on each connection and adds up.
func drive(ctx context.Context, connections, requests int, loop func(context.Context, int, *load)) (load, error) {
	parts := make([]load, connections)
	var running sync.WaitGroup
	began := time.Now()
	for c := range parts {
		parts[c] = load{outcomes: map[model.Outcome]int{}, latency: newHistogram()}
		running.Go(func() { loop(ctx, c, &parts[c]) })
	}
	running.Wait()
	all := load{took: time.Since(began), outcomes: map[model.Outcome]int{}, latency: newHistogram()}
	for _, p := range parts {
		for outcome, n := range p.outcomes {
			all.outcomes[outcome] += n
			all.requests += n
		}
		all.latency.Merge(p.latency)
	}
	if ctx.Err() != nil {
		return all, errors.Join(errNoAnswer, context.Cause(ctx))
	}
	return all, nil
}

// rate is requests answered per second.
func (l load) rate() float64 { return float64(l.requests) / l.took.Seconds() }

// share of the requests with one of some outcomes.
func (l load) share(of ...model.Outcome) float64 {
	n := 0
	for _, o := range of {
		n += l.outcomes[o]
	}
	return float64(n) / float64(max(1, l.requests))
}

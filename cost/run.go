package cost

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"github.com/redis/go-redis/v9"
	"golang.org/x/perf/benchmath"

	"stockproof/evidence"
	"stockproof/model"
	"stockproof/schemes"
)

// counted is how many requests round trips and commands are counted over.
const counted = 200

// Bounds of one repetition, in requests: too few have no percentiles, too many keep
// others waiting.
const (
	fewest = 200
	most   = 2_000_000
)

// samples are what the repetitions of one line came to.
type samples struct {
	rate, busy, conflicts, errors, redis, postgres []float64
	latency, bystander                             latencies
	requests                                       uint64
}

// latencies are percentiles of each repetition, in microseconds.
type latencies struct{ p50, p90, p99, p999 []float64 }

func (l *latencies) add(h *hdrhistogram.Histogram) {
	us := func(p float64) float64 { return float64(h.ValueAtQuantile(p)) / float64(time.Microsecond) }
	l.p50, l.p90 = append(l.p50, us(50)), append(l.p90, us(90))
	l.p99, l.p999 = append(l.p99, us(99)), append(l.p999, us(99.9))
}

func (l *latencies) middle() evidence.Percentiles {
	return evidence.Percentiles{P50: middle(l.p50).Median, P90: middle(l.p90).Median, P99: middle(l.p99).Median, P999: middle(l.p999).Median}
}

// Measure measures everything on servers of its own. Repetitions of all lines are
// interleaved, in another order each time, so that a machine that becomes slower
// does so for everybody. An error comes without costs: half a table invites
// comparisons that nothing supports.
func Measure(ctx context.Context, o Options) (costs []evidence.Cost, err error) {
	lines, err := o.plan()
	if err != nil {
		return nil, err
	}
	s, err := start(ctx, o.Backend)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors()))
	steps, done := len(lines)*(o.Repetitions+1), 0
	step := func(l line) {
		done++
		if o.Progress != nil {
			o.Progress(done, steps, l.cost.Scheme+" × "+l.cost.Name())
		}
	}
	pilots := map[string]float64{}
	counts := map[string]Counts{}
	for i := range lines {
		l := &lines[i]
		if err := s.prepare(ctx, l, o, pilots, counts); err != nil {
			return nil, fmt.Errorf("%s × %s: %w", l.cost.Scheme, l.cost.Name(), err)
		}
		step(*l)
	}
	seen := make([]samples, len(lines))
	order := rand.New(rand.NewPCG(1, 2)) // the same order each time it is run
	for range o.Repetitions {
		for _, i := range order.Perm(len(lines)) {
			l := lines[i]
			if err := s.repeat(ctx, l, o, pilots[l.pilot()], &seen[i]); err != nil {
				return nil, fmt.Errorf("%s × %s: %w", l.cost.Scheme, l.cost.Name(), err)
			}
			step(l)
		}
	}
	for i, l := range lines {
		costs = append(costs, seen[i].sum(l.cost, o.Repetitions))
	}
	return costs, nil
}

// processors is how many threads may run clients: half of the machine's. With all of
// them the clients take turns with the servers they measure: on two cores go-redis
// then sends a quarter fewer requests.
func processors() int { return max(1, runtime.NumCPU()/2) }

// prepare counts messages and finds out about how fast a line is.
func (s *servers) prepare(ctx context.Context, l *line, o Options, pilots map[string]float64, counts map[string]Counts) error {
	key := fmt.Sprintf("%T %s %s %v", l.entry.Scheme, l.cost.Scheme, l.cost.Settings["script_ms"], l.cost.Futile)
	c, known := counts[key]
	if !known {
		var err error
		n := counted
		if l.cost.Experiment == "script-length" {
			n = 20
		}
		if c, err = s.count(ctx, l.entry, n, l.cost.Futile); err != nil {
			return err
		}
		counts[key] = c
	}
	l.cost.RoundTrips, l.cost.Commands = c.RoundTrips, c.Commands
	rate, known := pilots[l.pilot()]
	if !known && !l.raw {
		pilot := *l
		pilot.share, pilot.cost.Futile, pilot.bystander = 0, 0, false
		run, err := s.once(ctx, pilot, fewest, 0)
		if err != nil {
			return err
		}
		// Fast ones have not come to speed after so few.
		if n := int(run.load.rate() * o.Duration.Seconds() / 2); n > 2*fewest {
			if run, err = s.once(ctx, pilot, min(n, most), 0); err != nil {
				return err
			}
		}
		rate = run.load.rate()
		pilots[l.pilot()] = rate
	}
	if l.share > 0 {
		offered := float64(int(rate * l.share))
		l.cost.OfferedRate = &offered
	}
	return nil
}

// measured is one run.
type measured struct {
	load            load
	redis, postgres float64                 // processor time, of one core
	bystander       *hdrhistogram.Histogram // nil where none stood by
}

// processor is the time that the servers of a scheme have used, in seconds.
func (s *servers) processor(ctx context.Context, e schemes.Entry, r *redis.Client) (redis, postgres float64, err error) {
	if redis, err = cpu(ctx, r); err != nil || !e.Stores.SQL {
		return redis, 0, err
	}
	used, err := s.set.PostgresTime(ctx)
	return redis, used.Seconds(), err
}

// once makes one run of so many requests.
func (s *servers) once(ctx context.Context, l line, requests int, rate float64) (m measured, err error) {
	addr := s.set.RedisAddr
	server := s.redis
	if l.aof != "" {
		if addr, err = s.with(ctx, l.aof); err != nil {
			return m, err
		}
		server = redisAt(addr)
		defer server.Close()
	}
	skus := l.cost.SKUs
	each := (sellable(requests, l.cost.Futile) + int64(skus) - 1) / int64(skus)
	sale, err := s.begin(ctx, l.entry, l.times, addr, l.cost.Connections, skus, each)
	if err != nil {
		return m, err
	}
	defer sale.end()
	redisBefore, postgresBefore, err := s.processor(ctx, l.entry, server)
	if err != nil {
		return m, err
	}
	var by *bystander
	if l.bystander {
		if by, err = standBy(ctx, addr); err != nil {
			return m, err
		}
		m.bystander = by.latency
	}
	if rate > 0 {
		m.load, err = open(ctx, l.cost.Connections, requests, rate, sale.deduct)
	} else {
		m.load, err = closed(ctx, l.cost.Connections, requests, sale.deduct)
	}
	if by != nil {
		err = errors.Join(err, by.stop())
	}
	if err != nil {
		return m, err
	}
	redisAfter, postgresAfter, err := s.processor(ctx, l.entry, server)
	if err != nil {
		return m, err
	}
	took := m.load.took.Seconds()
	m.redis, m.postgres = (redisAfter-redisBefore)/took, (postgresAfter-postgresBefore)/took
	if err := s.set.Alive(); err != nil {
		return m, err
	}
	return m, sale.check(ctx, m.load)
}

// repeat makes one repetition of a line and notes it.
func (s *servers) repeat(ctx context.Context, l line, o Options, pilot float64, out *samples) error {
	rate := 0.0
	if l.cost.OfferedRate != nil {
		rate = *l.cost.OfferedRate
		pilot = rate
	}
	// In a run that is shorter than the patience nobody can lose it.
	duration := max(o.Duration, 4*l.times.Wait)
	requests := min(max(int(pilot*duration.Seconds()), fewest), most)
	if l.raw {
		// It tells times in whole milliseconds.
		requests = max(requests, min(int(pilot), most))
		rps, err := s.redisBenchmark(ctx, l.cost.Connections, requests)
		if err != nil {
			return err
		}
		out.rate = append(out.rate, rps)
		out.requests += uint64(requests)
		return nil
	}
	run, err := s.once(ctx, l, requests, rate)
	if err != nil {
		return err
	}
	out.rate = append(out.rate, run.load.rate())
	out.latency.add(run.load.latency)
	if run.bystander != nil {
		out.bystander.add(run.bystander)
	}
	busy := run.load.share(model.Busy)
	conflicts := 0.0
	if _, waits := l.entry.Scheme.(schemes.Leaser); !waits {
		busy, conflicts = 0, busy // who waits for nobody is busy only where another wrote first
	}
	out.busy, out.conflicts = append(out.busy, busy), append(out.conflicts, conflicts)
	out.errors = append(out.errors, run.load.share(model.Failed, model.Unknown))
	out.redis, out.postgres = append(out.redis, run.redis), append(out.postgres, run.postgres)
	out.requests += uint64(run.load.requests)
	return nil
}

// confidence of the intervals.
const confidence = 0.95

// middle is the median of the repetitions, with the interval in which the true one
// lies with the confidence above, whatever the distribution; with too few
// repetitions for that, it is their range.
func middle(values []float64) evidence.Interval {
	if len(values) == 0 {
		return evidence.Interval{}
	}
	sample := benchmath.NewSample(values, &benchmath.DefaultThresholds)
	sum := benchmath.AssumeNothing.Summary(sample, confidence)
	i := evidence.Interval{Median: sum.Center, Low: sum.Lo, High: sum.Hi}
	// An interval of order statistics may lie outside of a few samples: infinite.
	i.Low, i.High = max(i.Low, sample.Values[0]), min(i.High, sample.Values[len(sample.Values)-1])
	return i
}

func (x *samples) sum(c evidence.Cost, repetitions int) evidence.Cost {
	c.Requests, c.Repetitions = x.requests, repetitions
	c.Throughput = middle(x.rate)
	c.Latency = x.latency.middle()
	if len(x.bystander.p50) > 0 {
		by := x.bystander.middle()
		c.Bystander = &by
	}
	c.Busy, c.Conflicts, c.Errors = middle(x.busy).Median, middle(x.conflicts).Median, middle(x.errors).Median
	c.ServerCPU, c.PostgresCPU = middle(x.redis).Median, middle(x.postgres).Median
	return c
}

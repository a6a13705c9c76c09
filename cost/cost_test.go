package cost

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/model"
	"stockproof/schemes"
)

// What a request costs in messages is what the code says, to the last one.
func TestRoundTripsAndCommandsAreThoseOfTheCode(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers) {
		for _, c := range []struct {
			scheme string
			futile float64
			want   Counts
		}{
			{"hincrby", 0, Counts{1, 1}},
			{"hincrby", 0.5, Counts{1.5, 1.5}},
			{"hincrby", 1, Counts{2, 2}},
			{"lua-string", 0, Counts{1, 3}}, // EVALSHA, GET, DECRBY
			{"lua-string", 1, Counts{1, 2}},
			{"db-version", 0, Counts{5, 0}}, // BEGIN, SELECT, UPDATE, INSERT, COMMIT
			{"sql-first", 0, Counts{4, 0}},
			{"journal-first", 0, Counts{1, 6}},
		} {
			t.Run(fmt.Sprintf("%s/%v", c.scheme, c.futile), func(t *testing.T) {
				e, err := schemes.ByName(c.scheme)
				require.NoError(t, err)
				got, err := s.count(t.Context(), e, 20, c.futile)
				require.NoError(t, err)
				require.Equal(t, c.want, got)
			})
		}
	})
}

// liar answers sold and takes nothing.
type liar struct{ slowScript }

func (liar) Name() string { return "liar" }

func (liar) Deduct(context.Context, schemes.Env, schemes.Request) (model.Outcome, error) {
	return model.Sold, nil
}

func TestARunWhoseSalesDoNotAddUpIsRefused(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers) {
		e := schemes.Entry{Scheme: liar{}, Stores: schemes.Stores{Redis: true}}
		_, err := s.once(t.Context(), line{entry: e, cost: evidence.Cost{Connections: 2, SKUs: 1}}, 10, 0)
		require.ErrorIs(t, err, ErrUnsound)
		require.ErrorContains(t, err, "10 on sale, 10 sold and 10 left")
		_, err = s.once(t.Context(), line{entry: e, cost: evidence.Cost{Connections: 2, SKUs: 1, Futile: 0.5}}, 10, 0)
		require.ErrorContains(t, err, "sold 10 of 5")
		_, err = s.count(t.Context(), e, 10, 0)
		require.ErrorIs(t, err, ErrUnsound)
	})
}

func TestAFewLinesAreMeasuredAndSettleWhatTheyCan(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers) {
		o := Defaults()
		o.Backend, o.Duration, o.Connections, o.Futile, o.Rates = s.set.Backend, 5*time.Millisecond, []int{2}, []float64{0, 0.99}, []float64{0.2}
		o.Schemes, o.Experiments = []string{"hincrby", "lua-hash"}, []string{"closed-loop", "open-loop", "skus", "aof"}
		steps := 0
		o.Progress = func(done, of int, _ string) { steps++; require.LessOrEqual(t, done, of) }
		costs, err := Measure(t.Context(), o)
		require.NoError(t, err)
		require.Len(t, costs, 2*(2+1+1+2))
		require.Equal(t, len(costs)*6, steps)
		for _, c := range costs {
			require.Equal(t, 5, c.Repetitions, "%+v", c)
			require.GreaterOrEqual(t, c.Requests, uint64(5*fewest))
			require.LessOrEqual(t, c.Throughput.Low, c.Throughput.Median)
			require.LessOrEqual(t, c.Throughput.Median, c.Throughput.High)
			require.Positive(t, c.Latency.P50)
			require.LessOrEqual(t, c.Latency.P50, c.Latency.P999)
			require.Zero(t, c.Errors)
		}
		said := map[string]evidence.ClaimVerdict{}
		facts, err := claims.Facts(t.Context())
		require.NoError(t, err)
		for _, c := range claims.Judge(evidence.Report{Cost: costs, Facts: facts}) {
			said[c.ID] = c.Verdict
		}
		require.Equal(t, evidence.ClaimConfirmed, said["A3"])
		require.Equal(t, evidence.ClaimConfirmed, said["A5"])

		dir := t.TempDir()
		plots, err := Plot(dir, costs)
		require.NoError(t, err)
		require.Equal(t, []string{filepath.Join(dir, "throughput.svg"), filepath.Join(dir, "latency.svg")}, plots)
		for _, path := range plots {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Contains(t, string(text), "lua-hash")
		}
	})
}

// A script that runs for five milliseconds stands in the way of everybody who uses the
// same Redis, not only of who sent it.
func TestABystanderWaitsForALongScript(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers) {
		p50 := func(ms string) time.Duration {
			l := line{entry: slow(ms), bystander: true, cost: evidence.Cost{Connections: 4, SKUs: 1}}
			run, err := s.once(t.Context(), l, 40, 0)
			require.NoError(t, err)
			return time.Duration(run.bystander.ValueAtQuantile(50))
		}
		require.Greater(t, p50("5"), 5*time.Millisecond, "at least the one that runs while it asks")
		run, err := s.once(t.Context(), line{entry: slow("0"), cost: evidence.Cost{Connections: 1, SKUs: 1}}, 1, 0)
		require.NoError(t, err)
		require.Nil(t, run.bystander, "nobody stood by")
		l := line{entry: slow("0"), bystander: true, cost: evidence.Cost{Connections: 1, SKUs: 1}}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.once(ctx, l, 1, 0)
		require.Error(t, err, "one without an answer is no measurement")
	})
}

func TestTheProcessorTimeOfBothServersIsCounted(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers) {
		for _, c := range []struct {
			scheme          string
			redis, postgres bool
		}{{"lua-string", true, false}, {"sql-conditional", false, true}} {
			e, err := schemes.ByName(c.scheme)
			require.NoError(t, err)
			run, err := s.once(t.Context(), line{entry: e, cost: evidence.Cost{Connections: 4, SKUs: 1}}, 2000, 0)
			require.NoError(t, err)
			require.Equal(t, c.redis, run.redis > 0.05, "%s: Redis %v", c.scheme, run.redis)
			require.Equal(t, c.postgres, run.postgres > 0.05, "%s: PostgreSQL %v", c.scheme, run.postgres)
		}
	})
}

// A server that stands still once makes everybody behind wait, and an open loop has
// to say so; a closed one, or one that counts from when it sent, sees one slow
// request.
func TestTheOpenLoopCountsTheTimeThatRequestsWaited(t *testing.T) {
	const requests, rate = 50, 10_000.0
	last := time.Duration(requests / rate * float64(time.Second))
	stands := func(began time.Time) ask {
		return func(_ context.Context, _, n int) model.Outcome {
			if n == 0 {
				time.Sleep(time.Until(began.Add(4 * last))) // when all others are long due
			}
			return model.Sold
		}
	}
	opened, err := open(t.Context(), 1, requests, rate, stands(time.Now()))
	require.NoError(t, err)
	require.GreaterOrEqual(t, opened.latency.Min(), int64(2*last), "each of them waited for the first")
	require.Equal(t, requests, opened.requests)

	sent, err := closed(t.Context(), 1, requests, stands(time.Now()))
	require.NoError(t, err)
	require.Less(t, sent.latency.ValueAtQuantile(90), int64(2*last), "what counts from the sending leaves the waiting out")
}

func TestARunThatIsCalledOffIsNoMeasurement(t *testing.T) {
	why := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	do := func(_ context.Context, _, n int) model.Outcome {
		if n == 3 {
			cancel(why)
		}
		return model.Sold
	}
	_, err := closed(ctx, 2, 1000, do)
	require.ErrorIs(t, err, errNoAnswer)
	require.ErrorIs(t, err, why)
	_, err = open(ctx, 2, 1000, 1, do)
	require.ErrorIs(t, err, why)
}

func TestTheMiddleIsAMedianWithWhatTheRepetitionsSupport(t *testing.T) {
	require.Equal(t, evidence.Interval{}, middle(nil))
	require.Equal(t, evidence.Interval{Median: 3, Low: 1, High: 5}, middle([]float64{5, 1, 3, 2, 4}))
	many := middle([]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20})
	require.Greater(t, many.Low, 1.0)
	require.Less(t, many.High, 20.0)
}

func TestTheRateOfRedisBenchmarkIsRead(t *testing.T) {
	rate, err := benchmarkRate("\"test\",\"rps\",\"avg_latency_ms\"\n\"EVALSHA a 1 b\",\"66666.67\",\"0.1\"\n")
	require.NoError(t, err)
	require.InDelta(t, 66666.67, rate, 0.001)
	for _, bad := range []string{"", "\"test\",\"rps\"\n", "a,b\nc,d\n", "\"test\",\"rps\"\n\"x\",\"fast\"\n"} {
		_, err := benchmarkRate(bad)
		require.Error(t, err, bad)
	}
}

func FuzzBenchmarkRate(f *testing.F) {
	f.Add("\"test\",\"rps\"\n\"EVALSHA\",\"1.5\"\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = benchmarkRate(text) })
}

// thief answers that it does not know, and takes two units.
type thief struct{ slowScript }

func (thief) Name() string { return "thief" }

func (thief) Deduct(ctx context.Context, env schemes.Env, req schemes.Request) (model.Outcome, error) {
	return model.Unknown, env.Redis.DecrBy(ctx, slowKey(req.SKU), 2*req.Qty).Err()
}

// An answer that leaves it open whether a unit was taken excuses one unit, not any
// number of them.
func TestUnknownAnswersExcuseNoMoreUnitsThanTheyAre(t *testing.T) {
	onServers(t, func(t *testing.T, s *servers) {
		e := schemes.Entry{Scheme: thief{}, Stores: schemes.Stores{Redis: true}}
		_, err := s.once(t.Context(), line{entry: e, cost: evidence.Cost{Connections: 2, SKUs: 1}}, 10, 0)
		require.ErrorIs(t, err, ErrUnsound)
		require.ErrorContains(t, err, "10 on sale, 0 sold and -10 left")
	})
}

package sqlsubset_test

import (
	"context"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/engines/sqlsubset/fidelity"
)

var seed = flag.Uint64("seed", 20261130, "seed of the orders drawn where there are too many")

// perSet bounds the orders run of one set; above it they are drawn.
const perSet = 40

// orders answers in which orders the sessions of a set may take their turns:
// all when there are few enough, else n different ones drawn.
func orders(sessions [][]fidelity.Step, n int, rnd *rand.Rand) [][]int {
	var all [][]int
	left := make([]int, len(sessions))
	for i, s := range sessions {
		left[i] = len(s)
	}
	var walk func(prefix []int) bool
	walk = func(prefix []int) bool {
		done := true
		for i := range left {
			if left[i] > 0 {
				done = false
				left[i]--
				ok := walk(append(prefix, i))
				left[i]++
				if !ok {
					return false
				}
			}
		}
		if done {
			all = append(all, append([]int(nil), prefix...))
		}
		return len(all) <= 20_000
	}
	walk(nil)
	if len(all) > n {
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:n]
	}
	return all
}

func openServer(t testing.TB) *fidelity.Server {
	t.Helper()
	connect := realPostgres(t)
	ctx := context.Background()
	s, err := fidelity.Open(ctx, connect)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close(ctx)) })
	return s
}

func TestEngineAnswersAsARealServerDoes(t *testing.T) {
	s := openServer(t)
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(*seed, 0))
	schedules, statements, blocked := 0, 0, 0
	for _, p := range programSets {
		t.Run(p.name, func(t *testing.T) {
			for _, order := range orders(p.sessions, perSet, rnd) {
				db, tables, err := fidelity.Prepare(ctx, s, p.schema(), p.setup)
				require.NoError(t, err)
				sent, waits, err := fidelity.Run(ctx, s, db, tables, p.sessions, order)
				require.NoError(t, err, "order %v, seed %d", order, *seed)
				schedules, statements, blocked = schedules+1, statements+sent, blocked+waits
			}
		})
	}
	t.Logf("%d schedules, %d statements, %d looks at a blocked session, %d polls, seed %d", schedules, statements, blocked, s.Polls, *seed)
	require.Greater(t, schedules, 400, "too few schedules to mean anything")
	require.Greater(t, blocked, 300, "too few waits to mean anything")
}

func TestARealServerConvictsEveryMutantOfTheEngine(t *testing.T) {
	s := openServer(t)
	ctx := context.Background()
	for name, mutant := range sqlsubset.Mutants {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(*seed, 0))
			for _, p := range programSets {
				for _, order := range orders(p.sessions, 20, rnd) {
					db, tables, err := fidelity.Prepare(ctx, s, p.schema(), p.setup)
					require.NoError(t, err)
					db.Break(mutant)
					_, _, err = fidelity.Run(ctx, s, db, tables, p.sessions, order)
					var different *fidelity.DifferenceError
					if err != nil {
						require.ErrorAs(t, err, &different)
						t.Logf("convicted by %q, order %v: %v", p.name, order, err)
						return
					}
				}
			}
			t.Fatalf("no schedule tells the mutant from a real server, seed %d", *seed)
		})
	}
}

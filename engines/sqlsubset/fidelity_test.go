package sqlsubset_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/engines/sqlsubset/fidelity"
)

var seed = flag.Uint64("seed", 20261130, "seed of the orders drawn where there are too many")
var drawn = flag.Int("drawn", 150, "programs drawn")

// perSet bounds the orders run of one set; above it they are drawn.
const perSet = 24

// orders answers in which orders the sessions of a set may take their turns:
// all when there are few enough, else n different ones drawn.
func (p programSet) orders(n int, rnd *rand.Rand) [][]int {
	sessions := p.sessions
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
	if p.first != nil {
		all = append([][]int{p.first}, all...)
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
			for _, order := range p.orders(perSet, rnd) {
				db, tables, err := fidelity.Prepare(ctx, s, p.schema(), p.setup)
				require.NoError(t, err)
				sent, waits, err := fidelity.Run(ctx, s, db, tables, p.sessions, order)
				require.NoError(t, err, "order %v, seed %d", order, *seed)
				schedules, statements, blocked = schedules+1, statements+sent, blocked+waits
			}
		})
	}
	t.Logf("%d schedules, %d statements, %d looks at a blocked session, %d polls, seed %d", schedules, statements, blocked, s.Polls, *seed)
	require.Greater(t, schedules, 300, "too few schedules to mean anything")
	require.Greater(t, blocked, 200, "too few waits to mean anything")
}

// ingredients of drawn programs: everything that can get into another's way on
// two rows of goods, and on sales with its two unique constraints.
var ingredients = []fidelity.Step{
	do(condTake, 1, "a"), do(condTake, 1, "b"), do(condTake, 2, "a"), do(seedRestock, 1, "b"), do(seedTake, 1, "a", 0),
	do(lockGoods, "a"), do(lockGoods, "b"), do("SELECT sku, stock FROM goods WHERE stock > 1 ORDER BY sku FOR UPDATE"),
	do("DELETE FROM goods WHERE sku = 'a'"), do("DELETE FROM goods WHERE sku = $1 AND stock < 2 RETURNING *", "b"),
	do("INSERT INTO goods VALUES ('a', 4, 0)"), do("INSERT INTO goods VALUES ('c', 4, 0)"), do(seedLoad, "a", 3), do(seedLoad, "c", 1),
	do("INSERT INTO goods VALUES ('a', 4, 0) ON CONFLICT DO NOTHING"), do("INSERT INTO goods VALUES ('b', 4, 0) ON CONFLICT (sku) DO NOTHING RETURNING stock"),
	do("SELECT * FROM goods ORDER BY sku"), do("SELECT count(*), sum(stock) FROM goods"),
	do("UPDATE goods SET stock = stock - 9223372036854775807 - 2 WHERE sku = 'b'"),
	do("INSERT INTO sales (id, sku, buyer) VALUES ('r', 'a', 'x')"), do("INSERT INTO sales (id, sku, buyer) VALUES ('s', 'a', 'x')"),
	do("INSERT INTO sales (id, sku, buyer) VALUES ('r', 'a', 'y') ON CONFLICT (id) DO UPDATE SET qty = sales.qty + 1 WHERE sales.qty < 3"),
	do("INSERT INTO sales (id, sku, buyer) VALUES ('s', 'a', 'y') ON CONFLICT (buyer, sku) DO UPDATE SET qty = EXCLUDED.qty + 1 RETURNING *"),
	do("INSERT INTO sales (id, sku, buyer) VALUES ('t', 'a', 'x') ON CONFLICT DO NOTHING"), do("DELETE FROM sales WHERE id = 'r'"),
	do("UPDATE sales SET qty = qty - 1 WHERE id = 'r'"), do("SELECT * FROM sales ORDER BY id"),
	begin, begin, begin, begin, begin, begin, commit, commit, rollback, die,
}

const drawnDDL = `
CREATE TABLE goods (sku text PRIMARY KEY, stock bigint NOT NULL, version bigint NOT NULL);
CREATE TABLE sales (id text PRIMARY KEY, sku text NOT NULL, buyer text, qty bigint DEFAULT 1, UNIQUE (sku, buyer), CHECK (qty > 0));`

func draw(rnd *rand.Rand) [][]fidelity.Step {
	sessions := make([][]fidelity.Step, 2+rnd.IntN(2))
	for i := range sessions {
		if rnd.IntN(3) > 0 {
			sessions[i] = append(sessions[i], begin)
		}
		for n := 2 + rnd.IntN(4); n > 0; n-- {
			step := ingredients[rnd.IntN(len(ingredients))]
			sessions[i] = append(sessions[i], step)
			if step.Cut {
				break
			}
		}
	}
	return sessions
}

func TestEngineAnswersAsARealServerDoesOnDrawnPrograms(t *testing.T) {
	s := openServer(t)
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(*seed, 1))
	refused, blocked := 0, 0
	for i := range *drawn {
		sessions := draw(rnd)
		var order []int
		for id, steps := range sessions {
			for range steps {
				order = append(order, id)
			}
		}
		rnd.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		db, tables, err := fidelity.Prepare(ctx, s, drawnDDL, append(oneOfEach, "INSERT INTO sales VALUES ('r', 'a', 'z', 2)"))
		require.NoError(t, err)
		_, waits, err := fidelity.Run(ctx, s, db, tables, sessions, order)
		var outside *sqlsubset.UnsupportedError
		if errors.As(err, &outside) {
			refused++ // what it needed at run time is outside the subset, and said so
			continue
		}
		require.NoError(t, err, "program %d: %v, order %v, seed %d", i, sessions, order, *seed)
		blocked += waits
	}
	t.Logf("%d programs, %d of them refused, %d looks at a blocked session, seed %d", *drawn, refused, blocked, *seed)
	require.Less(t, refused, *drawn/4, "too many programs refused to mean anything")
	require.Greater(t, blocked, *drawn/4, "too few waits to mean anything")
}

func TestARealServerConvictsEveryMutantOfTheEngine(t *testing.T) {
	s := openServer(t)
	ctx := context.Background()
	for name, mutant := range sqlsubset.Mutants {
		t.Run(name, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(*seed, 0))
			// More than one round, since the server's own choices count: which
			// waiter of a deadlock it cancels depends on its clock.
			for range 4 {
				for _, p := range programSets {
					for _, order := range p.orders(10, rnd) {
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
			}
			t.Fatalf("no schedule tells the mutant from a real server, seed %d", *seed)
		})
	}
}

package sqlsubset_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/engines/sqlsubset/fidelity"
	"stockproof/schemes"
)

func parse(t testing.TB, q string) *sqlsubset.Statement {
	t.Helper()
	st, err := sqlsubset.Parse(q)
	require.NoError(t, err)
	return st
}

func newDB(t testing.TB, ddl string, setup ...string) *sqlsubset.DB {
	t.Helper()
	db := sqlsubset.NewDB()
	for _, q := range append([]string{ddl}, setup...) {
		reply, status := db.Exec(0, parse(t, q), nil)
		require.NoError(t, reply.Err)
		require.Equal(t, sqlsubset.Done, status)
	}
	return db
}

// tell runs a statement and writes what came of it.
func tell(t testing.TB, db *sqlsubset.DB, session int, q string, args ...any) string {
	t.Helper()
	reply, status := db.Exec(session, parse(t, q), args)
	if status == sqlsubset.Blocked {
		return "blocked"
	}
	return reply.String()
}

func resume(db *sqlsubset.DB, session int) string {
	reply, status := db.Resume(session)
	if status == sqlsubset.Blocked {
		return "blocked"
	}
	return reply.String()
}

func TestAWaiterTakesTheNewestVersionAndKeepsTheLock(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	require.Equal(t, "BEGIN", tell(t, db, 1, "BEGIN"))
	require.Equal(t, "UPDATE 1", tell(t, db, 1, condTake, 2, "a"))
	require.Equal(t, "BEGIN", tell(t, db, 2, "BEGIN"))
	require.Equal(t, "blocked", tell(t, db, 2, condTake, 1, "a"))
	require.Equal(t, map[int]int{2: 1}, db.Waiting())
	require.Empty(t, db.Runnable())
	require.Equal(t, "blocked", resume(db, 2))
	require.Equal(t, "SELECT 1 (2)", tell(t, db, 3, seedRead, "a"))
	require.Equal(t, "COMMIT", tell(t, db, 1, "COMMIT"))
	require.Equal(t, []int{2}, db.Runnable())
	require.Equal(t, "UPDATE 0", resume(db, 2))
	require.Equal(t, "blocked", tell(t, db, 3, seedRestock, 1, "a"), "the failed re-check kept the lock")
	db.Disconnect(2)
	require.Equal(t, []int{3}, db.Runnable())
	require.Equal(t, "UPDATE 1", resume(db, 3))
	_, rows, err := db.Table("goods")
	require.NoError(t, err)
	require.Equal(t, [][]any{{"a", int64(1), int64(1)}, {"b", int64(5), int64(0)}}, rows)
}

func TestANewcomerMayOvertakeAWaiterThatWasSetFree(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	tell(t, db, 1, "BEGIN")
	tell(t, db, 1, condTake, 1, "a")
	require.Equal(t, "blocked", tell(t, db, 2, condTake, 1, "a"))
	tell(t, db, 1, "COMMIT")
	tell(t, db, 3, "BEGIN")
	require.Equal(t, "UPDATE 1", tell(t, db, 3, condTake, 1, "a"))
	require.Equal(t, map[int]int{2: 3}, db.Waiting())
	require.Empty(t, db.Runnable())
}

func TestDeadlockOffersItsMembersAndTheHeadOfTheQueue(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	for _, s := range []int{1, 2} {
		tell(t, db, s, "BEGIN")
	}
	tell(t, db, 1, condTake, 1, "a")
	tell(t, db, 2, condTake, 1, "b")
	require.Equal(t, "blocked", tell(t, db, 3, condTake, 1, "a"), "first in the queue of a")
	require.Equal(t, "blocked", tell(t, db, 2, condTake, 1, "a"))
	require.Empty(t, db.Deadlocked())
	require.Equal(t, "blocked", tell(t, db, 1, condTake, 1, "b"))
	require.Equal(t, [][]int{{1, 2, 3}}, db.Deadlocked())
	without := db.Clone()
	require.Equal(t, "ERROR 40P01", without.Kill(3).String())
	require.Equal(t, [][]int{{1, 2}}, without.Deadlocked(), "nobody waited for the head's transaction")
	require.Equal(t, "ERROR 40P01", db.Kill(2).String())
	require.Empty(t, db.Deadlocked())
	require.Equal(t, []int{1}, db.Runnable())
	require.Equal(t, "ERROR 25P02", tell(t, db, 2, seedRead, "a"))
	require.Equal(t, "ROLLBACK", tell(t, db, 2, "COMMIT"))
	require.Panics(t, func() { db.Kill(1) })
}

func TestAnAbandonedStatementTakesEffectOnlyIfItCommitsByItself(t *testing.T) {
	for _, c := range []struct {
		inBlock bool
		left    int64
	}{{false, 11}, {true, 1}} {
		db := newDB(t, schemes.Schema(), oneOfEach...)
		tell(t, db, 1, "BEGIN")
		tell(t, db, 1, condTake, 1, "a")
		if c.inBlock {
			tell(t, db, 2, "BEGIN")
		}
		require.Equal(t, "blocked", tell(t, db, 2, seedRestock, 10, "a"))
		require.True(t, db.Abandon(2))
		tell(t, db, 1, "COMMIT")
		require.Equal(t, "UPDATE 1", resume(db, 2))
		_, rows, err := db.Table("goods")
		require.NoError(t, err)
		require.Equal(t, c.left, rows[0][1])
		require.False(t, db.InTransaction(2))
		require.False(t, db.Abandon(2))
	}
}

func TestWaitingForOneOfSeveralRowsInNoOrderIsRefusedAndChangesNothing(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	tell(t, db, 1, "BEGIN")
	tell(t, db, 1, condTake, 1, "a")
	before := db.Key()
	reply, _ := db.Exec(2, parse(t, "UPDATE goods SET stock = 0"), nil)
	var u *sqlsubset.UnsupportedError
	require.ErrorAs(t, reply.Err, &u)
	require.Equal(t, before, db.Key())
}

func TestMisuseOfASessionPanics(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	tell(t, db, 1, "BEGIN")
	tell(t, db, 1, condTake, 1, "a")
	tell(t, db, 2, condTake, 1, "a")
	require.Panics(t, func() { tell(t, db, 2, "COMMIT") })
	require.Panics(t, func() { db.Resume(1) })
	require.Panics(t, func() { db.Rename(map[int]int{1: 2}) })
}

// wander takes one random step: a statement, or one of the choices offered.
func wander(t *testing.T, db *sqlsubset.DB, rnd *rand.Rand, sessions int, ingredients []fidelity.Step) (what string, did string) {
	if run := db.Runnable(); len(run) > 0 && rnd.IntN(2) == 0 {
		s := run[rnd.IntN(len(run))]
		return fmt.Sprint("resume ", s), resume(db, s)
	}
	if dead := db.Deadlocked(); len(dead) > 0 {
		s := dead[0][rnd.IntN(len(dead[0]))]
		return fmt.Sprint("kill ", s), db.Kill(s).String()
	}
	for {
		s := rnd.IntN(sessions)
		if _, busy := db.Waiting()[s]; busy {
			if rnd.IntN(20) == 0 {
				db.Abandon(s)
				return fmt.Sprint("abandon ", s), ""
			}
			if len(db.Waiting()) == sessions {
				return "none", ""
			}
			continue
		}
		step := ingredients[rnd.IntN(len(ingredients))]
		if step.Cut {
			db.Disconnect(s)
			return fmt.Sprint("disconnect ", s), ""
		}
		return fmt.Sprint(s, step), tell(t, db, s, step.SQL, step.Args...)
	}
}

var drawnSetup = append(slices.Clone(oneOfEach), "INSERT INTO sales VALUES ('r', 'a', 'z', 2)")

// few statements, so that walks meet each other.
var few = []fidelity.Step{begin, begin, commit, rollback, die, do(condTake, 1, "a"), do(seedRestock, 1, "b"), do(lockGoods, "a"),
	do("INSERT INTO goods VALUES ('a', 1, 1)"), do("DELETE FROM goods WHERE sku = 'a'")}

// differingFutures walks at random, and answers how often a state was met again
// with the same step, and the first time that the step then ended differently.
func differingFutures(t *testing.T, start *sqlsubset.DB) (met int, difference string) {
	type future struct{ reply, key string }
	known := map[string]map[string]future{} // key → step → what came of it
	for walk := range uint64(400) {
		rnd := rand.New(rand.NewPCG(*seed, walk))
		db := start.Clone()
		for range 30 {
			before := db.Key()
			what, did := wander(t, db, rnd, 3, few)
			now := future{did, db.Key()}
			if known[before] == nil {
				known[before] = map[string]future{}
			}
			if then, ok := known[before][what]; ok {
				met++
				if then != now {
					return met, fmt.Sprintf("walk %d, seed %d: %s: %q, then %q", walk, *seed, what, then, now)
				}
			}
			known[before][what] = now
		}
	}
	return met, ""
}

func TestStatesWithEqualKeysGoOnAlike(t *testing.T) {
	db := newDB(t, drawnDDL, drawnSetup...)
	met, difference := differingFutures(t, db)
	require.Empty(t, difference)
	require.Greater(t, met, 100, "too few states met twice to mean anything")
	db.Break(sqlsubset.BlindKey)
	_, difference = differingFutures(t, db)
	require.NotEmpty(t, difference, "a key that leaves out who holds a lock must be noticed")
}

func TestCloneGoesItsOwnWay(t *testing.T) {
	for walk := range uint64(200) {
		rnd := rand.New(rand.NewPCG(*seed, walk))
		db := newDB(t, drawnDDL, drawnSetup...)
		for range 25 {
			clone, before := db.Clone(), db.Key()
			require.Equal(t, before, clone.Key())
			wander(t, clone, rand.New(rand.NewPCG(rnd.Uint64(), 0)), 3, ingredients)
			clone.MapText(func(s string) string { return s + "!" })
			require.Equal(t, before, db.Key(), "walk %d, seed %d", walk, *seed)
			wander(t, db, rnd, 3, ingredients)
		}
	}
}

func TestRenamedSessionsBehaveAsBefore(t *testing.T) {
	to := map[int]int{0: 2, 1: 0, 2: 1}
	for walk := range uint64(200) {
		a := newDB(t, drawnDDL, drawnSetup...)
		b := a.Clone()
		rnd := rand.New(rand.NewPCG(*seed, walk))
		for range 20 {
			s := rnd.IntN(3)
			if _, busy := a.Waiting()[s]; busy {
				if !slices.Contains(a.Runnable(), s) {
					continue
				}
				require.Equal(t, resume(a, s), resume(b, to[s]))
			} else {
				step := ingredients[rnd.IntN(len(ingredients)-1)]
				require.Equal(t, tell(t, a, s, step.SQL, step.Args...), tell(t, b, to[s], step.SQL, step.Args...))
			}
			renamed := a.Clone()
			renamed.Rename(to)
			require.Equal(t, b.Key(), renamed.Key(), "walk %d, seed %d", walk, *seed)
			require.Equal(t, b.Key(), string(a.AppendKey(nil, func(s int) int { return to[s] })))
		}
	}
}

func TestMappedTextBehavesAsIfItHadBeenSo(t *testing.T) {
	swap := map[string]string{"r0": "r1", "r1": "r0", "x": "y", "y": "x"}
	f := func(s string) string {
		if to, ok := swap[s]; ok {
			return to
		}
		return s
	}
	run := func(f func(string) string) *sqlsubset.DB {
		db := newDB(t, ledgerDDL)
		const q = "INSERT INTO sales (id, sku, buyer) VALUES ($1, 'a', $2)"
		tell(t, db, 1, "BEGIN")
		tell(t, db, 1, q, f("r0"), f("x"))
		tell(t, db, 2, "BEGIN")
		tell(t, db, 2, q, f("r1"), f("y"))
		require.Equal(t, "blocked", tell(t, db, 2, q, f("r2"), f("x")))
		return db
	}
	db := run(func(s string) string { return s })
	db.MapText(f)
	require.Equal(t, run(f).Key(), db.Key())
}

var benchProgram = []fidelity.Step{do(seedLook, "a"), begin, do(seedTake, 1, "a", 0), do(seedOrder, "r", "a", "x", 1), commit}

func BenchmarkCloneExecKey(b *testing.B) {
	db := newDB(b, schemes.Schema(), oneOfEach...)
	var sts []*sqlsubset.Statement
	for _, s := range benchProgram {
		sts = append(sts, parse(b, s.SQL))
	}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		c := db
		for i, st := range sts {
			c = c.Clone()
			if reply, _ := c.Exec(1, st, benchProgram[i].Args); reply.Err != nil {
				b.Fatal(reply.Err)
			}
			n += len(c.Key())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(sts)), "ns/statement")
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sqlsubset.Parse(seedTake); err != nil {
			b.Fatal(err)
		}
	}
}

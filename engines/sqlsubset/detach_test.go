package sqlsubset_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/schemes"
)

func TestAWaiterTakenOutAndPutBackGoesOnAsBefore(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	tell(t, db, 1, "BEGIN")
	require.Equal(t, "UPDATE 1", tell(t, db, 1, condTake, 2, "a"))
	tell(t, db, 2, "BEGIN")
	without := db.Key()
	require.Equal(t, "blocked", tell(t, db, 2, condTake, 1, "a"))
	before := db.Key()
	stayed := db.Clone()

	d, ok := db.Detach(2)
	require.True(t, ok)
	require.Empty(t, db.Waiting())
	require.Equal(t, []int{1}, db.Sessions())
	require.NotEqual(t, without, db.Key(), "its transaction is gone with it")

	back := db.Clone()
	back.Attach(2, d)
	require.Equal(t, before, back.Key())

	// Meanwhile the row is free, and another number is as good.
	tell(t, db, 1, "COMMIT")
	tell(t, stayed, 1, "COMMIT")
	db.Attach(5, d)
	require.Equal(t, []int{5}, db.Runnable())
	require.Equal(t, resume(stayed, 2), resume(db, 5))
	require.Equal(t, tell(t, stayed, 2, "COMMIT"), tell(t, db, 5, "COMMIT"))
	require.Equal(t, stayed.Key(), db.Key())
}

func TestOnlyASessionThatHoldsNothingAndHasItsClientIsTakenOut(t *testing.T) {
	db := newDB(t, schemes.Schema(), oneOfEach...)
	tell(t, db, 1, "BEGIN")
	tell(t, db, 1, condTake, 2, "a")
	tell(t, db, 2, condTake, 1, "a")
	tell(t, db, 3, "BEGIN")
	require.True(t, db.Abandon(2))
	before := db.Key()
	for session, want := range map[int]bool{1: false, 2: false, 4: false} {
		_, ok := db.Detach(session)
		require.Equal(t, want, ok, "session %d", session)
	}
	require.Equal(t, before, db.Key())
	d, ok := db.Detach(3)
	require.True(t, ok)
	require.False(t, db.InTransaction(3))
	db.Attach(3, d)
	require.True(t, db.InTransaction(3))
	require.Equal(t, before, db.Key())
	require.Equal(t, 1, db.Sessions()[0], "holders come first")
}

func TestDetachedSessionsAreToldApartByWhatTheyAreInTheMiddleOf(t *testing.T) {
	take := func(sku string) string {
		db := newDB(t, schemes.Schema(), oneOfEach...)
		tell(t, db, 1, "BEGIN")
		tell(t, db, 1, condTake, 1, sku)
		require.Equal(t, "blocked", tell(t, db, 2, condTake, 1, sku))
		d, ok := db.Detach(2)
		require.True(t, ok)
		return d.MapText(strings.ToUpper).Key()
	}
	require.Equal(t, take("a"), take("a"))
	require.NotEqual(t, take("a"), take("b"))
	require.Contains(t, take("a"), "A")
}

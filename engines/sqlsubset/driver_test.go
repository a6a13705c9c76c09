package sqlsubset_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/model"
	"stockproof/schemes"
)

// soloHost runs every statement at once; nothing in these tests blocks.
type soloHost struct {
	db    *sqlsubset.DB
	steps []string
}

func newSoloHost() *soloHost { return &soloHost{db: sqlsubset.NewDB()} }

func (h *soloHost) Exec(_ context.Context, conn int, st *sqlsubset.Statement, _ string, args []any) (sqlsubset.Reply, error) {
	reply, status := h.db.Exec(conn, st, args)
	if status != sqlsubset.Done {
		return reply, errors.New("blocked with nobody else there")
	}
	h.steps = append(h.steps, st.Kind().String()+" => "+reply.String())
	return reply, nil
}

func (h *soloHost) Closed(conn int) { h.db.Disconnect(conn) }

func TestDbVersionSchemeRunsOnTheDriver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newSoloHost()
		db := sql.OpenDB(sqlsubset.NewConnector(host))
		defer db.Close()
		ctx := context.Background()
		_, err := db.ExecContext(ctx, schemes.Schema())
		require.NoError(t, err)
		entry, err := schemes.ByName("db-version")
		require.NoError(t, err)
		s := entry.Scheme
		env := schemes.Env{DB: db, Client: "a"}
		require.NoError(t, s.(schemes.Loader).Load(ctx, env, "1001", 1))
		require.NoError(t, s.(schemes.Loader).Load(ctx, env, "1001", 1))
		host.steps = nil
		out, err := s.Deduct(ctx, env, schemes.Request{ID: "a-1", SKU: "1001", Buyer: "a", Qty: 1})
		require.NoError(t, err)
		require.Equal(t, model.Sold, out)
		require.Equal(t, []string{
			"SELECT => SELECT 1 (1,1)",
			"BEGIN => BEGIN",
			"UPDATE => UPDATE 1",
			"INSERT => INSERT 0 1",
			"COMMIT => COMMIT",
		}, host.steps)
		out, err = s.Deduct(ctx, env, schemes.Request{ID: "a-2", SKU: "1001", Buyer: "a", Qty: 1})
		require.NoError(t, err)
		require.Equal(t, model.SoldOut, out)
	})
}

func TestDriverAnswersErrorsAsPgxDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := newSoloHost()
		db := sql.OpenDB(sqlsubset.NewConnector(host))
		defer db.Close()
		ctx := context.Background()
		_, err := db.ExecContext(ctx, schemes.Schema())
		require.NoError(t, err)
		_, err = db.ExecContext(ctx, seedOrder, "r", "a", "x", 1)
		require.NoError(t, err)

		tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		_, err = tx.ExecContext(ctx, seedOrder, "r", "a", "y", 1)
		var pgErr *pgconn.PgError
		require.ErrorAs(t, err, &pgErr)
		require.Equal(t, "23505", pgErr.Code)
		require.Equal(t, "orders_pkey", pgErr.ConstraintName)
		require.ErrorIs(t, tx.Commit(), pgx.ErrTxCommitRollback)

		var outside *sqlsubset.UnsupportedError
		_, err = db.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelSerializable})
		require.ErrorAs(t, err, &outside)
		_, err = db.ExecContext(ctx, "SELECT sku FROM goods LIMIT 1")
		require.ErrorAs(t, err, &outside)
		_, err = db.ExecContext(ctx, seedRead, sql.Named("sku", "a"))
		require.ErrorAs(t, err, &outside)
		_, err = db.ExecContext(ctx, seedRead)
		var argument *sqlsubset.ArgumentError
		require.ErrorAs(t, err, &argument)

		st, err := db.PrepareContext(ctx, seedOrders)
		require.NoError(t, err)
		var id string
		var qty int64
		require.NoError(t, st.QueryRowContext(ctx, "a").Scan(&id, &qty))
		require.Equal(t, "r", id)
		require.NoError(t, st.Close())
		require.NoError(t, db.PingContext(ctx))
		_, err = db.Driver().Open("anything")
		require.Error(t, err)
	})
}

func TestAConnectionLeftInsideATransactionIsNotUsedAgain(t *testing.T) {
	host := newSoloHost()
	db := sql.OpenDB(sqlsubset.NewConnector(host))
	defer db.Close()
	_, err := db.Exec("BEGIN")
	require.NoError(t, err)
	require.True(t, host.db.InTransaction(0))
	_, err = db.Exec(schemes.Schema())
	require.NoError(t, err, "it runs on a new connection")
	require.False(t, host.db.InTransaction(0))
}

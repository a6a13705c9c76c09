package sqlsubset_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"
	"testing/synctest"

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

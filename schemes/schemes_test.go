package schemes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/model"
)

func redisSchemes(t *testing.T) []Entry {
	t.Helper()
	var found []Entry
	for _, e := range All() {
		if e.Stores.Redis && !e.Stores.SQL {
			found = append(found, e)
		}
	}
	require.NotEmpty(t, found)
	return found
}

func TestEverySchemeSellsWhatIsThereAndNoMore(t *testing.T) {
	for _, e := range redisSchemes(t) {
		t.Run(e.Scheme.Name(), func(t *testing.T) {
			_, client := startRedis(t)
			env := Env{Redis: client, Client: "a"}
			require.NoError(t, e.Scheme.(Loader).Load(t.Context(), env, "1", 3))
			buyers := 0
			deduct := func(qty int64) model.Outcome {
				buyers++
				name := fmt.Sprint(buyers)
				o, err := e.Scheme.Deduct(t.Context(), env, Request{SKU: "1", Qty: qty, ID: name, Buyer: name})
				require.NoError(t, err)
				return o
			}
			require.Equal(t, model.Sold, deduct(2))
			require.Equal(t, model.SoldOut, deduct(2))
			require.Equal(t, model.Sold, deduct(1))
			require.Equal(t, model.SoldOut, deduct(1))
			o, err := e.Scheme.(Restocker).Restock(t.Context(), env, Request{SKU: "1", Qty: 2, ID: "c"})
			require.NoError(t, err)
			require.Equal(t, model.OK, o)
			left, err := e.Scheme.(Reader).Read(t.Context(), env, "1")
			require.NoError(t, err)
			require.Equal(t, int64(2), left)
			require.Equal(t, model.Sold, deduct(2))
		})
	}
}

func TestNoSchemeTakesLessThanOneUnit(t *testing.T) {
	for _, e := range All() {
		for _, qty := range []int64{0, -5} {
			// No connection at all: it must be refused before anything is sent.
			o, err := e.Scheme.Deduct(t.Context(), Env{}, Request{SKU: "1", Qty: qty})
			require.ErrorIs(t, err, ErrQuantity, e.Scheme.Name())
			require.Equal(t, model.Failed, o, e.Scheme.Name())
			if r, ok := e.Scheme.(Restocker); ok {
				o, err = r.Restock(t.Context(), Env{}, Request{SKU: "1", Qty: qty})
				require.ErrorIs(t, err, ErrQuantity, e.Scheme.Name())
				require.Equal(t, model.Failed, o, e.Scheme.Name())
			}
		}
	}
}

func TestAMissingCounterIsNeverASale(t *testing.T) {
	for _, e := range redisSchemes(t) {
		_, client := startRedis(t)
		o, err := e.Scheme.Deduct(t.Context(), Env{Redis: client, Client: "a"}, Request{SKU: "nowhere", Qty: 1, ID: "r"})
		require.NotEqual(t, model.Sold, o, e.Scheme.Name())
		if e.Scheme.Name() != "hincrby" && e.Scheme.Name() != "token-list" { // one creates the counter at -1 and gives back, to the other no list is an empty one
			require.Error(t, err, e.Scheme.Name())
			require.Equal(t, model.Failed, o, e.Scheme.Name())
		}
	}
}

func TestAFailureIsCalledCertainOnlyWhereItIs(t *testing.T) {
	client := func(retries int) Env {
		c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: retries})
		t.Cleanup(func() { c.Close() })
		return Env{Redis: c}
	}
	off, retrying := client(-1), client(0)
	dial := &net.OpError{Op: "dial", Err: errors.New("refused")}
	for _, c := range []struct {
		name string
		env  Env
		err  error
		want model.Outcome
	}{
		{"the connection ended", off, io.EOF, model.Unknown},
		{"a read timed out", off, &net.OpError{Op: "read", Err: errors.New("timeout")}, model.Unknown},
		{"nobody to connect to", off, dial, model.Failed},
		{"nobody to connect to at the last attempt of several", retrying, dial, model.Unknown},
	} {
		require.Equal(t, c.want, afterRedis(c.env, c.err), c.name)
	}
	server, live := startRedis(t)
	require.NoError(t, server.Set("k", "text"))
	refused := live.IncrBy(t.Context(), "k", 1).Err()
	require.Equal(t, model.Failed, afterRedis(Env{Redis: live}, refused), "the server refused the command")
	require.Equal(t, model.Unknown, afterRedis(retrying, refused), "it refused the last attempt of several")

	for _, c := range []struct {
		name string
		err  error
		want model.Outcome
	}{
		{"a unique key", &pgconn.PgError{Code: "23505"}, model.Failed},
		{"a serialization failure", &pgconn.PgError{Code: "40001"}, model.Failed},
		{"the server is shutting down", &pgconn.PgError{Code: "57P01"}, model.Unknown},
		{"an internal error", &pgconn.PgError{Code: "XX000"}, model.Unknown},
		{"an error without a code", &pgconn.PgError{}, model.Unknown},
		{"the connection ended", io.ErrUnexpectedEOF, model.Unknown},
	} {
		require.Equal(t, c.want, afterCommit(c.err), c.name)
	}
}

func TestEveryScriptHasANameForReports(t *testing.T) {
	for _, s := range []*redis.Script{luaHashScript, luaStringScript, redissonAcquire, redissonRelease, redissonRenew,
		luaJournalScript, luaLimitScript, fencedAcquire, fencedWrite, fencedRelease, journalFirstDeduct, journalFirstRestock,
		streamOrderScript, holdReserve, holdEnd, holdDue} {
		require.NotEmpty(t, ScriptName(s.Hash()))
	}
	require.Empty(t, ScriptName("no such script"))
}

func TestRegisteringASchemeTwiceIsAMistake(t *testing.T) {
	require.Panics(t, func() { Register(Entry{Scheme: naive{}}) })
}

// What no order explains together with the counter at rest is declared once.
func TestWhoDeclaresTheImpossibleHasDeclaredNonLinearizable(t *testing.T) {
	g := Guarantees{[]Weakness{
		{Fault: "none", Breaks: []model.Property{model.NegativePermanent}},
		{Fault: "none", Breaks: []model.Property{model.LostUnits}, World: "live"},
		{Fault: "client-crash", Breaks: []model.Property{model.LostUnits}},
		{Fault: "client-pause", Breaks: []model.Property{model.PhantomUnits}, World: "explore"},
	}}
	must, may := g.Declared("none", "unit", "off", "explore")
	require.Equal(t, map[model.Property]bool{model.NegativePermanent: true, model.NonLinearizable: true}, must)
	require.Equal(t, map[model.Property]bool{model.LostUnits: true}, may)
	must, may = g.Declared("client-crash", "unit", "off", "explore")
	require.Equal(t, map[model.Property]bool{model.LostUnits: true}, must)
	require.Empty(t, may)
	must, may = g.Declared("client-pause", "unit", "off", "live")
	require.Empty(t, must)
	require.Equal(t, map[model.Property]bool{model.PhantomUnits: true, model.NonLinearizable: true}, may)
}

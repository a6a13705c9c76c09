package stockproof_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/engines/sqlsubset"
	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

// badInput is a request, or a store, that is not as it should be.
type badInput struct {
	what string
	qty  int64
	// spoil makes the store what it is after 5 units were loaded; it answers false
	// where the scheme's counter has nothing that could be so. nil: nothing is done.
	spoil func(ctx context.Context, env schemes.Env, sku string) (bool, error)
	load  bool
	sells bool // an ordinary sale after all: exactly qty units are gone afterwards
}

var badInputs = []badInput{
	{what: "quantity 0", qty: 0, load: true},
	{what: "quantity -5", qty: -5, load: true},
	{what: "quantity 2^53, more than there are", qty: 1 << 53, load: true},
	{what: "quantity 2^53 + 1", qty: 1<<53 + 1, load: true},
	{what: "quantity 2^63 - 1", qty: math.MaxInt64, load: true},
	{what: "a SKU that is not on sale", qty: 1},
	{what: "the counter is gone", qty: 1, load: true, spoil: withoutCounter},
	{what: "the counter is of another type", qty: 1, load: true, spoil: ofAnotherType},
	{what: "the counter is empty", qty: 1, load: true, spoil: holding("")},
	{what: `the counter is "many"`, qty: 1, load: true, spoil: holding("many")},
	{what: `the counter is "1.5"`, qty: 1, load: true, spoil: holding("1.5")},
	{what: `the counter is "1e3"`, qty: 1, load: true, spoil: holding("1e3")},
	{what: `the counter is "nan"`, qty: 1, load: true, spoil: holding("nan")},
	{what: "the counter is 2^53 + 2", qty: 1, load: true, spoil: holding(fmt.Sprint(1<<53 + 2)), sells: true},
	{what: "the counter is 2^63 - 1", qty: 1, load: true, spoil: holding(fmt.Sprint(math.MaxInt64)), sells: true},
}

func keysOf(ctx context.Context, env schemes.Env, sku string) ([]string, error) {
	if env.Redis == nil {
		return nil, nil
	}
	return env.Redis.Keys(ctx, "*"+sku+"*").Result()
}

func withoutCounter(ctx context.Context, env schemes.Env, sku string) (bool, error) {
	keys, err := keysOf(ctx, env, sku)
	if len(keys) > 0 {
		err = errors.Join(err, env.Redis.Del(ctx, keys...).Err())
	}
	if env.DB != nil {
		_, e := env.DB.ExecContext(ctx, `DELETE FROM goods WHERE sku = $1`, sku)
		err = errors.Join(err, e)
	}
	return true, err
}

func ofAnotherType(ctx context.Context, env schemes.Env, sku string) (bool, error) {
	keys, err := keysOf(ctx, env, sku)
	for _, k := range keys {
		kind, e := env.Redis.Type(ctx, k).Result()
		err = errors.Join(err, e, env.Redis.Del(ctx, k).Err())
		if kind == "string" {
			err = errors.Join(err, env.Redis.RPush(ctx, k, "5").Err())
		} else {
			err = errors.Join(err, env.Redis.Set(ctx, k, "5", 0).Err())
		}
	}
	return len(keys) > 0, err
}

// holding writes the text into every counter of the SKU.
func holding(text string) func(context.Context, schemes.Env, string) (bool, error) {
	return func(ctx context.Context, env schemes.Env, sku string) (bool, error) {
		keys, err := keysOf(ctx, env, sku)
		could := false
		for _, k := range keys {
			kind, e := env.Redis.Type(ctx, k).Result()
			err = errors.Join(err, e)
			switch kind {
			case "string":
				err = errors.Join(err, env.Redis.Set(ctx, k, text, 0).Err())
			case "hash":
				err = errors.Join(err, env.Redis.HSet(ctx, k, "stock", text).Err())
			default:
				continue
			}
			could = true
		}
		if units, e := strconv.ParseInt(text, 10, 64); e == nil && env.Redis == nil {
			_, e = env.DB.ExecContext(ctx, `UPDATE goods SET stock = $1 WHERE sku = $2`, units, sku)
			could, err = true, errors.Join(err, e)
		}
		return could, err
	}
}

// tryInput is what a scheme answers to an input, in the words of the table.
func tryInput(t *testing.T, e schemes.Entry, in badInput, env schemes.Env, sku string) string {
	t.Helper()
	ctx := t.Context()
	if in.load {
		require.NoError(t, e.Scheme.(schemes.Loader).Load(ctx, env, sku, 5))
	}
	if in.spoil != nil {
		could, err := in.spoil(ctx, env, sku)
		require.NoError(t, err)
		if !could {
			return ""
		}
	}
	before, readErr := e.Scheme.(schemes.Reader).Read(ctx, env, sku)
	outcome, err := e.Scheme.Deduct(ctx, env, schemes.Request{SKU: sku, Qty: in.qty, ID: "r@" + sku, Buyer: "b"})
	if !in.sells || outcome != model.Sold {
		require.NotEqual(t, model.Sold, outcome, "%s: %s", e.Scheme.Name(), in.what)
	}
	after, err2 := e.Scheme.(schemes.Reader).Read(ctx, env, sku)
	if outcome == model.Sold {
		// A sum over several counters of 2^63 - 1 has no value to compare.
		if readErr == nil && before > 0 {
			require.Equal(t, before-in.qty, after, "%s: %s", e.Scheme.Name(), in.what)
		}
	} else if readErr == nil {
		require.NoError(t, err2)
		require.Equal(t, before, after, "%s: %s takes nothing", e.Scheme.Name(), in.what)
	}
	if outcome == model.Failed {
		require.Error(t, err, "%s: %s: a failure has a reason", e.Scheme.Name(), in.what)
	}
	return string(outcome)
}

// inputWorlds are the stores in which the inputs are tried.
var inputWorlds = map[string]func(t *testing.T) schemes.Env{
	"embedded": func(t *testing.T) schemes.Env {
		env := schemes.Env{Client: "a", Redis: redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr(), MaxRetries: -1}),
			DB: sql.OpenDB(sqlsubset.NewConnector(alone{sqlsubset.NewDB()}))}
		t.Cleanup(func() { clients.Disconnect(env) })
		_, err := env.DB.ExecContext(t.Context(), schemes.Schema())
		require.NoError(t, err)
		return env
	},
	"live": func(t *testing.T) schemes.Env {
		set := liveWorld(t).Servers
		env, err := clients.Connect(clients.Setup{Client: "a", RedisAddr: set.RedisAddr, DSN: set.PostgresDSN(""), Retries: "off"})
		require.NoError(t, err)
		t.Cleanup(func() { clients.Disconnect(env) })
		return env
	},
}

// alone is a database with one client.
type alone struct{ db *sqlsubset.DB }

func (h alone) Exec(_ context.Context, conn int, st *sqlsubset.Statement, _ string, args []any) (sqlsubset.Reply, error) {
	reply, status := h.db.Exec(conn, st, args)
	if status != sqlsubset.Done {
		return reply, errors.New("blocked with nobody else there")
	}
	return reply, nil
}

func (h alone) Closed(conn int) { h.db.Disconnect(conn) }

const inputsDoc = "docs/inputs.md"

// TestNoBadInputIsASale tries every input on every scheme, embedded and on real
// servers, and compares the answers with the table of docs/inputs.md;
// UPDATE_INPUTS=1 writes it.
func TestNoBadInputIsASale(t *testing.T) {
	tables := map[string]string{}
	for world, open := range inputWorlds {
		t.Run(world, func(t *testing.T) {
			env := open(t)
			tables[world] = inputTable(t, func(e schemes.Entry, in badInput, n int) string {
				mine := env
				if !e.Stores.SQL {
					mine.DB = nil
				}
				if !e.Stores.Redis {
					mine.Redis = nil
				}
				return tryInput(t, e, in, mine, fmt.Sprintf("input-%d-%d", os.Getpid(), n))
			})
		})
	}
	raw, err := os.ReadFile(inputsDoc)
	require.NoError(t, err)
	const begin, end = "<!-- inputs -->\n", "<!-- /inputs -->"
	before, rest, ok := strings.Cut(string(raw), begin)
	require.True(t, ok)
	shown, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	if os.Getenv("UPDATE_INPUTS") != "" {
		shown = tables["embedded"]
		require.NoError(t, os.WriteFile(inputsDoc, []byte(before+begin+shown+end+after), 0o644))
	}
	for world, table := range tables {
		if table != "" { // the live world may be left out on purpose
			require.Equal(t, shown, table, "%s: UPDATE_INPUTS=1 go test -run TestNoBadInput . writes the table of embedded", world)
		}
	}
	require.NotEmpty(t, tables["embedded"])
}

// inputTable has a row for each input: who answers what. The answer that most
// give stands without names.
func inputTable(t *testing.T, answer func(e schemes.Entry, in badInput, n int) string) string {
	var b strings.Builder
	b.WriteString("| input | answer | otherwise | nothing of the kind |\n| --- | --- | --- | --- |\n")
	n := 0
	for _, in := range badInputs {
		by := map[string][]string{}
		for _, e := range schemes.All() {
			n++
			a := answer(e, in, n)
			by[a] = append(by[a], e.Scheme.Name())
		}
		none := by[""]
		delete(by, "")
		var most string
		for a := range by {
			if len(by[a]) > len(by[most]) || len(by[a]) == len(by[most]) && a < most {
				most = a
			}
		}
		var others []string
		for a, names := range by {
			if a != most {
				others = append(others, fmt.Sprintf("`%s`: %s", a, strings.Join(names, ", ")))
			}
		}
		slices.Sort(others)
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s |\n", in.what, most, strings.Join(others, "; "), strings.Join(none, ", "))
	}
	return b.String()
}

// careless takes what it is given.
var careless = mutant{"does not look at the quantity", "lua-string",
	func(ctx context.Context, env schemes.Env, req schemes.Request, _ schemes.Scheme) (model.Outcome, error) {
		left, err := env.Redis.DecrBy(ctx, "stock:"+req.SKU, req.Qty).Result()
		if err != nil {
			return model.Failed, err
		}
		if left >= 0 {
			return model.Sold, nil
		}
		return model.SoldOut, nil
	}}

func init() {
	schemes.Register(schemes.Entry{Scheme: careless, Stores: schemes.Stores{Redis: true}, Hidden: true})
}

// The check can fail: a scheme that looks at nothing sells -5 units.
func TestASchemeThatSellsANegativeQuantityIsSeen(t *testing.T) {
	env := inputWorlds["embedded"](t)
	e := entry(t, careless.Name())
	require.NoError(t, e.Scheme.(schemes.Loader).Load(t.Context(), env, "1", 5))
	outcome, err := e.Scheme.Deduct(t.Context(), env, schemes.Request{SKU: "1", Qty: -5, ID: "r", Buyer: "b"})
	require.NoError(t, err)
	require.Equal(t, model.Sold, outcome)
	left, err := e.Scheme.(schemes.Reader).Read(t.Context(), env, "1")
	require.NoError(t, err)
	require.Equal(t, int64(10), left)
}

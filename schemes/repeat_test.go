package schemes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/model"
)

func put(t *testing.T, s Scheme, env Env, units int64) {
	t.Helper()
	require.NoError(t, s.(Loader).Load(t.Context(), env, "1", units))
}

func left(t *testing.T, s Scheme, env Env) int64 {
	t.Helper()
	units, err := s.(Reader).Read(t.Context(), env, "1")
	require.NoError(t, err)
	return units
}

// Catalogue O-19 and O-71: the same request again takes nothing more.
func TestARequestThatIsRecordedTakesItsUnitsOnce(t *testing.T) {
	for _, s := range []Scheme{luaJournal{}, journalFirst{}} {
		t.Run(s.Name(), func(t *testing.T) {
			_, client := startRedis(t)
			a, b := Env{Redis: client, Client: "a"}, Env{Redis: client, Client: "b"}
			put(t, s, a, 3)
			req := Request{SKU: "1", Qty: 1, ID: "r", Buyer: "x"}
			for range 2 { // the client, or its library, asks again
				o, err := s.Deduct(t.Context(), a, req)
				require.NoError(t, err)
				require.Equal(t, model.Sold, o)
			}
			o, err := s.Deduct(t.Context(), b, req)
			require.ErrorIs(t, err, ErrRepeated)
			require.Equal(t, model.Failed, o)
			require.Equal(t, int64(2), left(t, s, a))
		})
	}
}

// Catalogue O-20: S=10, r1 sent twice, final 8. With a record for ever it is 9.
func TestARecordThatEndsBeforeTheRetryTakesTheUnitsTwice(t *testing.T) {
	for life, want := range map[time.Duration]int64{time.Minute: 8, Forever: 9} {
		server, client := startRedis(t)
		env := Env{Redis: client, Client: "a", Config: Config{Record: life}}
		put(t, luaJournal{}, env, 10)
		for range 2 {
			o, err := luaJournal{}.Deduct(t.Context(), env, Request{SKU: "1", Qty: 1, ID: "r1", Buyer: "x"})
			require.NoError(t, err)
			require.Equal(t, model.Sold, o)
			server.FastForward(2 * time.Minute)
		}
		require.Equal(t, want, left(t, luaJournal{}, env), "record kept %v", life)
	}
}

// A copy of a command that was answered sold-out arrives after a restock
// (catalogue O-18): it must not take what its client was told is gone.
func TestALateCopyOfARefusedRequestNeverSells(t *testing.T) {
	_, client := startRedis(t)
	env := Env{Redis: client, Client: "a"}
	put(t, journalFirst{}, env, 0)
	req := Request{SKU: "1", Qty: 1, ID: "r", Buyer: "x"}
	o, err := journalFirst{}.Deduct(t.Context(), env, req)
	require.NoError(t, err)
	require.Equal(t, model.SoldOut, o)
	o, err = journalFirst{}.Restock(t.Context(), env, Request{SKU: "1", Qty: 1, ID: "back"})
	require.NoError(t, err)
	require.Equal(t, model.OK, o)

	o, err = journalFirst{}.Deduct(t.Context(), env, req)
	require.NoError(t, err)
	require.Equal(t, model.SoldOut, o, "the same submission again")
	require.Equal(t, int64(1), left(t, journalFirst{}, env))
	o, err = journalFirst{}.Deduct(t.Context(), Env{Redis: client, Client: "b"}, req)
	require.NoError(t, err)
	require.Equal(t, model.Sold, o, "another submission of the request may have it")
}

// Catalogue O-57: a cancel that comes twice counts once.
func TestACancelThatComesTwiceCountsOnce(t *testing.T) {
	_, client := startRedis(t)
	env := Env{Redis: client, Client: "a"}
	put(t, journalFirst{}, env, 1)
	for range 2 {
		o, err := journalFirst{}.Restock(t.Context(), env, Request{SKU: "1", Qty: 1, ID: "cancel"})
		require.NoError(t, err)
		require.Equal(t, model.OK, o)
	}
	_, err := journalFirst{}.Restock(t.Context(), Env{Redis: client, Client: "b"}, Request{SKU: "1", Qty: 1, ID: "cancel"})
	require.ErrorIs(t, err, ErrRepeated)
	require.Equal(t, int64(2), left(t, journalFirst{}, env))
}

// Catalogue O-52: a preload that runs again during the sale.
func TestAPreloadThatRunsAgain(t *testing.T) {
	for name, want := range map[string]int64{"journal-first": 1, "lua-string": 2, "token-list": 3} {
		_, client := startRedis(t)
		e, err := ByName(name)
		require.NoError(t, err)
		env := Env{Redis: client, Client: "a"}
		put(t, e.Scheme, env, 2)
		_, err = e.Scheme.Deduct(t.Context(), env, Request{SKU: "1", Qty: 1, ID: "r", Buyer: "x"})
		require.NoError(t, err)
		put(t, e.Scheme, env, 2)
		require.Equal(t, want, left(t, e.Scheme, env), name)
	}
}

// Catalogue O-14 and O-74 for the scripts with a second write: whatever is in
// the other key, an error means that nothing was written.
func TestASecondKeyOfTheWrongTypeLosesNoUnit(t *testing.T) {
	for key, s := range map[string]Scheme{"journal:1:r": luaJournal{}, "buyers:1": luaLimit{}} {
		_, client := startRedis(t)
		env := Env{Redis: client, Client: "a"}
		put(t, s, env, 5)
		require.NoError(t, client.RPush(t.Context(), key, "x").Err())
		o, err := s.Deduct(t.Context(), env, Request{SKU: "1", Qty: 1, ID: "r", Buyer: "x"})
		require.Error(t, err, s.Name())
		require.Equal(t, model.Failed, o)
		require.Equal(t, int64(5), left(t, s, env))
	}
}

// askingFirst is lua-limit with its question in a command of its own: claim A15
// says that the same script is what keeps the limit.
type askingFirst struct{ luaLimit }

func (s askingFirst) Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error) {
	bought, err := env.Redis.SIsMember(ctx, buyersKey(req.SKU), req.Buyer).Result()
	if err != nil || bought {
		return model.Failed, errors.Join(err, ErrLimit)
	}
	everybodyAsked.Wait()
	o, err := s.deduct(ctx, env, req)
	if o == model.Sold {
		err = env.Redis.SAdd(ctx, buyersKey(req.SKU), req.Buyer).Err()
	}
	return o, err
}

var everybodyAsked *meeting

// meeting lets nobody go on before all have come.
type meeting struct{ sync.WaitGroup }

func (m *meeting) Wait() { m.Done(); m.WaitGroup.Wait() }

// One buyer, eight requests at once, limit one (catalogue O-51, O-71).
func TestOneBuyerBuysOnceHoweverManyRequestsComeAtOnce(t *testing.T) {
	const requests = 8
	for name, c := range map[string]struct {
		s    Scheme
		want int64
	}{"in the same script": {luaLimit{}, 1}, "asked before the script": {askingFirst{}, requests}} {
		server, first := startRedis(t)
		put(t, luaLimit{}, Env{Redis: first}, 2*requests)
		require.NoError(t, luaStringScript.Load(t.Context(), first).Err())
		everybodyAsked = &meeting{}
		everybodyAsked.Add(requests)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var sold int64
		for i := range requests {
			wg.Go(func() {
				client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
				defer client.Close()
				o, _ := c.s.Deduct(t.Context(), Env{Redis: client, Client: fmt.Sprint(i)}, Request{SKU: "1", Qty: 1, ID: fmt.Sprint(i), Buyer: "one"})
				mu.Lock()
				defer mu.Unlock()
				if o == model.Sold {
					sold++
				}
			})
		}
		wg.Wait()
		require.Equal(t, c.want, sold, name)
		require.Equal(t, 2*requests-c.want, left(t, luaLimit{}, Env{Redis: first}), name)
	}
}

// With the library's retries "you have bought" may be about this very command.
func TestALimitIsNoCertainRefusalWhereTheLibraryRepeats(t *testing.T) {
	server, client := startRedis(t)
	put(t, luaLimit{}, Env{Redis: client}, 2)
	retrying := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer retrying.Close()
	for _, c := range []struct {
		client *redis.Client
		want   model.Outcome
	}{{client, model.Sold}, {client, model.Failed}, {retrying, model.Unknown}} {
		o, _ := luaLimit{}.Deduct(t.Context(), Env{Redis: c.client}, Request{SKU: "1", Qty: 1, Buyer: "x"})
		require.Equal(t, c.want, o)
	}
}

package thirdparty

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"

	"stockproof/model"
	"stockproof/schemes"
)

// entries are the schemes of this package, with the module each is about.
var entries = map[string]string{
	"redislock@0.9.4": "github.com/bsm/redislock",
	"redsync@4.18.1":  "github.com/go-redsync/redsync/v4",
}

func TestTheNamesTellTheVersionsThatAreBuiltIn(t *testing.T) {
	raw, err := os.ReadFile("../../go.mod")
	require.NoError(t, err)
	mod, err := modfile.Parse("go.mod", raw, nil)
	require.NoError(t, err)
	for name, module := range entries {
		_, err := schemes.ByName(name)
		require.NoError(t, err)
		found := false
		for _, r := range mod.Require {
			if r.Mod.Path == module {
				found = true
				require.Equal(t, "v"+name[strings.Index(name, "@")+1:], r.Mod.Version, name)
			}
		}
		require.True(t, found, module)
	}
}

// sent records the commands a client sends.
type sent struct{ commands []string }

func (s *sent) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		line := strings.ToLower(cmd.Name())
		if line == "evalsha" {
			line += " " + schemes.ScriptName(cmd.Args()[1].(string))
		}
		s.commands = append(s.commands, line)
		return next(ctx, cmd)
	}
}

func open(t *testing.T, name string) (schemes.Scheme, schemes.Env, *miniredis.Miniredis, *sent) {
	t.Helper()
	e, err := schemes.ByName(name)
	require.NoError(t, err)
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	env := schemes.Env{Redis: client, Client: "a", Config: schemes.Config{Wait: 2 * time.Millisecond, Retry: time.Millisecond}}
	require.NoError(t, e.Scheme.(schemes.Loader).Load(t.Context(), env, "1", 1))
	log := &sent{}
	client.AddHook(log)
	return e.Scheme, env, server, log
}

func TestADeductIsTheLocksCommandsAroundReadAndDecrement(t *testing.T) {
	for name, want := range map[string][]string{
		"redislock@0.9.4": {"evalsha redislock-obtain", "hget", "hincrby", "evalsha redislock-release"},
		"redsync@4.18.1":  {"set", "hget", "hincrby", "evalsha redsync-release"},
	} {
		t.Run(name, func(t *testing.T) {
			s, env, server, log := open(t, name)
			o, err := s.Deduct(t.Context(), env, schemes.Request{SKU: "1", Qty: 1, ID: "r"})
			require.NoError(t, err)
			require.Equal(t, model.Sold, o)
			require.Equal(t, want, log.commands, "also: scripts have names, and are loaded")
			require.False(t, server.Exists("lock:1"), "released")
			o, err = s.Deduct(t.Context(), env, schemes.Request{SKU: "1", Qty: 1, ID: "s"})
			require.NoError(t, err)
			require.Equal(t, model.SoldOut, o)
		})
	}
}

func TestWhoDoesNotGetTheLockIsBusyAndTouchesNothing(t *testing.T) {
	for name := range entries {
		t.Run(name, func(t *testing.T) {
			s, env, server, log := open(t, name)
			require.NoError(t, server.Set("lock:1", "somebody else's"))
			o, err := s.Deduct(t.Context(), env, schemes.Request{SKU: "1", Qty: 1, ID: "r"})
			require.NoError(t, err)
			require.Equal(t, model.Busy, o)
			require.NotContains(t, log.commands, "hget")
			value, err := server.Get("lock:1")
			require.NoError(t, err)
			require.Equal(t, "somebody else's", value)
		})
	}
}

func TestAnUnlockThatFailsDoesNotChangeWhatTheBuyerWasPromised(t *testing.T) {
	for name := range entries {
		t.Run(name, func(t *testing.T) {
			s, env, server, _ := open(t, name)
			env.Redis.AddHook(atDecrement(func() { server.Del("lock:1") }))
			o, err := s.Deduct(t.Context(), env, schemes.Request{SKU: "1", Qty: 1, ID: "r"})
			require.Equal(t, model.Sold, o)
			require.Error(t, err, "it is reported all the same")
		})
	}
}

func TestLessThanOneUnitIsRefusedBeforeAnythingIsSent(t *testing.T) {
	for name := range entries {
		e, err := schemes.ByName(name)
		require.NoError(t, err)
		for _, qty := range []int64{0, -5} {
			o, err := e.Scheme.Deduct(t.Context(), schemes.Env{}, schemes.Request{SKU: "1", Qty: qty})
			require.ErrorIs(t, err, schemes.ErrQuantity, name)
			require.Equal(t, model.Failed, o, name)
		}
	}
}

// atDecrement does something right before the decrement.
type atDecrement func()

func (atDecrement) DialHook(next redis.DialHook) redis.DialHook { return next }
func (atDecrement) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}
func (do atDecrement) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "hincrby" {
			do()
		}
		return next(ctx, cmd)
	}
}

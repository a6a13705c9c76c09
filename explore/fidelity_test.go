package explore

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
)

// Every Redis question the searches of the test configurations ask is asked of
// a real redis-server as well, and must get the same answer, leave the same
// data and send the same messages.
func TestEveryRedisTransitionIsThatOfARealServer(t *testing.T) {
	needRealServers(t)
	real, err := redisstore.StartServer()
	require.NoError(t, err, "install redis-server, or set STOCKPROOF_LIVE=off to leave out what needs it")
	defer real.Close()
	lab := newLab(t)
	t.Run("configuration", func(t *testing.T) {
		small(t, func(name string, cfg Config) {
			kind := cfg.Faults[0]
			if cfg.Stock != 1 || alreadyWith(cfg) || pointless(cfg.Entry, kind) ||
				cfg.Workload.Name == "restock" && (kind == faults.DuplicateRequest || kind == faults.StoreLoses || cfg.Entry.Scheme.Name() == "watch-multi") {
				return // large, and their commands are asked for in the other workloads
			}
			if cfg.Entry.Wider {
				if cfg.Workload.Name == "unit" || cfg.Retries == "off" {
					return
				}
				cfg.Clients = 2
				cfg.Workload.Clients = slices.Clone(cfg.Workload.Clients)
				slices.Reverse(cfg.Workload.Clients) // the one who also puts back is the last
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				search(t, lab, cfg)
			})
		})
	})
	n, err := lab.CompareEngine(real)
	require.NoError(t, err)
	require.Greater(t, n, 500)
	t.Logf("%d transitions equal on redis-server", n)
}

// The comparison can fail: a transition with a wrong reply, a wrong state or a
// missing message is found.
func TestAWrongTransitionIsFoundByTheRealServer(t *testing.T) {
	needRealServers(t)
	real, err := redisstore.StartServer()
	require.NoError(t, err, "install redis-server, or set STOCKPROOF_LIVE=off to leave out what needs it")
	defer real.Close()
	mini, err := redisstore.NewMini()
	require.NoError(t, err)
	defer mini.Close()
	for name, bend := range map[string]func(*redisstore.Result){
		"reply":   func(r *redisstore.Result) { r.Reply = ":8\r\n" },
		"state":   func(r *redisstore.Result) { r.State.Keys[0].Values = []string{"8"} },
		"message": func(r *redisstore.Result) { r.Messages = []redisstore.Message{{Channel: "c", Payload: "p"}} },
	} {
		r, err := mini.Exec(redisstore.State{}, []string{"INCR", "n"})
		require.NoError(t, err)
		require.NoError(t, compareAnswer(real, question{redisstore.State{}, "", []string{"INCR", "n"}, r}))
		bend(&r)
		var diff *EngineDifferenceError
		require.ErrorAs(t, compareAnswer(real, question{redisstore.State{}, "", []string{"INCR", "n"}, r}), &diff, name)
	}
}

// The real server can be the engine itself, with the same result.
func TestTheRealServerAsEngineGivesTheSameResult(t *testing.T) {
	needRealServers(t)
	lab := newLab(t)
	for _, scheme := range []string{"hincrby", "lua-string", "lock"} {
		cfg := one(t, scheme, faults.ReplyLost, "unit", "default")
		mini := search(t, lab, cfg)
		cfg.Engine = "redis"
		real, err := lab.Run(t.Context(), cfg)
		require.NoError(t, err, "install redis-server, or set STOCKPROOF_LIVE=off to leave out what needs it")
		require.Empty(t, agree(mini, real), scheme)
		require.Equal(t, mini.States, real.States)
	}
}

package subject

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/live/clients"
	"stockproof/live/reaper"
	"stockproof/live/role"
	"stockproof/live/subject/subjecttest"
	"stockproof/model"
	"stockproof/schemes"
)

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(m.Run())
}

type rig struct {
	reaper *reaper.Reaper
	redis  *miniredis.Miniredis
	env    schemes.Env
}

func newRig(t *testing.T) rig {
	t.Helper()
	r, err := reaper.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { client.Close() })
	return rig{r, server, schemes.Env{Redis: client}}
}

func (r rig) options(mode string) Options {
	return Options{Command: subjecttest.Command(mode), RedisAddr: r.redis.Addr()}
}

// start starts a client.
func (r rig) start(t *testing.T, mode string) *Process {
	t.Helper()
	p, err := start(t.Context(), r.reaper, launch{command: subjecttest.Command(mode), redisURL: redisURL(r.redis.Addr())})
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	return p
}

func deduct(request string) clients.Operation {
	return clients.Operation{Op: model.Deduct, SKU: "s", Qty: 1, Request: request}
}

// Each mode of the test subject breaks one rule, and the check finds which.
func TestTheCheckFindsTheRuleThatIsBroken(t *testing.T) {
	r := newRig(t)
	for i, c := range []struct{ mode, rule string }{
		{"keeps every rule", ""},
		{"never says hello", "hello"},
		{"says something else first", "hello"},
		{"dies before its hello", "hello"},
		{"speaks another version", "hello"},
		{"floods with one line", "hello"},
		{"reads wrong", "load"},
		{"answers with another id", "deduct"},
		{"never answers a deduct", "deduct"},
		{"dies at a deduct", "deduct"},
		{"has words of its own", "sold-out"},
		{"oversells", "sold-out"},
		{"forgets restocks", "restock"},
		{"forgets orders", "orders"},
		{"takes any quantity", "quantity"},
		{"does what it does not know", "operation"},
		{"takes ids for floating point", "ids"},
		{"answers out of order", "order"},
		{"talks when nobody asked", "silence"},
		{"dies when its connection breaks", "connection"},
		{"stays when its input ends", "end"},
		{"ends with status 1", "end"},
		{"leaves a child behind", "end"},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			o := CheckOptions{Options: r.options(c.mode), Env: r.env, Timeout: time.Minute, SKU: fmt.Sprintf("check%d", i)}
			switch c.mode {
			case "never says hello":
				o.Start = 50 * time.Millisecond
			case "never answers a deduct":
				o.Timeout = 500 * time.Millisecond
			}
			results, err := Check(t.Context(), r.reaper, o, nil)
			require.NoError(t, err)
			require.Len(t, results, len(rules))
			broken := map[string]string{}
			for _, res := range results {
				if res.Status == Fail {
					broken[res.Rule] = res.Reason
				}
				if c.rule == "" {
					require.Equal(t, Pass, res.Status, "%+v", res)
				}
				if c.rule == "hello" && res.Rule != "hello" {
					require.Equal(t, NotTried, res.Status, "no pass for what was not tried")
				}
			}
			require.Equal(t, c.rule == "", Conforms(results))
			if c.rule != "" {
				require.NotEmpty(t, broken[c.rule], "%v", results)
			}
		})
	}
}

func TestASubjectServesAsAScheme(t *testing.T) {
	r := newRig(t)
	s, err := Open(t.Context(), r.reaper, r.options("keeps every rule"))
	require.NoError(t, err)
	defer s.Close()
	e := s.Entry(Undeclared())
	require.Equal(t, "test@1", e.Scheme.Name())
	require.Equal(t, schemes.Stores{Redis: true}, e.Stores)
	require.NoError(t, e.Scheme.(schemes.Loader).Load(t.Context(), r.env, "s", 2))
	client, err := e.Scheme.(clients.Launcher).Launch(t.Context(), r.reaper, clients.Setup{RedisAddr: r.redis.Addr(), Client: "a"})
	require.NoError(t, err)
	defer client.Kill()
	a, err := client.Run(t.Context(), deduct("a.1"))
	require.NoError(t, err)
	require.Equal(t, model.Sold, a.Outcome)
	left, err := e.Scheme.(schemes.Reader).Read(t.Context(), r.env, "s")
	require.NoError(t, err)
	require.Equal(t, int64(1), left)
	orders, err := e.Scheme.(schemes.Auditor).Orders(t.Context(), r.env, "s")
	require.NoError(t, err)
	require.Equal(t, []model.Order{{Request: "a.1", Qty: 1}}, orders)
	_, leases := e.Scheme.(schemes.Leaser)
	require.False(t, leases, "it named none")
	_, err = e.Scheme.(schemes.Reader).Read(t.Context(), r.env, "nowhere")
	require.ErrorIs(t, err, schemes.ErrNoStock)
}

func TestWhatIsWrongIsSaidWithTheLastThatItWroteToItsLog(t *testing.T) {
	r := newRig(t)
	_, err := Open(t.Context(), r.reaper, r.options("dies before its hello"))
	var failed *StartError
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "exit status 3")
	require.ErrorContains(t, err, "no configuration")

	_, err = Open(t.Context(), r.reaper, Options{Command: "no-such-program"})
	require.ErrorAs(t, err, &failed)
	require.ErrorContains(t, err, "not found")

	p := r.start(t, "dies at a deduct")
	_, err = p.Run(t.Context(), deduct("x"))
	require.ErrorIs(t, err, clients.ErrGone)
	require.ErrorContains(t, err, "exit status 7")
	require.ErrorContains(t, err, "out of luck")
}

func TestASubjectThatNeverAnswersIsEndedWithTheContext(t *testing.T) {
	r := newRig(t)
	p := r.start(t, "never answers a deduct")
	ctx, cancel := context.WithCancelCause(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := p.Run(ctx, deduct("x"))
		sent <- err
	}()
	cancel(fmt.Errorf("the time is over"))
	require.ErrorContains(t, <-sent, "the time is over")
	<-p.Gone()
}

func TestAFloodEndsTheSubjectAndCostsBoundedMemory(t *testing.T) {
	r := newRig(t)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := r.start(t, "floods standard output")
	<-p.Gone()
	_, err := p.Run(t.Context(), deduct("x"))
	var rule *ProtocolError
	require.ErrorAs(t, err, &rule)
	require.ErrorContains(t, err, "a line that nobody asked for")

	p = r.start(t, "floods standard error")
	require.NoError(t, r.env.Redis.HSet(t.Context(), "goods:s", "stock", 1).Err())
	a, err := p.Run(t.Context(), deduct("x"))
	require.NoError(t, err, "64 MiB of log are no error")
	require.Equal(t, model.Sold, a.Outcome)
	runtime.GC()
	runtime.ReadMemStats(&after)
	require.Less(t, int64(after.HeapAlloc)-int64(before.HeapAlloc), int64(16<<20))
}

func TestAPauseAndAKillReachWhatTheSubjectStarted(t *testing.T) {
	r := newRig(t)
	// A child that left its group and one that did not; each says its id.
	p, err := start(t.Context(), r.reaper, launch{redisURL: redisURL(r.redis.Addr()),
		command: `setsid sleep 1000 & sleep 1000 & ` + strings.Replace(subjecttest.Command("keeps every rule"), "exec ", "", 1)})
	require.NoError(t, err)
	defer p.Kill()
	var members []int
	require.Eventually(t, func() bool { // the shell starts them in its own time
		members, err = p.family.Members()
		return err == nil && len(members) >= 4
	}, time.Minute, time.Millisecond, "the shell, two children, the subject")
	require.NoError(t, p.Stop())
	for _, pid := range members {
		require.Equal(t, "T", state(t, pid))
	}
	require.NoError(t, p.Continue())
	require.NoError(t, r.env.Redis.HSet(t.Context(), "goods:s", "stock", 1).Err())
	a, err := p.Run(t.Context(), deduct("x"))
	require.NoError(t, err)
	require.Equal(t, model.Sold, a.Outcome)
	p.Kill()
	for _, pid := range members {
		require.Contains(t, "ZX", state(t, pid), "process %d is left", pid)
	}
}

// state is the process's state letter, X when there is none.
func state(t *testing.T, pid int) string {
	t.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "X"
	}
	return strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[0]
}

func TestASubjectSeesOnlyTheStoresOfItsRun(t *testing.T) {
	t.Setenv("REDIS_URL", "redis://production")
	t.Setenv("DATABASE_URL", "postgres://production")
	t.Setenv("STOCKPROOF_LEASE_MS", "7")
	env := launch{redisURL: "redis://127.0.0.1:1/0", client: "a", wait: 100 * time.Millisecond}.environment("M=1")
	var ours []string
	for _, v := range env {
		if strings.HasPrefix(v, "REDIS_URL") || strings.HasPrefix(v, "DATABASE_URL") || strings.HasPrefix(v, "STOCKPROOF_") {
			ours = append(ours, v)
		}
	}
	require.Equal(t, []string{"REDIS_URL=redis://127.0.0.1:1/0", "STOCKPROOF_CLIENT=a", "STOCKPROOF_WAIT_MS=100"}, ours)
}

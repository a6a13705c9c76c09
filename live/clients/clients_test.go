package clients

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/live/reaper"
	"stockproof/live/role"
	"stockproof/model"
	"stockproof/schemes"
)

// scripted answers by what the request is called; it needs no server.
type scripted struct{}

func (scripted) Name() string { return "scripted" }

func (scripted) Deduct(ctx context.Context, _ schemes.Env, req schemes.Request) (model.Outcome, error) {
	switch req.ID {
	case "panics":
		panic("on purpose")
	case "waits":
		<-make(chan struct{})
	case "fails":
		return model.Failed, fmt.Errorf("no luck")
	}
	return model.Sold, nil
}

func TestMain(m *testing.M) {
	schemes.Register(schemes.Entry{Scheme: scripted{}, Hidden: true})
	role.RunIfAsked()
	os.Exit(m.Run())
}

func startReaper(t *testing.T) *reaper.Reaper {
	t.Helper()
	r, err := reaper.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.Close()) })
	return r
}

func start(t *testing.T) *Process {
	t.Helper()
	p, err := Start(startReaper(t))
	require.NoError(t, err)
	t.Cleanup(p.Kill)
	require.NoError(t, p.Configure(t.Context(), Setup{Scheme: "scripted", Retries: "off"}))
	return p
}

func deduct(request string) Operation {
	return Operation{Op: model.Deduct, SKU: "s", Qty: 1, Request: request}
}

// state is the process's state letter in /proc.
func state(t *testing.T, p *Process) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(p.PID()), "stat"))
	require.NoError(t, err)
	return strings.Fields(string(raw[strings.LastIndexByte(string(raw), ')')+1:]))[0]
}

func TestAClientProcessRunsItsSchemeAndAnswers(t *testing.T) {
	p := start(t)
	a, err := p.Run(t.Context(), deduct("x"))
	require.NoError(t, err)
	require.Equal(t, Answer{Outcome: model.Sold}, a)
	a, err = p.Run(t.Context(), deduct("fails"))
	require.NoError(t, err)
	require.Equal(t, Answer{Outcome: model.Failed, Err: "no luck"}, a)
}

func TestAnUnknownSchemeIsRefused(t *testing.T) {
	err := start(t).Configure(t.Context(), Setup{Scheme: "magic"})
	require.ErrorContains(t, err, `unknown scheme "magic"`)
}

func TestWhatTheSchemeCannotDoFails(t *testing.T) {
	p := start(t)
	for _, op := range []model.Op{model.Restock, model.Read, "refund"} {
		a, err := p.Run(t.Context(), Operation{Op: op, SKU: "s", Qty: 1})
		require.NoError(t, err)
		require.Equal(t, model.Failed, a.Outcome)
		require.NotEmpty(t, a.Err)
	}
}

func TestAPanicOfTheSchemeIsAnUnknownOutcomeAndNotTheEndOfTheProcess(t *testing.T) {
	p := start(t)
	a, err := p.Run(t.Context(), deduct("panics"))
	require.NoError(t, err)
	require.Equal(t, model.Unknown, a.Outcome)
	a, err = p.Run(t.Context(), deduct("x"))
	require.NoError(t, err)
	require.Equal(t, model.Sold, a.Outcome)
}

func TestAKilledClientIsGoneInTheMiddleOfItsOperation(t *testing.T) {
	p := start(t)
	answered := make(chan error, 1)
	go func() {
		_, err := p.Run(context.Background(), deduct("waits"))
		answered <- err
	}()
	p.Kill()
	require.ErrorIs(t, <-answered, ErrGone)
	_, err := p.Run(t.Context(), deduct("x"))
	require.ErrorIs(t, err, ErrGone)
}

func TestAStoppedClientStandsStillUntilItIsContinued(t *testing.T) {
	p := start(t)
	require.NoError(t, p.Stop())
	require.Equal(t, "T", state(t, p))
	answered := make(chan Answer, 1)
	go func() {
		a, _ := p.Run(context.Background(), deduct("x"))
		answered <- a
	}()
	require.Empty(t, answered)
	require.NoError(t, p.Continue())
	require.Equal(t, model.Sold, (<-answered).Outcome)
}

func TestAStoppedClientCanBeKilled(t *testing.T) {
	p := start(t)
	require.NoError(t, p.Stop())
	p.Kill()
	<-p.Gone()
	require.Error(t, p.Stop())
}

func TestACancelledContextEndsTheProcessThatDoesNotAnswer(t *testing.T) {
	p := start(t)
	ctx, cancel := context.WithCancel(t.Context())
	answered := make(chan error, 1)
	go func() {
		_, err := p.Run(ctx, deduct("waits"))
		answered <- err
	}()
	cancel()
	require.ErrorIs(t, <-answered, context.Canceled)
	<-p.Gone()
}

func TestThePoolHandsOutTheProcessItWasHandedBack(t *testing.T) {
	pool := &Pool{reaper: startReaper(t), most: 1}
	defer pool.Close()
	p, err := pool.Get()
	require.NoError(t, err)
	pool.Put(p)
	again, err := pool.Get()
	require.NoError(t, err)
	require.Same(t, p, again)
	again.Kill()
}

func TestThePoolNeverHandsOutADeadProcess(t *testing.T) {
	pool := &Pool{reaper: startReaper(t), most: 1}
	defer pool.Close()
	p, err := pool.Get()
	require.NoError(t, err)
	pool.Put(p)
	p.Kill()
	next, err := pool.Get()
	require.NoError(t, err)
	require.NotSame(t, p, next)
	next.Kill()
}

func TestAClosedPoolEndsWhatItHasAndWhatComesLate(t *testing.T) {
	pool := &Pool{reaper: startReaper(t), most: 2}
	idle, err := pool.Get()
	require.NoError(t, err)
	late, err := pool.Get()
	require.NoError(t, err)
	pool.Put(idle)
	pool.Close()
	<-idle.Gone()
	pool.Put(late)
	<-late.Gone()
}

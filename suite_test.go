package stockproof_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/role"
	"stockproof/live/servers"
	"stockproof/model"
	"stockproof/schemes"
	_ "stockproof/schemes/thirdparty" // registers its schemes
)

// The servers are started once for the whole test binary, by the first test
// that needs them.
var shared struct {
	once  sync.Once
	world *live.World
	err   error
}

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	// Most of a live run is waiting, for a lease or for the other runs' turn; how
	// many really go on at once is the world's to say.
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", "8"); err != nil {
			panic(err) // the testing package has had this flag since Go 1.1
		}
	}
	debug.SetGCPercent(400) // as the commands do
	if os.Getenv(servers.EnvLive) == "off" {
		fmt.Fprintln(os.Stderr, "live tests are left out: "+servers.EnvLive+"=off")
	}
	// A signal ends the servers in order; the reaper does it for everything else.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ended := context.AfterFunc(ctx, func() {
		closeWorld()
		os.Exit(130)
	})
	defer ended()
	status := m.Run()
	if err := closeWorld(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(status, 1)
	}
	return status
}

func closeWorld() error {
	if shared.world == nil {
		return nil
	}
	return shared.world.Close()
}

// liveWorld is the world with servers. Leaving it out takes an explicit wish;
// having no backend is a failure.
func liveWorld(t testing.TB) *live.World {
	t.Helper()
	shared.once.Do(func() {
		choice, err := servers.Choose(context.Background(), os.Getenv)
		if err != nil {
			shared.err = err
			return
		}
		fmt.Fprintf(os.Stderr, "live tests: %s (%s)\n", choice.Backend, choice.Why)
		shared.world, shared.err = live.Open(context.Background(), choice.Backend)
	})
	if errors.Is(shared.err, servers.ErrLiveOff) {
		t.Skip(shared.err)
	}
	require.NoError(t, shared.err)
	return shared.world
}

func entry(t testing.TB, name string) schemes.Entry {
	t.Helper()
	e, err := schemes.ByName(name)
	require.NoError(t, err)
	return e
}

func workload(t testing.TB, name string) faults.Workload {
	t.Helper()
	w, err := faults.WorkloadByName(name)
	require.NoError(t, err)
	return w
}

// sale is one run with a fault at an exact place.
func sale(t *testing.T, scheme, load, retries string, p faults.Placement) *live.Run {
	t.Helper()
	run, err := liveWorld(t).Run(t.Context(), live.Case{
		Entry: entry(t, scheme), Workload: workload(t, load), Retries: retries, Placement: p,
	})
	require.NoError(t, err)
	require.NoError(t, run.Check(""))
	require.True(t, run.Fired, "%s did not fire", p)
	t.Cleanup(func() {
		if t.Failed() {
			for _, s := range run.Steps {
				t.Logf("%s  %s  => %s  %s", faults.ClientName(s.Client), s.Command, s.Reply, s.Fault)
			}
			for _, o := range run.History.Ops {
				t.Log(o)
			}
			t.Log(run.Notes)
		}
	})
	return run
}

// groupOf is the group of which a run is the only one.
func groupOf(run *live.Run) *live.Group {
	c := run.Case
	return &live.Group{Entry: c.Entry, Fault: c.Placement.Kind, Setting: c.Placement.Setting, Workload: c.Workload, Retries: c.Retries,
		Plan: []faults.Placement{c.Placement}, Runs: []*live.Run{run}}
}

// requireBroken wants exactly this amount of a property.
func requireBroken(t *testing.T, run *live.Run, p model.Property, amount int64) {
	t.Helper()
	f := run.Finding(p)
	require.True(t, f.Evaluated, "%s: %s", p, f.Detail)
	require.Equal(t, amount, f.Amount, "%s: %s", p, f.Detail)
	require.True(t, f.Broken, "%s holds", p)
	requireSchedule(t, run, p)
}

// requireHeld wants properties that were evaluated and kept.
func requireHeld(t *testing.T, run *live.Run, ps ...model.Property) {
	t.Helper()
	for _, p := range ps {
		f := run.Finding(p)
		require.True(t, f.Evaluated, "%s: %s", p, f.Detail)
		require.False(t, f.Broken, "%s: %s", p, f.Detail)
	}
}

//go:build !nolive

package stockproof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live"
	"stockproof/live/role"
	"stockproof/live/servers"
	"stockproof/schemes"
)

// The servers are started once for the whole test binary, by whom needs them first.
var shared struct {
	once   sync.Once
	world  *live.World
	chosen servers.Choice
	err    error
}

// hooked says that Main runs the tests.
var hooked bool

// Main runs the tests of a package that judges schemes on real servers: clients are
// processes of the same test binary, which have to know the schemes.
//
//	func TestMain(m *testing.M) { stockproof.Main(m, mine{}) }
//
// It does not return. The servers that were started are stopped before it ends the
// process, and by a watcher when the process dies.
func Main(m *testing.M, own ...Scheme) {
	for _, s := range own {
		// Both stores, whatever it uses: which, the options of Verify say.
		schemes.Register(schemes.Entry{Scheme: s, Stores: schemes.Stores{Redis: true, SQL: true}, Hidden: true})
	}
	role.RunIfAsked()
	hooked = true
	status := m.Run()
	if shared.world != nil {
		if err := shared.world.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = max(status, 1)
		}
	}
	os.Exit(status)
}

// errNotHooked says what is missing for live runs.
var errNotHooked = errors.New("clients are processes of this test binary, so its package needs func TestMain(m *testing.M) { stockproof.Main(m, yourScheme{}) }")

// world is the one of the test binary.
func (p *plan) world() (*live.World, error) {
	if _, err := schemes.ByName(p.entry.Scheme.Name()); err != nil || !hooked {
		return nil, fmt.Errorf("%w: %w", ErrUsage, errNotHooked)
	}
	shared.once.Do(func() {
		ctx := context.Background() // it outlives the test that asks first
		if shared.chosen, shared.err = servers.Choose(ctx, os.Getenv); shared.err == nil {
			shared.world, shared.err = live.Open(ctx, shared.chosen.Backend)
		}
	})
	return shared.world, shared.err
}

func (p *plan) live(ctx context.Context, report *evidence.Report, dir string) error {
	kinds := faults.Within(p.kinds, live.KindsFor(p.entry))
	if len(kinds) == 0 {
		return nil
	}
	world, err := p.world()
	if err != nil {
		return err
	}
	report.Bounds.AddLive(shared.chosen.Backend, world.Servers.Versions, p.loads)
	for _, load := range p.loads {
		for _, kind := range kinds {
			for _, retries := range evidence.RetriesFor(kind, served(p.retries, live.RetriesFor(p.entry))) {
				for _, setting := range evidence.SettingsFor(p.entry, kind) {
					g := live.Group{Entry: p.entry, Fault: kind, Setting: setting, Workload: load, Retries: retries}
					if err := world.RunGroup(ctx, &g, dir); err != nil {
						return err
					}
					report.Cells = append(report.Cells, evidence.FromLive(&g)...)
				}
			}
		}
	}
	return nil
}

func served(some, all []string) []string {
	return slices.DeleteFunc(slices.Clone(some), func(s string) bool { return !slices.Contains(all, s) })
}

func (p *plan) replayLive(ctx context.Context, s *schedule.Schedule) error {
	world, err := p.world()
	if err != nil {
		return err
	}
	return world.Replay(ctx, s, live.ReplayOptions{})
}

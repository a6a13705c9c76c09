//go:build !nolive

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/role"
	"stockproof/live/servers"
	"stockproof/schemes"
)

// playRole lets this process be a client or a reaper when it was started as one.
func playRole() { role.RunIfAsked() }

// liveStatus is the exit status of an error of the live world, if it is one.
func liveStatus(err error) (status int, known bool) {
	var (
		value   *servers.BadValueError
		backend *servers.NoBackendError
	)
	switch {
	case errors.As(err, &backend), errors.Is(err, servers.ErrLiveOff):
		return evidence.ExitNoBackend, true
	case errors.As(err, &value):
		return evidence.ExitUsage, true
	}
	return subjectStatus(err)
}

// liveKinds keeps the kinds that are placed in live runs of a scheme.
func liveKinds(e schemes.Entry, kinds []faults.Kind) []faults.Kind {
	return faults.Within(kinds, live.KindsFor(e))
}

func verifyLive(cmd *cobra.Command, o verifyOptions, s selection, report *evidence.Report) (err error) {
	ctx := cmd.Context()
	declared, err := readDeclared(o.declared)
	if err != nil {
		return err
	}
	choice, err := servers.Choose(ctx, os.Getenv)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "live: %s (%s)\n", choice.Backend, choice.Why)
	world, err := live.Open(ctx, choice.Backend)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := world.Close(); err == nil {
			err = closeErr
		}
	}()
	if len(o.subjects) > 0 {
		opened, close, err := openSubjects(cmd, world, o, declared, s.loads, s.kinds)
		defer close()
		if err != nil {
			return err
		}
		s.entries = opened
		report.Bounds.AddSubjects()
	}
	report.Bounds.AddLive(choice.Backend, world.Servers.Versions, s.loads)
	s.kinds = faults.Within(s.kinds, live.Kinds())
	lab := explore.NewLab()
	defer func() { err = errors.Join(err, lab.Close()) }()
	g := liveGroups{cmd: cmd, world: world, out: o.out, report: report, part: o.part, schedules: evidence.NewLiveSchedules(lab, o.out),
		bar: newBar(cmd, len(s.entries)*len(s.kinds)*len(s.loads)*len(s.retries))}
	defer g.bar.Close()
	for _, e := range s.entries {
		for _, load := range s.loads {
			for _, retries := range s.retries {
				if !slices.Contains(live.RetriesFor(e), retries) {
					g.bar.Add(len(s.kinds))
					continue
				}
				if !serves(e, load) {
					fmt.Fprintf(cmd.ErrOrStderr(), "%s has no restock: workload %s is left out\n", e.Scheme.Name(), load.Name)
					g.bar.Add(len(s.kinds))
					continue
				}
				kinds := liveKinds(e, s.kinds)
				g.bar.Add(len(s.kinds) - len(kinds))
				if err := g.verify(ctx, e, load, retries, kinds); err != nil {
					return err
				}
			}
		}
	}
	if report.Bounds.Explore == nil {
		return nil
	}
	if o.confirm == "off" {
		report.Bounds.Unconfirmed = confirmOff
		return nil
	}
	return confirmWitnesses(cmd, world, choice.Backend, o, report)
}

// confirmExplored replays what explore found alone, where there is a backend.
func confirmExplored(cmd *cobra.Command, o verifyOptions, report *evidence.Report) (err error) {
	switch {
	case o.confirm == "off":
		report.Bounds.Unconfirmed = confirmOff
		return nil
	case !evidence.HasWitness(report.Cells) && o.confirm == "auto":
		return nil // nothing to replay, so no servers to start
	}
	ctx := cmd.Context()
	choice, err := servers.Choose(ctx, os.Getenv)
	var bad *servers.BadValueError
	if err != nil {
		if o.confirm == "require" || errors.As(err, &bad) || ctx.Err() != nil {
			return err
		}
		report.Bounds.Unconfirmed = err.Error()
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "confirm: %s (%s); --confirm off leaves it out\n", choice.Backend, choice.Why)
	world, err := live.Open(ctx, choice.Backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	return confirmWitnesses(cmd, world, choice.Backend, o, report)
}

// confirmWitnesses replays what explore found on real servers.
func confirmWitnesses(cmd *cobra.Command, world *live.World, backend servers.Backend, o verifyOptions, report *evidence.Report) error {
	var shown *bar
	sum, err := evidence.Confirm(cmd.Context(), world, report.Cells, o.out, o.confirmTime, func(of int) {
		if shown == nil {
			shown = newBar(cmd, of)
			shown.Describe("confirm witnesses")
		}
		shown.Add(1)
	})
	if shown != nil {
		shown.Close()
	}
	sum.Backend = string(backend)
	report.Bounds.Confirmed = &sum
	return err
}

// liveGroups is where the groups of a live verify run, and where their verdicts go.
type liveGroups struct {
	cmd       *cobra.Command
	world     *live.World
	schedules *evidence.LiveSchedules
	out       string
	bar       *bar
	report    *evidence.Report
	part      *evidence.Shard
}

// verify runs every fault for one scheme, workload and retry setting.
func (g liveGroups) verify(ctx context.Context, e schemes.Entry, load faults.Workload, retries string, kinds []faults.Kind) error {
	if isSubject(e) {
		return g.verifySubject(ctx, e, load, retries, kinds)
	}
	for _, kind := range kinds {
		g.bar.Describe(fmt.Sprintf("%s × %s × %s", e.Scheme.Name(), kind, load.Name))
		for _, setting := range evidence.SettingsFor(e, kind) {
			if !slices.Contains(faults.RetriesFor(kind), retries) {
				continue
			}
			if !g.part.Mine() {
				continue
			}
			group := live.Group{Entry: e, Fault: kind, Setting: setting, Workload: load, Retries: retries}
			if err := g.run(ctx, &group); err != nil {
				return err
			}
		}
		g.bar.Add(1)
	}
	return nil
}

func (g liveGroups) run(ctx context.Context, group *live.Group) error {
	if err := g.world.RunGroup(ctx, group, g.out); err != nil {
		return err
	}
	cells := evidence.FromLive(group)
	g.report.Cells = append(g.report.Cells, cells...)
	if faults.HitsServer(group.Fault) {
		return nil // their histories are the witnesses; a draft has no line for a server
	}
	differ, err := g.schedules.Write(ctx, cells, group.Runs)
	for _, d := range differ {
		fmt.Fprintf(g.cmd.ErrOrStderr(), "live and explore differ: %s\n", d)
	}
	return err
}

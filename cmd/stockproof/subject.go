//go:build !nolive

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/clients"
	"stockproof/live/subject"
	"stockproof/schemes"
)

// subjectStatus is the exit status of an error of a subject: one that does not
// start or breaks a rule of the protocol is bad input, one that ends in the middle
// of a run leaves everything open.
func subjectStatus(err error) (status int, known bool) {
	var (
		start    *subject.StartError
		protocol *subject.ProtocolError
		declare  *subject.DeclareError
	)
	known = errors.As(err, &start) || errors.As(err, &protocol) || errors.As(err, &declare)
	return evidence.ExitUsage, known
}

func isSubject(e schemes.Entry) bool {
	_, foreign := e.Scheme.(clients.Launcher)
	return foreign
}

// serves says whether a scheme has what a workload asks for.
func serves(e schemes.Entry, load faults.Workload) bool {
	s, ok := e.Scheme.(interface{ Restocks() bool })
	return !ok || s.Restocks() || !load.Restocks()
}

// readDeclared reads what --declare names, by the names of subjects.
func readDeclared(paths []string) (map[string]schemes.Guarantees, error) {
	declared := map[string]schemes.Guarantees{}
	for _, path := range paths {
		d, err := subject.ReadDeclared(path)
		if err != nil {
			return nil, err
		}
		if _, twice := declared[d.Subject]; twice {
			return nil, usageError{fmt.Errorf("--declare %s: %s has been declared before", path, d.Subject)}
		}
		declared[d.Subject] = d.Guarantees
	}
	return declared, nil
}

// openSubjects starts what --subject names. close ends it, also after an error.
func openSubjects(cmd *cobra.Command, world *live.World, o verifyOptions, declared map[string]schemes.Guarantees, loads []faults.Workload, kinds []faults.Kind) (entries []schemes.Entry, close func(), err error) {
	var opened []*subject.Scheme
	close = func() {
		for _, s := range opened {
			s.Close()
		}
	}
	used := map[string]bool{}
	for _, command := range o.subjects {
		s, err := world.OpenSubject(cmd.Context(), subject.Options{Command: command, Start: o.start})
		if err != nil {
			return nil, close, err
		}
		opened = append(opened, s)
		promises, said := declared[s.Hello.Name]
		if used[s.Hello.Name] = true; !said {
			promises = subject.Undeclared()
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: nothing declared, so every law of safety is promised\n", s.Name())
		}
		e := s.Entry(promises)
		if slices.ContainsFunc(entries, func(o schemes.Entry) bool { return o.Scheme.Name() == s.Name() }) {
			return nil, close, usageError{fmt.Errorf("two subjects call themselves %s", s.Name())}
		}
		if len(liveKinds(e, kinds)) == 0 {
			return nil, close, usageError{fmt.Errorf("--fault: none of these is placed for %s: faults of servers are not placed for subjects, and client-pause-short only for those that name leases", s.Name())}
		}
		if !slices.ContainsFunc(loads, func(w faults.Workload) bool { return serves(e, w) }) {
			return nil, close, usageError{fmt.Errorf("%s has no restock, which the workload asks for", s.Name())}
		}
		entries = append(entries, e)
	}
	for name := range declared {
		if !used[name] {
			return nil, close, usageError{fmt.Errorf("--declare: no subject calls itself %s", name)}
		}
	}
	return entries, close, nil
}

// verifySubject runs every fault for one subject, workload and retry setting, at
// every place that any of several fault-free runs has. No schedules are written:
// explore, which completes and replays them, runs Go code only.
func (g liveGroups) verifySubject(ctx context.Context, e schemes.Entry, load faults.Workload, retries string, kinds []faults.Kind) error {
	observed, err := g.observe(ctx, e, load, retries)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		g.bar.Describe(fmt.Sprintf("%s × %s × %s", e.Scheme.Name(), kind, load.Name))
		group := live.Group{Entry: e, Fault: kind, Workload: load, Retries: retries, Plan: observed.Plan(kind)}
		if group.Runs, err = g.world.RunAll(ctx, e, load, retries, group.Plan, g.out); err != nil {
			return err
		}
		cells := evidence.FromLive(&group)
		g.report.Cells = append(g.report.Cells, cells...)
		if err := evidence.WriteSteps(g.out, cells, group.Runs); err != nil {
			return err
		}
		g.bar.Add(1)
	}
	return nil
}

// observe finds the steps of a subject by running it with no fault. It may make
// other steps every time; that is said, and written into the evidence.
func (g liveGroups) observe(ctx context.Context, e schemes.Entry, load faults.Workload, retries string) (faults.Observed, error) {
	observed, err := g.world.ObserveSubject(ctx, e, load, retries)
	if err != nil {
		return nil, err
	}
	for _, d := range observed.Differences() {
		d = fmt.Sprintf("%s × %s: %s", e.Scheme.Name(), load.Name, d)
		fmt.Fprintln(g.cmd.ErrOrStderr(), d)
		g.report.Bounds.Differences = append(g.report.Bounds.Differences, d)
	}
	return observed, nil
}

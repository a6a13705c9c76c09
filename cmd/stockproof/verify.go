package main

import (
	"context"
	"fmt"
	"os"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"
	"golang.org/x/term"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/servers"
	"stockproof/schemes"
)

// verifyOptions are the flags of verify.
type verifyOptions struct {
	world, out, format                 string
	schemes, faults, loads, allRetries []string
}

func verifyCommand() *cobra.Command {
	var o verifyOptions
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Fill the matrix: every scheme × fault × workload × property",
		Long: `Fill the matrix: every scheme × fault × workload × property.

Exit status: 0 every verdict is as the scheme declares it, 1 one is not,
2 bad usage, 3 no backend for live runs, 4 a verdict is inconclusive.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return verify(cmd, o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.world, "world", "live", "live")
	f.StringVar(&o.out, "out", "evidence", "folder for evidence.json, histories and pictures")
	f.StringVar(&o.format, "format", "text", "what to print: text, json, markdown or junit")
	f.StringSliceVar(&o.schemes, "scheme", nil, "only these schemes (default: all)")
	f.StringSliceVar(&o.faults, "fault", nil, "only these faults (default: all)")
	f.StringSliceVar(&o.loads, "workload", nil, "only these workloads (default: all)")
	f.StringSliceVar(&o.allRetries, "retries", live.Retries(), "retry settings of go-redis: off, default")
	return cmd
}

// selection is what the flags ask for.
type selection struct {
	entries []schemes.Entry
	kinds   []faults.Kind
	loads   []faults.Workload
	retries []string
}

func (o verifyOptions) selection() (s selection, err error) {
	if err := oneOf("world", o.world, "live"); err != nil {
		return s, err
	}
	if err := oneOf("format", o.format, evidence.Formats()...); err != nil {
		return s, err
	}
	for _, r := range o.allRetries {
		if err := oneOf("retries", r, live.Retries()...); err != nil {
			return s, err
		}
	}
	s.retries = o.allRetries
	s.entries, s.kinds, s.loads = schemes.All(), live.Kinds(), faults.Workloads()
	if len(o.schemes) > 0 {
		s.entries = nil
		for _, name := range o.schemes {
			e, err := schemes.ByName(name)
			if err != nil {
				return s, err
			}
			s.entries = append(s.entries, e)
		}
	}
	if len(o.faults) > 0 {
		s.kinds = nil
		for _, name := range o.faults {
			k, err := faults.ParseKind(name)
			if err != nil {
				return s, err
			}
			s.kinds = append(s.kinds, k)
		}
	}
	if len(o.loads) > 0 {
		s.loads = nil
		for _, name := range o.loads {
			w, err := faults.WorkloadByName(name)
			if err != nil {
				return s, err
			}
			s.loads = append(s.loads, w)
		}
	}
	return s, nil
}

func verify(cmd *cobra.Command, o verifyOptions) error {
	s, err := o.selection()
	if err != nil {
		return err
	}
	report := evidence.Report{Schema: evidence.Schema}
	if err := verifyLive(cmd, o, s, &report); err != nil {
		return err
	}
	evidence.Sort(report.Cells)
	path, err := report.WriteFile(o.out)
	if err != nil {
		return err
	}
	if err := report.Render(cmd.OutOrStdout(), o.format); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "evidence: %s\n", path)
	if status := report.Exit(); status != evidence.ExitOK {
		return statusError(status)
	}
	return nil
}

func verifyLive(cmd *cobra.Command, o verifyOptions, s selection, report *evidence.Report) (err error) {
	ctx := cmd.Context()
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
	report.Bounds = evidence.LiveBounds(choice.Backend, world.Servers.Versions, s.loads)
	bar := progress(cmd, len(s.entries)*len(s.kinds)*len(s.loads)*len(s.retries))
	for _, e := range s.entries {
		for _, load := range s.loads {
			for _, retries := range s.retries {
				if err := verifyGroup(ctx, world, e, load, retries, s.kinds, o.out, bar, report); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// verifyGroup runs every fault for one scheme, workload and retry setting.
func verifyGroup(ctx context.Context, world *live.World, e schemes.Entry, load faults.Workload, retries string, kinds []faults.Kind, out string, bar *progressbar.ProgressBar, report *evidence.Report) error {
	steps, err := world.Observe(ctx, e, load, retries)
	if err != nil {
		return err
	}
	for _, kind := range kinds {
		bar.Describe(fmt.Sprintf("%s × %s × %s", e.Scheme.Name(), kind, load.Name))
		plan := faults.Plan(kind, steps)
		runs, err := world.RunAll(ctx, e, load, retries, plan, out)
		if err != nil {
			return err
		}
		report.Cells = append(report.Cells, evidence.FromLive(e, kind, load, retries, len(plan), runs)...)
		if err := bar.Add(1); err != nil {
			return err
		}
	}
	return nil
}

// progress is a bar on standard error when that is a terminal, else nothing.
func progress(cmd *cobra.Command, steps int) *progressbar.ProgressBar {
	f, ok := cmd.ErrOrStderr().(*os.File)
	visible := ok && term.IsTerminal(int(f.Fd()))
	return progressbar.NewOptions(steps,
		progressbar.OptionSetWriter(cmd.ErrOrStderr()), progressbar.OptionSetVisibility(visible),
		progressbar.OptionShowCount(), progressbar.OptionClearOnFinish())
}

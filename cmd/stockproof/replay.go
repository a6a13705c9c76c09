package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	world, engine, loss, format string
}

func replayCommand() *cobra.Command {
	var o replayOptions
	cmd := &cobra.Command{
		Use:   "replay FILE…",
		Short: "Run schedules again and compare every reply",
		Long: `Run schedules again and compare every reply, the counter after every step, the
answers, the end, and the laws that are broken. The first difference is told
with its line.

--format ascii and --format mermaid draw the sequence diagram of what was run,
so that only what really happens is drawn.

In live every step is held at its proxy until its turn, crashes and pauses are
signals, and leases are really waited for, with all times stretched by the same
factor.

Exit status: 0 everything is as recorded, 1 it is not, 2 a file cannot be read
or has a bad line, 3 no backend for --world live, 4 real servers cannot be made
to do what a file says, or the machine is too slow for its times.`,
		Example: "  stockproof replay testdata/schedules/lock-pause-oversell.schedule",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("replay needs at least one schedule file")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return replay(cmd, o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.world, "world", "explore", "explore, or live for real servers")
	f.StringVar(&o.engine, "engine", "miniredis", "what answers Redis commands in explore: miniredis, or redis for a real redis-server")
	f.StringVar(&o.loss, "loss", losses()[0], "how Redis loses writes in live: "+strings.Join(losses(), ", "))
	f.StringVar(&o.format, "format", "text", "text, or a sequence diagram: ascii or mermaid")
	return cmd
}

func replay(cmd *cobra.Command, o replayOptions, paths []string) (err error) {
	if err := oneOf("world", o.world, "explore", "live"); err != nil {
		return err
	}
	if err := oneOf("engine", o.engine, "miniredis", "redis"); err != nil {
		return err
	}
	if err := oneOf("format", o.format, "text", "ascii", "mermaid"); err != nil {
		return err
	}
	if err := oneOf("loss", o.loss, losses()...); err != nil {
		return err
	}
	// Every file is read first: a bad one must not hide behind the verdict of a
	// good one.
	var all []*schedule.Schedule
	for _, path := range paths {
		s, err := schedule.ReadFile(path)
		if err != nil {
			return usageError{err}
		}
		if _, err := schemes.ByName(s.Scheme); err != nil {
			return usageError{&schedule.LineError{File: path, Line: s.Notes[schedule.PartScheme].Line, Reason: err.Error()}}
		}
		all = append(all, s)
	}
	run, atOnce, closeWorld := exploreReplays(o)
	if o.world == "live" {
		if run, atOnce, closeWorld, err = openReplays(cmd, o.loss); err != nil {
			return err
		}
	}
	defer func() { err = errors.Join(err, closeWorld()) }()
	results := make([]error, len(all))
	running, ctx := errgroup.WithContext(cmd.Context())
	running.SetLimit(atOnce)
	for i, s := range all {
		running.Go(func() error {
			results[i] = run(ctx, s)
			return decided(paths[i], results[i])
		})
	}
	if err := running.Wait(); err != nil {
		return err
	}
	status := evidence.ExitOK
	for i, s := range all {
		if err := showReplay(cmd.OutOrStdout(), o, paths[i], s, results[i]); err != nil {
			return err
		}
	}
	for _, err := range results {
		switch {
		case showsNothing(err):
			if status == evidence.ExitOK {
				status = evidence.ExitInconclusive
			}
		case err != nil:
			status = evidence.ExitBroken // weighs more than what is not known
		}
	}
	if status != evidence.ExitOK {
		return statusError(status)
	}
	return nil
}

// exploreReplays replays in a laboratory, one schedule after another.
func exploreReplays(o replayOptions) (replay func(context.Context, *schedule.Schedule) error, atOnce int, close func() error) {
	lab := explore.NewLab()
	return func(_ context.Context, s *schedule.Schedule) error { return exploreError(lab.Replay(s, o.engine)) }, 1, lab.Close
}

// decided passes on an error that is no result of a replay.
func decided(path string, err error) error {
	var diverged *schedule.DivergenceError
	if err == nil || errors.As(err, &diverged) || showsNothing(err) {
		return nil
	}
	return fmt.Errorf("%s: %w", path, err)
}

func showReplay(w io.Writer, o replayOptions, path string, s *schedule.Schedule, result error) error {
	var text string
	var diverged *schedule.DivergenceError
	switch {
	case showsNothing(result):
		text = fmt.Sprintf("%s: inconclusive in %s: %v\n", path, o.world, result)
	case errors.As(result, &diverged):
		text = fmt.Sprintf("%s:%d: not as recorded in %s\n  line      %s\n  expected  %s\n  seen      %s\n",
			path, diverged.Line, o.world, strings.Join(strings.Fields(diverged.Text), " "), diverged.Expected, diverged.Seen)
	case o.format == "mermaid":
		text = s.Mermaid()
	case o.format == "ascii":
		text = s.ASCII()
	default:
		text = fmt.Sprintf("%s: as recorded in %s, %d steps, violates %s\n", path, o.world, len(s.Steps), s.ViolatesText())
	}
	_, err := io.WriteString(w, text)
	return err
}

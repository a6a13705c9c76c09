package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// replayOptions are the flags of replay.
type replayOptions struct {
	world, engine, format string
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

Exit status: 0 everything is as recorded, 1 it is not, 2 a file cannot be read
or has a bad line, 3 no backend for --world live.`,
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
	run := replayLive
	if o.world == "explore" {
		lab := explore.NewLab()
		defer func() { err = errors.Join(err, lab.Close()) }()
		run = func(_ context.Context, s *schedule.Schedule) error { return exploreError(lab.Replay(s, o.engine)) }
	}
	status := evidence.ExitOK
	for i, s := range all {
		err := run(cmd.Context(), s)
		var diverged *schedule.DivergenceError
		if err != nil && !errors.As(err, &diverged) {
			return fmt.Errorf("%s: %w", paths[i], err)
		}
		if diverged != nil {
			status = evidence.ExitBroken
		}
		if err := showReplay(cmd.OutOrStdout(), o, paths[i], s, diverged); err != nil {
			return err
		}
	}
	if status != evidence.ExitOK {
		return statusError(status)
	}
	return nil
}

// replayLive runs a schedule on real servers.
func replayLive(context.Context, *schedule.Schedule) error {
	return usageError{errors.New("--world live: schedules are not replayed on real servers yet")}
}

func showReplay(w io.Writer, o replayOptions, path string, s *schedule.Schedule, diverged *schedule.DivergenceError) error {
	var text string
	switch {
	case diverged != nil:
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

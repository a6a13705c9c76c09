//go:build !nolive

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/live"
	"stockproof/live/servers"
	"stockproof/live/subject"
)

func subjectCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "subject",
		Short: "Help with programs of others that are to be judged",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(subjectCheckCommand())
	return cmd
}

// subjectCheckOptions are the flags of subject check.
type subjectCheckOptions struct {
	format         string
	start, timeout time.Duration
}

func subjectCheckCommand() *cobra.Command {
	var o subjectCheckOptions
	cmd := &cobra.Command{
		Use:   "check COMMAND",
		Short: "Try every rule of the protocol on a subject",
		Long: `Try every rule of the protocol on a subject: docs/subject-protocol.md has them.

Exit status: 0 every rule is kept, 1 one is not, 2 bad usage, 3 no backend.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{errors.New("subject check needs one argument, the command in quotes")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return checkSubject(cmd, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "text", "text or json")
	f.DurationVar(&o.start, "start", subject.DefaultStart, "how long it may take to start")
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "how long an answer may take")
	return cmd
}

func checkSubject(cmd *cobra.Command, command string, o subjectCheckOptions) (err error) {
	if err := oneOf("format", o.format, "text", "json"); err != nil {
		return err
	}
	if o.start <= 0 || o.timeout <= 0 {
		return usageError{errors.New("--start and --timeout: want a time above 0")}
	}
	choice, err := servers.Choose(cmd.Context(), os.Getenv)
	if err != nil {
		return err
	}
	world, err := live.Open(cmd.Context(), choice.Backend)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := world.Close(); err == nil {
			err = closeErr
		}
	}()
	var told func(subject.Result)
	if o.format == "text" {
		told = func(r subject.Result) {
			fmt.Fprintf(cmd.OutOrStdout(), "%-11s  %-10s  %s\n", r.Status, r.Rule, r.Says)
			if r.Reason != "" {
				fmt.Fprintf(cmd.OutOrStdout(), "%-11s  %-10s  %s\n", "", "", r.Reason)
			}
		}
	}
	results, err := world.CheckSubject(cmd.Context(), subject.Options{Command: command, Start: o.start}, o.timeout, told)
	if err != nil {
		return err
	}
	if o.format == "json" {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(results); err != nil {
			return err
		}
	}
	if !subject.Conforms(results) {
		return statusError(evidence.ExitBroken)
	}
	return nil
}

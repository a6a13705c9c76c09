// Command stockproof proves what flash-sale stock-deduction schemes really do.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/schemes"
	_ "stockproof/schemes/thirdparty" // registers its schemes
)

func main() {
	playRole()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// statusError carries an exit status that is not about an error: the command
// did what it was asked, and what it found is not as declared.
type statusError int

func (e statusError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// usageError marks bad usage and bad input.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// run is main without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := &cobra.Command{
		Use:                        "stockproof",
		Short:                      "Prove what flash-sale stock-deduction schemes really do",
		SilenceErrors:              true,
		SilenceUsage:               true,
		SuggestionsMinimumDistance: 2,
		// Without an argument the help is the answer, with a wrong one it is not.
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.CompletionOptions.DisableDefaultCmd = true
	root.AddCommand(verifyCommand(), exploreCommand(), replayCommand(), soakCommand(), benchCommand(), checkCommand(), reportCommand(), mergeCommand(), diffCommand(), subjectCommand(), initCommand(), listCommand())
	err := root.ExecuteContext(ctx)
	return status(err, stderr)
}

// status is the exit status of an error, which is printed unless it only
// carries the status.
func status(err error, stderr io.Writer) int {
	if err == nil {
		return evidence.ExitOK
	}
	var s statusError
	if errors.As(err, &s) {
		return int(s)
	}
	fmt.Fprintf(stderr, "stockproof: %v\n", err)
	var (
		usage    usageError
		scheme   *schemes.UnknownSchemeError
		kind     *faults.UnknownKindError
		workload *faults.UnknownWorkloadError
		setting  *faults.UnknownSettingError
	)
	if s, known := liveStatus(err); known {
		return s
	}
	if errors.As(err, &usage) || errors.As(err, &scheme) || errors.As(err, &kind) || errors.As(err, &workload) || errors.As(err, &setting) {
		return evidence.ExitUsage
	}
	// A run that broke down says nothing about the scheme.
	return evidence.ExitInconclusive
}

// noArguments is cobra.NoArgs with an error that is known as bad usage.
func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %q; %s --help shows what there is", args[0], cmd.CommandPath())
	if close := cmd.SuggestionsFor(args[0]); len(close) > 0 {
		err = fmt.Errorf("unknown command %q; did you mean %s?", args[0], strings.Join(close, " or "))
	}
	return usageError{err}
}

// oneOf is a usage error unless value is among the allowed.
func oneOf(flag, value string, allowed ...string) error {
	for _, a := range allowed {
		if value == a {
			return nil
		}
	}
	return usageError{fmt.Errorf("--%s %q: there are %s", flag, value, strings.Join(allowed, ", "))}
}

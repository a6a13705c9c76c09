package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/histories"
	"stockproof/model"
)

func checkCommand() *cobra.Command {
	var timeout time.Duration
	var picture string
	cmd := &cobra.Command{
		Use:   "check FILE…",
		Short: "Judge recorded histories",
		Long: `Judge recorded histories (JSON Lines): is each linearizable for the stock
model, and which laws can be shown broken from the answers alone.

Exit status: 0 all linearizable and no law broken, 1 not, 2 a file cannot be
read or has a bad line, 4 porcupine did not decide in time.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{fmt.Errorf("check needs at least one history file")}
			}
			if picture != "" && len(args) > 1 {
				return usageError{fmt.Errorf("--picture draws a single history, not %d", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			// Every file is read first: a bad one must not hide behind the verdict
			// of a good one.
			var all []histories.History
			for _, path := range args {
				h, err := histories.ReadFile(path)
				if err != nil {
					return usageError{err}
				}
				all = append(all, h)
			}
			status := evidence.ExitOK
			for i, h := range all {
				s, err := check(cmd.OutOrStdout(), args[i], h, timeout, picture)
				if err != nil {
					return err
				}
				if s == evidence.ExitBroken || status == evidence.ExitOK {
					status = s
				}
			}
			if status != evidence.ExitOK {
				return statusError(status)
			}
			return nil
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", time.Minute, "longest time porcupine may take for one file")
	cmd.Flags().StringVar(&picture, "picture", "", "write porcupine's picture of a single history to this HTML file")
	return cmd
}

func check(w io.Writer, path string, h histories.History, timeout time.Duration, picture string) (int, error) {
	c := histories.Check(h, timeout)
	fmt.Fprintf(w, "%s: %s, %d operations, %d units\n", path, c.Verdict, len(h.Ops), h.Initial)
	broken := c.Verdict == histories.NonLinearizable
	for _, f := range model.Laws(h.Ops, model.Rest{Initial: h.Initial}) {
		if f.Broken {
			broken = true
			fmt.Fprintf(w, "  %s = %d: %s\n", f.Property, f.Amount, f.Detail)
		}
	}
	if picture != "" {
		if err := c.Picture(picture); err != nil {
			return 0, err
		}
	}
	switch {
	case broken:
		return evidence.ExitBroken, nil
	case c.Verdict == histories.Undecided:
		return evidence.ExitInconclusive, nil
	}
	return evidence.ExitOK, nil
}

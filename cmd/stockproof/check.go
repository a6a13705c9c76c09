package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/histories"
	"stockproof/model"
)

// checkOptions are the flags of check.
type checkOptions struct {
	timeout         time.Duration
	work            int64
	porcupine       int
	picture, orders string
	format          string
	resubmits       bool
	foreign         foreignOptions
}

func checkCommand() *cobra.Command {
	var o checkOptions
	cmd := &cobra.Command{
		Use:   "check FILE…",
		Short: "Judge recorded histories",
		Long: `Judge recorded histories: is each linearizable for the stock model, and which
laws are broken, by how much. A file is JSON Lines, also compressed with gzip or
Zstandard: a header {"name":…,"sku":…,"initial":n}, then the operations of that
SKU in order of call; another header begins another SKU. Long files are judged
while they are read.

Logs of others are read too: Jepsen's history.edn and CSV, see
docs/foreign-logs.md. They do not say how many units were on sale: --initial does.

With --orders, unknown outcomes are settled from the durable truth first: JSON
Lines {"sku":…,"request":…,"qty":n}, and optionally one line
{"sku":…,"audited":ns,"stock":n} for what the counter showed at rest.

Exit status: 0 all linearizable and no law broken, 1 not, 2 a file cannot be
read or has a bad line, 4 a history was not decided.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("check needs at least one history file")}
			}
			if o.picture != "" && len(args) > 1 {
				return usageError{fmt.Errorf("--picture draws a single history, not %d", len(args))}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return check(cmd, args, o) },
	}
	f := cmd.Flags()
	f.DurationVar(&o.timeout, "timeout", 10*time.Second, "longest time porcupine may take for one history")
	f.Int64Var(&o.work, "work", model.DefaultWork, "states the stock checker may look at for one history")
	f.IntVar(&o.porcupine, "porcupine", 1000, "ask porcupine too about histories of at most so many operations")
	f.StringVar(&o.picture, "picture", "", "write porcupine's picture of a single history to this HTML file; of a long one, a window that is impossible by itself")
	f.StringVar(&o.orders, "orders", "", "settle unknown outcomes from this file of durable orders")
	f.StringVar(&o.format, "format", "text", "what to print: text or json")
	o.foreign.flags(f)
	f.BoolVar(&o.resubmits, "resubmits", false, "accept a request id that was submitted more than once")
	return cmd
}

func check(cmd *cobra.Command, args []string, o checkOptions) error {
	if err := oneOf("format", o.format, "text", "json"); err != nil {
		return err
	}
	if o.work < 1 || o.porcupine < 0 {
		return usageError{errors.New("--work is at least 1, --porcupine at least 0")}
	}
	options := histories.Options{Limits: model.Limits{Work: o.work}, Timeout: o.timeout, Porcupine: o.porcupine, Resubmits: o.resubmits}
	if o.orders != "" {
		audits, err := histories.ReadAudits(o.orders)
		if err != nil {
			return usageError{err}
		}
		options.Audits = audits
	}
	// Every file is read to its end first: a bad one must not hide behind the
	// verdict of a good one.
	var files []*histories.File
	for _, path := range args {
		options, err := o.foreign.of(path, options)
		if err != nil {
			return err
		}
		f, err := histories.Scan(path, options)
		if err != nil {
			return usageError{err}
		}
		files = append(files, f)
	}
	reports := []histories.Report{}
	for _, f := range files {
		judged, err := f.Judge()
		if err != nil {
			return badInput(err)
		}
		if o.format == "text" {
			for _, r := range judged {
				r.Text(cmd.OutOrStdout())
			}
		}
		reports = append(reports, judged...)
	}
	if o.format == "json" {
		enc := json.NewEncoder(cmd.OutOrStdout())
		enc.SetIndent("", "  ")
		if err := enc.Encode(reports); err != nil {
			return err
		}
	}
	if o.picture != "" {
		if len(reports) != 1 {
			return usageError{fmt.Errorf("--picture draws a single history, not %d", len(reports))}
		}
		what, err := reports[0].Picture(o.picture, o.timeout)
		if errors.Is(err, histories.ErrDisagree) {
			return err
		}
		if err != nil {
			return usageError{err}
		}
		fmt.Fprintf(cmd.ErrOrStderr(), "picture: %s: %s\n", o.picture, what)
	}
	return checkStatus(reports)
}

// checkStatus is the worst of what was found: broken before undecided.
func checkStatus(reports []histories.Report) error {
	status := evidence.ExitOK
	for _, r := range reports {
		switch {
		case r.Verdict == histories.NonLinearizable || len(r.Laws) > 0:
			return statusError(evidence.ExitBroken)
		case r.Verdict == histories.Undecided:
			status = evidence.ExitInconclusive
		}
	}
	if status == evidence.ExitOK {
		return nil
	}
	return statusError(status)
}

// badInput tells what is wrong with a file from what is wrong with a checker.
func badInput(err error) error {
	var line *histories.LineError
	var path *fs.PathError
	var audit *histories.AuditError
	if !errors.Is(err, histories.ErrDisagree) && (errors.As(err, &line) || errors.As(err, &path) || errors.As(err, &audit)) {
		return usageError{err}
	}
	return err
}

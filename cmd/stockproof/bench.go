//go:build !nolive

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"stockproof/cost"
	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/evidence/page"
	"stockproof/live/servers"
	"stockproof/schemes"
)

func benchCommand() *cobra.Command {
	o := cost.Defaults()
	var out, format string
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure what schemes cost, side by side, on real servers",
		Long: `Measure what schemes cost, side by side, on real servers with nothing between:
round trips and Redis commands a request (counted, not sampled), throughput and
latency of a closed loop and at offered rates, answers that were busy, and the
processor time of Redis. Each line is measured several times, all lines in turn;
the table has medians and, of the throughput, the interval they support.

A run whose sales do not add up is an error and no measurement. What was measured
is written to evidence.json, report.html and plots below --out.

Exit status: 0 measured, 2 bad usage, 3 no backend.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return bench(cmd, o, out, format) },
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.Schemes, "scheme", o.Schemes, "schemes to measure")
	f.StringSliceVar(&o.Experiments, "experiment", o.Experiments, "what is varied")
	f.IntSliceVar(&o.Connections, "connections", o.Connections, "connections of the closed loop")
	f.Float64SliceVar(&o.Futile, "futile", o.Futile, "shares of requests that find nothing to buy, 0 to 1, of the closed loop")
	f.Float64SliceVar(&o.Rates, "rate", o.Rates, "offered rates of the open loop, as shares of what the closed loop reached")
	f.DurationVar(&o.Duration, "duration", o.Duration, "about how long one repetition of one line takes")
	f.IntVar(&o.Repetitions, "repetitions", o.Repetitions, "repetitions of each line; fewer than 5 support no interval and no claim")
	f.StringVar(&out, "out", "evidence/cost", "folder for evidence.json, report.html and plots")
	f.StringVar(&format, "format", "text", "what to print: text, json or markdown")
	return cmd
}

func bench(cmd *cobra.Command, o cost.Options, out, format string) error {
	if err := oneOf("format", format, "text", "json", "markdown"); err != nil {
		return err
	}
	for _, e := range o.Experiments {
		if err := oneOf("experiment", e, cost.Experiments()...); err != nil {
			return err
		}
	}
	o.Schemes = unique(o.Schemes)
	for _, name := range o.Schemes {
		if _, err := schemes.ByName(name); err != nil {
			return err
		}
	}
	switch {
	case len(o.Schemes) == 0 || len(o.Experiments) == 0 || len(o.Connections) == 0 || len(o.Futile) == 0 || len(o.Rates) == 0:
		return usageError{errors.New("--scheme, --experiment, --connections, --futile and --rate each need a value")}
	case slices.Min(o.Connections) < 1 || slices.Max(o.Connections) > 512:
		return usageError{errors.New("--connections: from 1 to 512")}
	case slices.Min(o.Futile) < 0 || slices.Max(o.Futile) > 1:
		return usageError{errors.New("--futile: shares from 0 to 1")}
	case slices.Min(o.Rates) <= 0 || slices.Max(o.Rates) > 10:
		return usageError{errors.New("--rate: shares above 0, to 10")}
	case o.Duration < time.Millisecond || o.Duration > time.Minute:
		return usageError{errors.New("--duration: from 1ms to 1m")}
	case o.Repetitions < 1 || o.Repetitions > 100:
		return usageError{errors.New("--repetitions: from 1 to 100")}
	}
	choice, err := servers.Choose(cmd.Context(), os.Getenv)
	if err != nil {
		return err
	}
	o.Backend = choice.Backend
	fmt.Fprintf(cmd.ErrOrStderr(), "bench: %s (%s)\n", choice.Backend, choice.Why)
	var bar *bar
	o.Progress = func(done, of int, what string) {
		if bar == nil {
			bar = newBar(cmd, of)
		}
		bar.Describe(what)
		bar.Add(1)
	}
	costs, err := cost.Measure(cmd.Context(), o)
	if bar != nil {
		bar.Close()
	}
	if errors.Is(err, cost.ErrNoBenchmark) {
		return usageError{fmt.Errorf("%w; leave driver out of --experiment", err)}
	}
	if err != nil {
		return err
	}
	report := evidence.Report{Schema: evidence.Schema, Cost: costs}
	if report.Facts, err = claims.Facts(cmd.Context()); err != nil {
		return err
	}
	report.Claims = claims.Judge(report)
	if _, err := report.WriteFile(out); err != nil {
		return err
	}
	if _, err := page.WriteFile(out, report); err != nil {
		return err
	}
	plots, err := cost.Plot(out, costs)
	if err != nil {
		return err
	}
	if err := printCosts(cmd, report, format); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "evidence: %s\nreport: %s\nplots: %s\n", filepath.Join(out, "evidence.json"), filepath.Join(out, page.Name), strings.Join(plots, " "))
	return nil
}

func printCosts(cmd *cobra.Command, report evidence.Report, format string) error {
	if format == "json" {
		return report.JSON(cmd.OutOrStdout())
	}
	return report.CostTable(cmd.OutOrStdout(), format == "markdown")
}

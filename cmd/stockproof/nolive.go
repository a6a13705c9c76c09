//go:build nolive

package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// A program built with the tag nolive explores and knows nothing of servers: it
// builds in half the time, because the docker and PostgreSQL clients stay out.

var errNoLive = errors.New("this program was built with -tags nolive, which leaves the live world out; build it without")

func playRole() {}

func liveStatus(err error) (status int, known bool) {
	return evidence.ExitNoBackend, errors.Is(err, errNoLive)
}

func liveKinds(_ schemes.Entry, kinds []faults.Kind) []faults.Kind { return kinds }

func verifyLive(*cobra.Command, verifyOptions, selection, *evidence.Report) error { return errNoLive }

func confirmExplored(_ *cobra.Command, o verifyOptions, report *evidence.Report) error {
	switch o.confirm {
	case "require":
		return errNoLive
	case "off":
		report.Bounds.Unconfirmed = confirmOff
	default:
		report.Bounds.Unconfirmed = errNoLive.Error()
	}
	return nil
}

func soak(*cobra.Command, soakOptions, []faults.Kind) error { return errNoLive }

func losses() []string { return []string{"aof-tail"} }

func openReplays(*cobra.Command, string) (func(context.Context, *schedule.Schedule) error, int, func() error, error) {
	return nil, 0, nil, errNoLive
}

func benchCommand() *cobra.Command {
	return &cobra.Command{Use: "bench", Short: "Measure what schemes cost (not in this build: -tags nolive)",
		RunE: func(*cobra.Command, []string) error { return errNoLive }}
}

func subjectCommand() *cobra.Command {
	return &cobra.Command{Use: "subject", Short: "Help with programs of others that are to be judged",
		RunE: func(*cobra.Command, []string) error { return errNoLive }}
}

func showsNothing(error) bool { return false }

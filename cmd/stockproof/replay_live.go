//go:build !nolive

package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"stockproof/faults/schedule"
	"stockproof/live"
	"stockproof/live/servers"
)

// losses are the ways in which Redis loses writes in live, the default first.
func losses() (names []string) {
	for _, l := range live.Losses() {
		names = append(names, string(l))
	}
	return names
}

// openReplays starts the real servers to replay schedules on. atOnce is how many
// replays may go on at the same time.
func openReplays(cmd *cobra.Command, loss string) (replay func(context.Context, *schedule.Schedule) error, atOnce int, close func() error, err error) {
	choice, err := servers.Choose(cmd.Context(), os.Getenv)
	if err != nil {
		return nil, 0, nil, err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "live: %s (%s)\n", choice.Backend, choice.Why)
	world, err := live.Open(cmd.Context(), choice.Backend)
	if err != nil {
		return nil, 0, nil, err
	}
	replay = func(ctx context.Context, s *schedule.Schedule) error {
		return world.Replay(ctx, s, live.ReplayOptions{Loss: live.Loss(loss)})
	}
	return replay, live.ReplaysAtOnce, world.Close, nil
}

// showsNothing says whether a replay decided nothing, and why: neither that the
// schedule is as recorded nor that it is not.
func showsNothing(err error) bool {
	var cannot *live.CannotError
	return errors.As(err, &cannot) || errors.Is(err, live.ErrTooSlow)
}

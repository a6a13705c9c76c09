//go:build !nolive

package evidence

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
	"stockproof/live"
)

// A witness that real servers cannot follow is neither confirmed nor refuted; one
// that comes out otherwise is a disagreement of the worlds, and fails.
func TestWhatAReplayDecidesStandsInTheCell(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		is     *bool
		status int
	}{
		{"the same", nil, ptr(true), ExitOK},
		{"otherwise", &schedule.DivergenceError{Line: 3, Expected: "1", Seen: "2"}, ptr(false), ExitBroken},
		{"cannot", &live.CannotError{Reasons: []string{"no"}}, nil, ExitOK},
		{"slow, and otherwise", fmt.Errorf("%w: %w", live.ErrTooSlow, &schedule.DivergenceError{}), nil, ExitOK},
	} {
		cell := Cell{World: "explore", Verdict: Violated, Declared: Weak}
		cell.confirm(c.err)
		require.Equal(t, c.is, cell.ConfirmedLive, c.name)
		require.Equal(t, c.err == nil, cell.NotConfirmed == "", c.name)
		require.Equal(t, c.status, Report{Cells: []Cell{cell}}.Exit(), c.name)
	}
	var sum Confirmed
	require.ErrorContains(t, sum.note("w", errors.New("a server died")), "a server died")
}

func ptr(b bool) *bool { return &b }

//go:build !nolive

package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
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
		{"no time", errNoTime, nil, ExitOK},
		{"slow, and otherwise", fmt.Errorf("%w: %w", live.ErrTooSlow, &schedule.DivergenceError{}), nil, ExitOK},
	} {
		cell := Cell{World: "explore", Verdict: Violated, Declared: Weak}
		cell.confirm(c.err)
		require.Equal(t, c.is, cell.ConfirmedLive, c.name)
		require.Equal(t, c.err == nil, cell.NotConfirmed == "", c.name)
		require.Equal(t, c.status, Report{Cells: []Cell{cell}}.Exit(), c.name)
	}
	var sum Confirmed
	require.NoError(t, sum.note("w", errNoTime))
	require.Equal(t, []string{"w: not replayed: the time for it was over"}, sum.Open)
	require.ErrorContains(t, sum.note("w", errors.New("a server died")), "a server died")
}

func ptr(b bool) *bool { return &b }

const shortSale = `schedule v1
scheme   %s
config   lease=300ms wait=100ms retry=100ms retries=off
stock    goods:1001 %d
client   a deduct 1
---
---
outcome  a=unfinished
stock    1
violates nothing
`

// Cells that show the same execution share its replay; when there is no time for
// all, each scheme and fault comes once before any comes twice, and the others are
// named.
func TestDistinctWitnessesAreReplayedOnceAndFairly(t *testing.T) {
	dir := t.TempDir()
	var cells []Cell
	for _, scheme := range []string{"naive", "hincrby"} {
		for i, stock := range []int{1, 1, 2} {
			name := fmt.Sprintf("%s%d", scheme, i)
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), fmt.Appendf(nil, shortSale, scheme, stock), 0o600))
			cells = append(cells, Cell{Scheme: scheme, Fault: faults.ClientCrash, World: "explore", Verdict: Violated, Witness: name})
		}
	}
	cells = append(cells, Cell{World: "live", Verdict: Violated, Witness: "a history"}, Cell{World: "explore", Verdict: Holds})
	var mu sync.Mutex
	replayed := map[string]int{}
	replay := func(_ context.Context, s *schedule.Schedule) error {
		mu.Lock()
		defer mu.Unlock()
		replayed[fmt.Sprint(s.Scheme, s.Stock)]++
		return nil
	}
	sum, err := confirmAll(t.Context(), replay, cells, dir, 0, nil)
	require.NoError(t, err)
	require.Equal(t, Confirmed{Witnesses: 4, AsFound: 4}, sum)
	require.Equal(t, map[string]int{"naive1": 1, "naive2": 1, "hincrby1": 1, "hincrby2": 1}, replayed)
	for i, c := range cells {
		require.Equal(t, i < 6, c.ConfirmedLive != nil && *c.ConfirmedLive, i)
	}

	sum, err = confirmAll(t.Context(), func(context.Context, *schedule.Schedule) error { panic("there is no time") }, cells, dir, time.Nanosecond, nil)
	require.NoError(t, err)
	require.Len(t, sum.Open, 4)
	texts, _, err := distinct(cells, dir)
	require.NoError(t, err)
	for i, want := range []string{"naive\n", "hincrby\n", "naive\n", "hincrby\n"} {
		require.Contains(t, texts[i], "scheme   "+want)
	}
	require.Nil(t, cells[0].ConfirmedLive)
	require.NotEmpty(t, cells[0].NotConfirmed)
}

package stockproof_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/explore"
	"stockproof/faults/schedule"
	"stockproof/live"
	"stockproof/model"
)

// One laboratory for all live runs: they are small sales of the same schemes.
var minimiser = sync.OnceValues(func() (*explore.Lab, *explore.Minimiser) {
	lab := explore.NewLab()
	return lab, explore.NewMinimiser(lab)
})

// requireSchedule wants of a live run that broke p that its schedule is
// replayed in explore, command by command and reply by reply, and that the
// minimised one shows the same property and is no longer.
func requireSchedule(t *testing.T, run *live.Run, p model.Property) {
	t.Helper()
	lab, m := minimiser()
	s, err := fitted(t, lab, run)
	require.NoError(t, err, "%s", s)
	amount, violated := s.Amount(p)
	require.True(t, violated, "%s", s)
	require.Equal(t, run.Finding(p).Amount, amount)
	read, err := schedule.Parse(strings.NewReader(s.String()), "s")
	require.NoError(t, err)
	require.Equal(t, s.String(), read.String(), "it is read as it was written")
	require.NoError(t, lab.Replay(read, "miniredis"))

	if len(s.Clients) > 6 {
		return // more than a search has room for
	}
	small, err := m.Minimise(t.Context(), s, p)
	require.NoError(t, err)
	require.True(t, small.Shows(p), "%s", small)
	require.Equal(t, []any{s.Scheme, s.Retries}, []any{small.Scheme, small.Retries})
	require.Equal(t, s.Faults(), small.Faults())
	require.LessOrEqual(t, len(small.Clients), len(s.Clients))
	require.LessOrEqual(t, len(small.Steps), len(s.Steps), "%s", small)
	require.NoError(t, lab.Replay(small, "miniredis"))
}

// fitted makes the run again when the machine was too slow for what a client
// that waits is expected to do; that is told by the line that differs.
func fitted(t *testing.T, lab *explore.Lab, run *live.Run) (s *schedule.Schedule, err error) {
	t.Helper()
	for range 8 { // as often as a replay tries what a scheduler decides
		d, draftErr := run.Draft()
		require.NoError(t, draftErr)
		s, err = lab.Fit(d, "miniredis")
		var diverged *schedule.DivergenceError
		if !errors.As(err, &diverged) {
			return s, err
		}
		t.Log(err)
		again, runErr := liveWorld(t).Run(t.Context(), run.Case)
		require.NoError(t, runErr)
		require.NoError(t, again.Check(""))
		run = again
	}
	return s, err
}

// A run in which one reply, one counter or one outcome had been another one is
// refused, at its line.
func TestALiveRunThatCannotHaveBeenIsRefusedAtItsLine(t *testing.T) {
	lab, _ := minimiser()
	run := sale(t, "hincrby", "unit", "off", preempted(b, 1))
	for what, alter := range map[string]func(*schedule.Draft) int{
		"reply": func(d *schedule.Draft) int {
			d.Steps[2].Reply.Int++
			return 2
		},
		"counter": func(d *schedule.Draft) int {
			d.Steps[1].Stock.Units++
			return 1
		},
		"command": func(d *schedule.Draft) int {
			d.Steps[1].Words = []string{"HGET", "goods:1001", "stock"}
			return 1
		},
		"an answer before its last reply": func(d *schedule.Draft) int {
			d.Before[2] = append(d.Before[2], schedule.Event{Client: "b", N: 1})
			return 1
		},
		"outcome": func(d *schedule.Draft) int {
			d.Outcomes[0].Outcome = model.Failed
			return -1
		},
		"law": func(d *schedule.Draft) int {
			d.Violates = append(slices.Clone(d.Violates), schedule.Violation{Property: model.LostUnits, Amount: 1})
			return -1
		},
	} {
		t.Run(what, func(t *testing.T) {
			d, err := run.Draft()
			require.NoError(t, err)
			_, err = lab.Fit(d, "miniredis")
			require.NoError(t, err)
			d, err = run.Draft()
			require.NoError(t, err)
			step := alter(d)
			s, err := lab.Fit(d, "miniredis")
			var diverged *schedule.DivergenceError
			require.ErrorAs(t, err, &diverged)
			if step >= 0 {
				require.Equal(t, s.Steps[step].Note.Line, diverged.Line, err)
			} else {
				require.Greater(t, diverged.Line, s.Steps[len(s.Steps)-1].Note.Line, err)
			}
		})
	}
}

package stockproof_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
	"stockproof/live"
)

// In whatever way Redis loses writes, the schedule is the same.
func TestEveryWayToLoseWritesIsTheSameSchedule(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(scheduleFolder, "*-store-loses-*.schedule"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for i, path := range files {
		// The first of them is what TestSchedules uses; here each file has one of
		// the others.
		loss := live.Losses()[1+i%(len(live.Losses())-1)]
		t.Run(fmt.Sprintf("%s/%s", loss, strings.TrimSuffix(filepath.Base(path), ".schedule")), func(t *testing.T) {
			t.Parallel()
			s, err := schedule.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, liveWorld(t).Replay(t.Context(), s, live.ReplayOptions{Loss: loss}))
		})
	}
}

// Who is woken belongs to the schedule: somebody less and somebody more are
// noticed at that line.
func TestAWakeUpThatIsNotThereIsNoticedAtItsLine(t *testing.T) {
	files := 0
	for _, path := range scheduleFiles(t) {
		s, err := schedule.ReadFile(path)
		require.NoError(t, err)
		i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return len(st.Wakes) > 0 })
		j := slices.IndexFunc(s.Steps, func(st schedule.Step) bool {
			return st.Reply.Kind != schedule.None && len(st.Wakes) == 0 && st.Client == s.Clients[0].Name
		})
		if i < 0 || j < 0 || len(s.Clients) < 2 {
			continue
		}
		files++
		for name, alter := range map[string]func() int{
			"less": func() int { s.Steps[i].Wakes = nil; return i },
			"more": func() int { s.Steps[j].Wakes = []string{s.Clients[1].Name}; return j },
		} {
			s, err = schedule.ReadFile(path)
			require.NoError(t, err)
			line := s.Steps[alter()].Note.Line
			var diverged *schedule.DivergenceError
			require.ErrorAs(t, liveWorld(t).Replay(t.Context(), s, live.ReplayOptions{}), &diverged, "%s %s", path, name)
			require.Equal(t, line, diverged.Line, "%s %s: %v", path, name, diverged)
			require.Contains(t, diverged.Error(), "wake")
		}
	}
	require.NotZero(t, files)
}

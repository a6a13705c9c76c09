package stockproof_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

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

// TestSchedulesManyTimes replays the whole corpus on real servers as often as
// STOCKPROOF_REPLAYS says (make replays: 100 times) and counts how often it
// came out otherwise.
func TestSchedulesManyTimes(t *testing.T) {
	asked := os.Getenv("STOCKPROOF_REPLAYS")
	if asked == "" {
		t.Skip("a long test: make replays, or STOCKPROOF_REPLAYS=100")
	}
	times, err := strconv.Atoi(asked)
	require.NoError(t, err)
	world := liveWorld(t)
	var mu sync.Mutex
	replays, failed := 0, map[string]error{}
	began := time.Now()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(24)
	for n := range times {
		for _, path := range scheduleFiles(t) {
			s, err := schedule.ReadFile(path)
			require.NoError(t, err)
			if len(live.Cannot(s)) > 0 {
				continue
			}
			loss := live.Losses()[n%len(live.Losses())]
			group.Go(func() error {
				err := world.Replay(ctx, s, live.ReplayOptions{Loss: loss})
				mu.Lock()
				defer mu.Unlock()
				if replays++; err != nil {
					failed[fmt.Sprintf("%s, %d., %s", filepath.Base(path), n+1, loss)] = err
				}
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	t.Logf("%d replays in %s, %d otherwise", replays, time.Since(began).Round(time.Second), len(failed))
	for what, err := range failed {
		t.Errorf("%s: %v", what, err)
	}
}

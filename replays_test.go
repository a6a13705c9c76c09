//go:build replays

package stockproof_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"stockproof/faults/schedule"
	"stockproof/live"
)

// TestSchedulesManyTimes replays the whole corpus on real servers a hundred times,
// or as often as STOCKPROOF_REPLAYS says, and counts how often it came out
// otherwise. It takes minutes: make replays. STOCKPROOF_SCHEDULES, a pattern of file
// names, takes a part.
func TestSchedulesManyTimes(t *testing.T) {
	times := 100
	if asked := os.Getenv("STOCKPROOF_REPLAYS"); asked != "" {
		var err error
		times, err = strconv.Atoi(asked)
		require.NoError(t, err)
	}
	pattern := cmp.Or(os.Getenv("STOCKPROOF_SCHEDULES"), "*")
	world := liveWorld(t)
	var mu sync.Mutex
	replays, slow, failed := 0, 0, map[string]error{}
	began := time.Now()
	group, ctx := errgroup.WithContext(context.Background())
	group.SetLimit(24)
	for n := range times {
		for _, path := range scheduleFiles(t) {
			named, err := filepath.Match(pattern, filepath.Base(path))
			require.NoError(t, err)
			s, err := schedule.ReadFile(path)
			require.NoError(t, err)
			if !named || len(live.Cannot(s)) > 0 {
				continue
			}
			loss := live.Losses()[n%len(live.Losses())]
			group.Go(func() error {
				err := world.Replay(ctx, s, live.ReplayOptions{Loss: loss})
				mu.Lock()
				defer mu.Unlock()
				if replays++; errors.Is(err, live.ErrTooSlow) {
					slow++
				}
				if err != nil {
					failed[fmt.Sprintf("%s, %d., %s", filepath.Base(path), n+1, loss)] = err
				}
				return nil
			})
		}
	}
	require.NoError(t, group.Wait())
	require.NotZero(t, replays, "no schedule is named %s", pattern)
	t.Logf("%d replays in %s, %d otherwise, %d on a machine that was too slow", replays, time.Since(began).Round(time.Second), len(failed)-slow, slow)
	for what, err := range failed {
		t.Errorf("%s: %v", what, err)
	}
}

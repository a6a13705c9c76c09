package explore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// A client that is stopped before it reads that it has the lock has no watchdog
// yet, however long it stands still. This is what the proxies of a live run saw of
// it, without what they cannot see: times, answers' places, who was woken.
const stoppedBeforeItsWatchdog = `schedule v1
scheme   lock-watchdog
config   lease=300ms wait=100ms retry=100ms retries=off
stock    goods:1001 1
client   a deduct 1
client   b deduct 1
---
a  EVALSHA lock-acquire lock:1001 300 a:1 => nil  ! pause
b  EVALSHA lock-acquire lock:1001 300 b:1 => nil
b  HGET goods:1001 stock => "1"
b  HINCRBY goods:1001 stock -1 => 0  ; stock 0
b  EVALSHA lock-release lock:1001 redisson_lock__channel:{lock:1001} 0 300 b:1 => 1
a  resume
a  HGET goods:1001 stock => "0"
a  EVALSHA lock-release lock:1001 redisson_lock__channel:{lock:1001} 0 300 a:1 => nil
---
outcome  a=sold-out b=sold
stock    0
violates nothing
`

func draft(t *testing.T, text string) *schedule.Draft {
	t.Helper()
	s, err := schedule.Parse(strings.NewReader(text), "draft")
	require.NoError(t, err)
	return &schedule.Draft{Schedule: s, Before: map[int][]schedule.Event{}, At: map[int]time.Duration{}}
}

func TestWhoIsStoppedBeforeItReadsHasStartedNothing(t *testing.T) {
	engine, err := redisstore.NewMini()
	require.NoError(t, err)
	t.Cleanup(func() { engine.Close() })
	e, err := schemes.ByName("lock-watchdog")
	require.NoError(t, err)

	// A client that had read it would renew the lock when it goes on.
	_, err = fit(e, draft(t, stoppedBeforeItsWatchdog), engine, reading{})
	var diverged *schedule.DivergenceError
	require.ErrorAs(t, err, &diverged)

	s, err := Fit(e, draft(t, stoppedBeforeItsWatchdog), engine)
	require.NoError(t, err)
	require.Equal(t, []faults.Kind{faults.ClientPause}, s.Faults())
	require.Contains(t, s.String(), "=> nil  ! pause-unread\n   wait 300ms\n")
	read, err := schedule.Parse(strings.NewReader(s.String()), "s")
	require.NoError(t, err)
	require.Equal(t, s.String(), read.String())
	require.NoError(t, Replay(e, read, engine))

	// The word is not decoration: as an ordinary pause the schedule is refused.
	plain, err := schedule.Parse(strings.NewReader(strings.Replace(s.String(), "pause-unread", "pause", 1)), "plain")
	require.NoError(t, err)
	require.ErrorAs(t, Replay(e, plain, engine), &diverged)
}

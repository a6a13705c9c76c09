package live

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
)

func readSchedule(t *testing.T, text string) *schedule.Schedule {
	t.Helper()
	s, err := schedule.Parse(strings.NewReader(text), "test.schedule")
	require.NoError(t, err)
	return s
}

func corpusFile(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "testdata", "schedules", name+".schedule"))
	require.NoError(t, err)
	return string(raw)
}

// PostgreSQL serves who waits for a row in the order of arrival.
func TestAScheduleInWhichALaterWaiterGoesFirstCannotBeReplayed(t *testing.T) {
	const head = "schedule v1\nscheme db-version\nconfig retries=off\nstock goods:1001 1\nclient a deduct 1\nclient b deduct 1\nclient c deduct 1\n---\n"
	const update = "SQL UPDATE goods SET stock = 0 WHERE sku = 1001"
	const end = "---\noutcome a=sold b=unfinished c=unfinished\nstock 0\nviolates nothing\n"
	waits := "a " + update + " => 1 row\nb " + update + " => blocked\nc " + update + " => blocked\na SQL commit => COMMIT ; a=sold\n"
	require.Empty(t, Cannot(readSchedule(t, head+waits+"b SQL goes on => 1 row\nc SQL goes on => 1 row\n"+end)))
	reasons := Cannot(readSchedule(t, head+waits+"c SQL goes on => 1 row\nb SQL goes on => 1 row\n"+end))
	require.Len(t, reasons, 1)
	require.Contains(t, reasons[0], "line 13: of several statements that wait for a row, PostgreSQL lets the one go on that came first, not the one of client c")
}

func TestWhatNoServerCanBeMadeToDoIsSaidBeforehand(t *testing.T) {
	const head = "schedule v1\nscheme lua-string\nconfig retries=off\nstock goods:1001 1\nclient a deduct 1\nclient b deduct 1\n---\n"
	const end = "---\noutcome a=unfinished\nstock 1\nviolates nothing\n"
	const gives = "a EVALSHA lua-string stock:1001 1 ! gives-up\n"
	const step = "a EVALSHA lua-string stock:1001 1 => 1\n"
	for lines, why := range map[string]string{
		"redis freezes\n" + gives + "redis goes on\n":                "",
		"redis freezes\n" + gives + gives + "redis goes on\n":        "lets client a not log in on another connection",
		step + "redis restarts aof-everysec 1\n":                     "",
		step + "redis restarts aof-everysec 1\nredis restarts rdb\n": "cannot also be set up for snapshot",
		"replica falls behind\n" + step + "replica takes over 1\n":   "",
		step + "postgres restarts on\npostgres restarts on\n":        "",
		step + "postgres restarts on\npostgres restarts off 1\n":     "a database set up with synchronous_commit on cannot also have it off",
	} {
		reasons := strings.Join(Cannot(readSchedule(t, head+lines+end)), "; ")
		if why == "" {
			require.Empty(t, reasons, lines)
		} else {
			require.Contains(t, reasons, why, lines)
		}
	}
}

func TestTimesAreStretchedUntilAStepIsShort(t *testing.T) {
	s := readSchedule(t, corpusFile(t, "lock-pause-oversell"))
	require.Equal(t, 100*time.Millisecond, grain(s))
	require.Equal(t, []int{3, 6, 8, 8}, stretches(s), "300 ms eight times are what go-redis waits for")
	r := &replay{s: s, stretch: 3, grain: grain(s)}
	require.Equal(t, 900*time.Millisecond, r.times().Lease)
	require.Equal(t, 225*time.Millisecond, r.times().Wait)
	require.Equal(t, "300", r.shrunk("900"))
	require.Equal(t, "1", r.shrunk("1"))
}

// A lease is told in whole grains: what is left of it right after is all of it.
func TestALeaseThatHasJustBegunIsAsGoodAsNew(t *testing.T) {
	s := readSchedule(t, corpusFile(t, "lock-crash-lost-units"))
	r := &replay{s: s, stretch: 3, grain: grain(s)}
	line := &s.Steps[1]
	require.Equal(t, int64(300), line.Reply.Int)
	for left, same := range map[int64]bool{900: true, 899: true, 601: true, 600: false, 901: false, 0: false, -1: false} {
		require.Equal(t, same, r.sameReply(line, schedule.Reply{Kind: schedule.Int, Int: left}), left)
	}
	require.False(t, r.sameReply(line, schedule.Reply{Kind: schedule.Nil}))
	require.False(t, r.sameReply(&s.Steps[4], schedule.Reply{Kind: schedule.Int, Int: 1}), "a counter is no lease")
}

// A restart ends the connections that watch; the relay of a replay keeps all.
func TestAScheduleInWhichRedisRestartsUnderAWatchCannotBeReplayed(t *testing.T) {
	const head = "schedule v1\nscheme watch-multi\nconfig retries=off\nstock goods:1001 1\nclient a deduct 1\n---\na WATCH stock:1001 => OK\n"
	const end = "---\noutcome a=unfinished\nstock 1\nviolates nothing\n"
	reasons := Cannot(readSchedule(t, head+"store loses 1\n"+end))
	require.Len(t, reasons, 1)
	require.Contains(t, reasons[0], "line 8: a connection that watches a key ends when Redis restarts")
	require.Empty(t, Cannot(readSchedule(t, head+"a UNWATCH => OK\nstore loses 1\n"+end)))
}

package wire

import (
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
)

// What a schedule compares is the same in both versions of the protocol.
func TestARedisReplyStandsInTheWordsOfASchedule(t *testing.T) {
	for raw, want := range map[string]string{
		"$-1\r\n": "nil", "_\r\n": "nil", "*-1\r\n": "nil",
		":3\r\n": "3", "#t\r\n": "1", "#f\r\n": "0",
		"$1\r\n1\r\n": `"1"`, "=5\r\ntxt:1\r\n": `"1"`, ",1.5\r\n": `"1.5"`,
		"+OK\r\n": "OK", "-NOSCRIPT No matching script.\r\n": "error NOSCRIPT", "!5\r\nERR x\r\n": "error ERR",
		"*2\r\n:1\r\n$1\r\na\r\n": `[1 "a"]`, "%1\r\n$1\r\na\r\n:1\r\n": `["a" 1]`, "~1\r\n_\r\n": "[nil]",
	} {
		v, rest := parseValue([]byte(raw))
		require.Empty(t, rest)
		require.Equal(t, want, v.answer().String(), "%q", raw)
	}
}

func TestWhatStreamsHoldIsNestedAlikeInBothVersionsOfTheProtocol(t *testing.T) {
	const entries = "*1\r\n*2\r\n$3\r\n1-0\r\n*2\r\n$1\r\na\r\n$1\r\nb\r\n"
	for _, raw := range []string{"*1\r\n*2\r\n$1\r\ns\r\n" + entries, "%1\r\n$1\r\ns\r\n" + entries} {
		v, _ := parseValue([]byte(raw))
		for _, command := range []string{"XREADGROUP", "xread"} {
			told := v.inPairs([]string{command})
			require.Equal(t, `[["s" [["1-0" ["a" "b"]]]]]`, told.answer().String())
			require.Equal(t, `[["s", [["1-0", ["a", "b"]]]]]`, told.text())
		}
	}
	v, _ := parseValue([]byte("%1\r\n$1\r\na\r\n:1\r\n"))
	require.Equal(t, `["a" 1]`, v.inPairs([]string{"HGETALL"}).answer().String(), "other maps were flat")
}

func TestAStatementThatHasColumnsAnswersRowsAndAnotherACount(t *testing.T) {
	row := schedule.Reply{Kind: schedule.Row, Items: []schedule.Reply{{Kind: schedule.Int, Int: 1}, {Kind: schedule.Nil}}}
	for _, c := range []struct {
		tag     string
		columns bool
		rows    []schedule.Reply
		want    string
	}{
		{"SELECT 1", true, []schedule.Reply{row}, "(1, null)"},
		{"SELECT 0", true, nil, "no rows"},
		{"UPDATE 0", true, nil, "no rows"},
		{"UPDATE 1", false, nil, "1 row"},
		{"INSERT 0 2", false, nil, "2 rows"},
		{"COMMIT", false, nil, "COMMIT"},
	} {
		require.Equal(t, c.want, tagged(c.tag, c.columns, c.rows).String(), c.tag)
	}
}

// listener is a gate that lets everything pass and hears.
type listener struct {
	recorder
	mu      sync.Mutex
	listens map[int]int
	heard   []string
}

func (l *listener) Listens(_, conn, channels int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listens[conn] = channels
}

func (l *listener) Heard(_, _ int, channel string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.heard = append(l.heard, channel)
}

func (l *listener) channels() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.listens {
		n += c
	}
	return n
}

func TestAGateIsToldWhoListensAndWhoHears(t *testing.T) {
	addr := needRedis(t)
	for _, protocol := range []int{2, 3} {
		g := &listener{listens: map[int]int{}}
		p := open(t, Redis, addr, g)
		c := redis.NewClient(&redis.Options{Addr: p.Addr(), Protocol: protocol})
		defer c.Close()
		sub := c.Subscribe(t.Context(), "news", "more")
		for range 2 {
			_, err := sub.Receive(t.Context())
			require.NoError(t, err)
		}
		require.Equal(t, 2, g.channels())
		require.NoError(t, c.Publish(t.Context(), "more", "hello").Err())
		_, err := sub.ReceiveMessage(t.Context())
		require.NoError(t, err)
		g.mu.Lock()
		require.Equal(t, []string{"more"}, g.heard)
		g.mu.Unlock()
		require.NoError(t, sub.Close())
		require.NoError(t, p.Close())
		require.Zero(t, g.channels())
	}
}

func TestADetachedStepThatIsDroppedIsNeverExecuted(t *testing.T) {
	f := startFake(t, nil)
	release, drop := make(chan struct{}), make(chan struct{})
	g := &recorder{onRequest: at(2, DetachUnless(release, drop))}
	p := open(t, Redis, f.addr, g)
	require.Equal(t, "+a\r\n", pipeline(t, p.Addr(), "abc", everything))
	close(drop)
	requireCause(t, g.await(t, "gone", 1)[0].err, ErrRequestLost, false, false)
	<-f.gone
	require.Equal(t, []string{"a"}, f.all())
}

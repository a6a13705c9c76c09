package live

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
	"stockproof/live/wire"
)

var runNames = newTranslation("12ab-7", false).names

func TestRepliesAsTheProxyTellsThemAreThoseOfSchedules(t *testing.T) {
	for _, c := range []struct {
		server wire.Server
		text   string
		err    bool
		want   string
	}{
		{wire.Redis, "nil", false, "nil"},
		{wire.Redis, "-3", false, "-3"},
		{wire.Redis, `"1"`, false, `"1"`},
		{wire.Redis, `"a-12ab-7:1"`, false, `"a:1"`},
		{wire.Redis, "OK", false, "OK"},
		{wire.Redis, `[1, "a, b", [nil]]`, false, `[1 "a, b" [nil]]`},
		{wire.Redis, "NOSCRIPT No matching script", true, "error NOSCRIPT"},
		{wire.Postgres, `row (3, 0)`, false, "(3, 0)"},
		{wire.Postgres, `row (3, "a)"); row (-1, NULL)`, false, `(3, "a)") (-1, null)`},
		{wire.Postgres, "no rows", false, "no rows"},
		{wire.Postgres, "UPDATE 1", false, "1 row"},
		{wire.Postgres, "INSERT 0 2", false, "2 rows"},
		{wire.Postgres, "COMMIT", false, "COMMIT"},
		{wire.Postgres, "ERROR 23505 duplicate key", true, "error 23505"},
		{wire.Postgres, "", false, ""},
	} {
		read := redisReply
		if c.server == wire.Postgres {
			read = sqlReply
		}
		got, err := read(wire.Reply{Text: c.text, Err: c.err}, runNames)
		require.NoError(t, err, c.text)
		require.Equal(t, c.want, got.String(), c.text)
	}
}

func TestAReplyThatNoScheduleCanSayIsAnError(t *testing.T) {
	for _, text := range []string{`{"k": 1}`, "[1", `1 "a"`, `["a"`} {
		_, err := redisReply(wire.Reply{Text: text}, runNames)
		require.Error(t, err, text)
	}
	for _, text := range []string{"row (1); UPDATE 1", "row (1", "row (x)", "UPDATE 1; no rows"} {
		_, err := sqlReply(wire.Reply{Text: text}, runNames)
		require.Error(t, err, text)
	}
}

func FuzzReplies(f *testing.F) {
	for _, text := range []string{`[1, "a", [nil]]`, `row (3, "x")`, "UPDATE 1", "ERROR 40001 no", "[[[", `"`, "row (", "row (1) row (2)"} {
		f.Add(text, false)
		f.Add(text, true)
	}
	f.Fuzz(func(_ *testing.T, text string, failed bool) {
		_, _ = redisReply(wire.Reply{Text: text, Err: failed}, runNames)
		_, _ = sqlReply(wire.Reply{Text: text, Err: failed}, runNames)
	})
}

// a holds the row when b comes and c reads; a's commit lets b go on.
func TestAStatementThatWasBlockedGoesOnWhereItsReplyCame(t *testing.T) {
	at := func(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }
	step := func(client int, sql, reply string, began, over int, blocked bool) Step {
		return Step{Client: client, Request: string(rune('a'+client)) + ".1@s", began: at(began), At: at(over), Blocked: blocked,
			sent: wire.Step{Server: wire.Postgres, Conn: 4 + client, SQL: sql}, reply: wire.Reply{Text: reply}}
	}
	d := &schedule.Draft{Schedule: &schedule.Schedule{}, Before: map[int][]schedule.Event{}, At: map[int]time.Duration{}}
	err := newTranslation("s", false).steps(d, []Step{
		step(0, "update", "UPDATE 1", 1, 2, false),
		step(1, "update", "UPDATE 0", 3, 9, true),
		step(2, "select", "no rows", 4, 5, false),
		step(0, "commit", "COMMIT", 6, 7, false),
		step(1, "rollback", "ROLLBACK", 10, 11, false),
		step(2, "update", "UPDATE 0", 12, 14, true), // nobody else acts: a server that was slow to see a client gone
	}, []mark{{steps: 3, at: at(5), event: schedule.Event{Client: "c", N: 1}}, {steps: 4, at: at(8), event: schedule.Event{Client: "a", N: 1}}})
	require.NoError(t, err)
	var lines []string
	for i := range d.Steps {
		d.Steps[i].Server = schedule.SQL
		lines = append(lines, d.Steps[i].Client+" "+d.Steps[i].Action()+" => "+d.Steps[i].Reply.String())
	}
	require.Equal(t, strings.Split("a SQL update => 1 row|b SQL update => blocked|c SQL select => no rows|a SQL commit => COMMIT|b SQL goes on => 0 rows|b SQL rollback => ROLLBACK|c SQL update => 0 rows", "|"), lines)
	require.Equal(t, map[int][]schedule.Event{3: {{Client: "c", N: 1}}, 4: {{Client: "a", N: 1}}}, d.Before)
}

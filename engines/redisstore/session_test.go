package redisstore

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// said is a command, by whom: "a: WATCH s".
func said(t *testing.T, e Engine, s State, line string) Result {
	t.Helper()
	who, command, named := strings.Cut(line, ": ")
	if !named {
		who, command = "", line
	}
	r, err := e.ExecOn(s, who, strings.Fields(command))
	require.NoError(t, err, line)
	return r
}

// Conversations of several connections, with the reply to each line. They are the
// same on miniredis and on redis-server, and so is the state after every line.
var conversations = map[string][]string{
	"nobody touches the key":                 {"SET s 1 => OK", "a: WATCH s => OK", "a: GET s => \"1\"", "a: MULTI => OK", "a: DECRBY s 1 => QUEUED", "a: EXEC => [0]", "GET s => \"0\""},
	"another touches it before MULTI":        {"SET s 1 => OK", "a: WATCH s => OK", "DECRBY s 1 => 0", "a: MULTI => OK", "a: DECRBY s 1 => QUEUED", "a: EXEC => nil", "GET s => \"0\""},
	"another touches it after MULTI":         {"SET s 1 => OK", "a: WATCH s => OK", "a: MULTI => OK", "a: DECRBY s 1 => QUEUED", "DECRBY s 1 => 0", "a: EXEC => nil"},
	"the same value is written":              {"SET s 1 => OK", "a: WATCH s => OK", "SET s 1 => OK", "a: MULTI => OK", "a: EXEC => nil"},
	"a script writes and takes it back":      {"SET s 1 => OK", "a: WATCH s => OK", "EVAL redis.call('INCR',KEYS[1])redis.call('DECR',KEYS[1]) 1 s => nil", "a: MULTI => OK", "a: EXEC => nil"},
	"a read does not touch":                  {"SET s 1 => OK", "a: WATCH s => OK", "GET s => \"1\"", "EXISTS s => 1", "a: MULTI => OK", "a: EXEC => []"},
	"a write that fails does not touch":      {"SET s x => OK", "a: WATCH s => OK", "INCR s => (error)", "a: MULTI => OK", "a: EXEC => []"},
	"a refused SET NX does not touch":        {"SET s 1 => OK", "a: WATCH s => OK", "SET s 2 NX => nil", "a: MULTI => OK", "a: EXEC => []"},
	"another key is none of its business":    {"SET s 1 => OK", "a: WATCH s => OK", "SET other 1 => OK", "a: MULTI => OK", "a: EXEC => []"},
	"a watcher's own write touches":          {"SET s 1 => OK", "a: WATCH s => OK", "a: INCR s => 2", "a: MULTI => OK", "a: EXEC => nil"},
	"a key that is not there, and comes":     {"a: WATCH s => OK", "SET s 1 => OK", "a: MULTI => OK", "a: EXEC => nil"},
	"deleting what is not there is no touch": {"a: WATCH s => OK", "DEL s => 0", "a: MULTI => OK", "a: EXEC => []"},
	"UNWATCH forgets":                        {"SET s 1 => OK", "a: WATCH s => OK", "DECRBY s 1 => 0", "a: UNWATCH => OK", "a: MULTI => OK", "a: EXEC => []"},
	"EXEC forgets":                           {"SET s 1 => OK", "a: WATCH s => OK", "a: MULTI => OK", "a: EXEC => []", "INCR s => 2", "a: MULTI => OK", "a: EXEC => []"},
	"DISCARD forgets":                        {"SET s 1 => OK", "a: WATCH s => OK", "a: MULTI => OK", "a: INCR s => QUEUED", "a: DISCARD => OK", "INCR s => 2", "a: MULTI => OK", "a: EXEC => []"},
	"of two watchers one wins":               {"SET s 1 => OK", "a: WATCH s => OK", "b: WATCH s => OK", "b: MULTI => OK", "b: DECRBY s 1 => QUEUED", "a: MULTI => OK", "a: DECRBY s 1 => QUEUED", "b: EXEC => [0]", "a: EXEC => nil"},
	"a command that fails undoes nothing":    {"SET s 1 => OK", "a: MULTI => OK", "a: DECRBY s 1 => QUEUED", "a: LPOP s => QUEUED", "a: EXEC => [0 (error)]", "GET s => \"0\""},
	"a command refused in the queue":         {"SET s 1 => OK", "a: MULTI => OK", "a: DECRBY s 1 => QUEUED", "a: GET => (error)", "a: EXEC => (error)", "GET s => \"1\""},
	"EXEC and DISCARD without MULTI":         {"a: EXEC => (error)", "a: DISCARD => (error)", "a: UNWATCH => OK"},
	"no data is seen before EXEC":            {"SET s 1 => OK", "a: MULTI => OK", "a: SET s 9 => QUEUED", "GET s => \"1\"", "a: EXEC => [OK]", "GET s => \"9\""},
	"two keys, the second is touched":        {"SET s 1 => OK", "a: WATCH s r => OK", "SET r 1 => OK", "a: MULTI => OK", "a: EXEC => nil"},
}

func TestEnginesAgreeOnWhatBelongsToAConnection(t *testing.T) {
	list := engines(t)
	for name, lines := range conversations {
		t.Run(name, func(t *testing.T) {
			states := map[string]State{}
			for _, line := range lines {
				command, want, _ := strings.Cut(line, " => ")
				codes := map[string]string{}
				for engine, e := range list {
					r := said(t, e, states[engine], command)
					got := Pretty(r.Reply)
					if i := strings.Index(got, "(error)"); i >= 0 { // servers word the rest differently
						got = strings.TrimSuffix(got[:i+len("(error)")]+got[len(got)-1:], got[len(got)-1:])
						if strings.HasPrefix(got, "[") {
							got += "]"
						}
					}
					require.Equal(t, want, strings.ReplaceAll(got, `"OK"`, "OK"), "%s: %s", engine, command)
					states[engine] = r.State
					codes[engine] = ErrorClass(r.Reply)
				}
				if list["redis-server"] != nil {
					require.Equal(t, states["redis-server"].Encode(), states["miniredis"].Encode(), command)
					if !strings.HasPrefix(codes["miniredis"], "*") {
						require.Equal(t, codes["redis-server"], codes["miniredis"], command)
					}
				}
			}
		})
	}
}

func TestWhatServersTreatDifferentlyInATransactionIsRefused(t *testing.T) {
	for name, e := range engines(t) {
		s := said(t, e, State{}, "a: MULTI").State
		for _, command := range []string{"WATCH", "UNWATCH", "MULTI"} {
			_, err := e.ExecOn(s, "a", []string{command, "k"})
			require.ErrorIs(t, err, ErrOutside, "%s %s", name, command)
			require.ErrorContains(t, err, command)
		}
	}
}

func TestAKeyThatExpiresIsTouched(t *testing.T) {
	for name, e := range engines(t) {
		s := said(t, e, State{}, "SET s 1 PX 300").State
		s = said(t, e, s, "a: WATCH s").State
		early := said(t, e, s.After(299*time.Millisecond), "a: MULTI").State
		require.Equal(t, "[]", Pretty(said(t, e, early, "a: EXEC").Reply), name)
		late := said(t, e, s.After(300*time.Millisecond), "a: MULTI").State
		require.Equal(t, "nil", Pretty(said(t, e, late, "a: EXEC").Reply), name)
	}
}

// A real server says so too: the key ends while it is watched.
func TestAServerTouchesAKeyThatExpires(t *testing.T) {
	e := engines(t)["redis-server"]
	if e == nil {
		t.Skip("left out: STOCKPROOF_LIVE=off")
	}
	s := e.(*Server)
	for _, line := range []string{"FLUSHALL", "SET s 1 PX 20"} {
		_, err := roundTrip(s.conn, s.r, strings.Fields(line))
		require.NoError(t, err)
	}
	l, err := newTalk(nil, s.dial).open(Session{})
	require.NoError(t, err)
	defer l.conn.Close()
	require.NoError(t, expect(l, "+OK\r\n", "WATCH", "s"))
	require.Eventually(t, func() bool {
		reply, err := roundTrip(s.conn, s.r, []string{"EXISTS", "s"})
		return err == nil && reply == ":0\r\n"
	}, 5*time.Second, time.Millisecond)
	var c Session
	require.NoError(t, l.isDirty(&c))
	require.True(t, c.Dirty)
}

func TestSessionsAreRenamedAndEndWithTheirConnections(t *testing.T) {
	e := engines(t)["miniredis"]
	s := said(t, e, State{}, "x: WATCH s").State
	s = said(t, e, s, "x: MULTI").State
	s = said(t, e, s, "x: SET s x").State
	renamed := s.Rename(strings.NewReplacer("x", "y"))
	c, ok := renamed.Session("y")
	require.True(t, ok)
	require.Equal(t, [][]string{{"SET", "s", "y"}}, c.Queue)
	require.NotEqual(t, s.Encode(), renamed.Encode())
	require.Equal(t, s.Data(), renamed.Data(), "a session is not data")
	require.Empty(t, renamed.WithoutSessions(func(name string) bool { return name == "y" }).Sessions)
	require.Len(t, renamed.WithoutScripts().Sessions, 1, "a flush of the scripts ends no connection")
	require.Empty(t, renamed.Restarted().Sessions, "a restart ends all")
}

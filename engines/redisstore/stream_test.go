package redisstore

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// streamProgram is what a consumer with a group does, with its crash between two
// deliveries and everything that a scheme could meet on the way. Each command
// runs on what the one before it left.
var streamProgram = [][]string{
	{"XLEN", "s"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", ">"}, // NOGROUP
	{"XGROUP", "CREATE", "s", "g", "0"},                    // no such key
	{"XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"},
	{"XGROUP", "CREATE", "s", "g", "0", "MKSTREAM"}, // BUSYGROUP
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", ">"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", "0"},
	{"XADD", "s", "1-0", "request", "a.1", "qty", "1"},
	{"EVAL", "return redis.call('XADD', KEYS[1], (redis.call('XLEN', KEYS[1]) + 1) .. '-0', 'request', ARGV[1], 'qty', 2)", "1", "s", "b.1"},
	{"XADD", "s", "2-0", "request", "c.1"}, // id too small
	{"XADD", "s", "0-0", "request", "c.1"},
	{"XLEN", "s"},
	{"XREADGROUP", "GROUP", "g", "w", "COUNT", "1", "STREAMS", "s", ">"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", "0"},
	{"XREADGROUP", "GROUP", "g", "other", "STREAMS", "s", "0"},
	{"XREADGROUP", "GROUP", "g", "other", "STREAMS", "s", ">"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", "0"},
	{"XACK", "s", "g", "1-0"},
	{"XACK", "s", "g", "1-0"},
	{"XACK", "s", "nobody", "2-0"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", "0"},
	{"XGROUP", "CREATE", "s", "late", "$"},
	{"XADD", "s", "7-3", "request", "d.1"},
	{"XREADGROUP", "GROUP", "late", "w", "STREAMS", "s", ">"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", ">"},
	{"XREADGROUP", "GROUP", "g", "w", "STREAMS", "s", "3"},
	{"XRANGE", "s", "-", "+"},
	{"XRANGE", "s", "2", "2"},
	{"GET", "s"},
	{"PEXPIRE", "s", "100"},
	{"XACK", "s", "g", "2-0", "7-3"},
	{"XACK", "s", "g", "no id"},
	{"DEL", "s"},
}

func TestAStreamIsTheSameOnBothEngines(t *testing.T) {
	all := engines(t)
	states := map[string]State{}
	for i, args := range streamProgram {
		var replies, encoded []string
		for _, name := range []string{"miniredis", "redis-server"} {
			if e := all[name]; e != nil {
				r, err := e.Exec(states[name], args)
				require.NoError(t, err, "%s %v", name, args)
				states[name] = r.State
				replies, encoded = append(replies, r.Reply), append(encoded, r.State.Encode())
			}
		}
		for k := 1; k < len(replies); k++ {
			require.Equal(t, ErrorClass(replies[0]), ErrorClass(replies[k]), "%d: %v", i, args)
			require.Equal(t, encoded[0], encoded[k], "%d: %v", i, args)
		}
	}
}

// What was written down is what is there: a state that goes through an engine
// and comes back has lost nothing, with its clients under other names too.
func TestAStreamComesBackAsItWas(t *testing.T) {
	for name, e := range engines(t) {
		var s State
		for _, args := range streamProgram[:27] {
			r, err := e.Exec(s, args)
			require.NoError(t, err)
			s = r.State
		}
		k, ok := s.Lookup("s")
		require.True(t, ok)
		require.Equal(t, strings.Fields("entry 1-0 4 request a.1 qty 1 entry 2-0 4 request b.1 qty 2 entry 7-3 2 request d.1 "+
			"group g 7-3 pending g 2-0 other pending g 7-3 w group late 7-3 pending late 7-3 w"), k.Values, name)
		again, err := e.Exec(s, []string{"PING"})
		require.NoError(t, err)
		require.Equal(t, s.Encode(), again.State.Encode(), name)
		renamed := s.Rename(strings.NewReplacer("w", "x"))
		again, err = e.Exec(renamed, []string{"XREADGROUP", "GROUP", "g", "x", "STREAMS", "s", "0"})
		require.NoError(t, err)
		require.Contains(t, again.Reply, "d.1", name)
		require.NotContains(t, again.Reply, "b.1", name)
	}
}

func TestWhatReadsTheClockOfAStreamIsRefusedByName(t *testing.T) {
	for name, e := range engines(t) {
		for _, args := range [][]string{
			{"XADD", "s", "*", "a", "1"}, {"XADD", "s", "5-*", "a", "1"}, {"XADD", "s", "MAXLEN", "1", "2-0", "a", "1"},
			{"XREADGROUP", "GROUP", "g", "w", "BLOCK", "0", "STREAMS", "s", ">"}, {"XGROUP", "DESTROY", "s", "g"}, {"XGROUP", "CREATECONSUMER", "s", "g", "w"},
			{"XAUTOCLAIM", "s", "g", "w", "0", "0"}, {"XCLAIM", "s", "g", "w", "0", "1-0"}, {"XPENDING", "s", "g"}, {"XDEL", "s", "1-0"}, {"XTRIM", "s", "MAXLEN", "0"},
		} {
			_, err := e.Exec(State{}, args)
			require.ErrorIs(t, err, ErrOutside, "%s %v", name, args)
			require.ErrorContains(t, err, args[0])
		}
		_, err := e.Exec(State{}, []string{"EVAL", "return redis.call('XADD', 's', '*', 'a', 1)", "0"})
		require.ErrorIs(t, err, ErrOutside, name)
	}
}

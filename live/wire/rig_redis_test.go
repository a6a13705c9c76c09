package wire

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// conversation is what a Redis client says and hears, with what must be seen.
type conversation struct {
	name              string
	commands, replies []string
	steps, texts      []string
}

var conversations = []conversation{
	{
		name:     "a pipeline of three",
		commands: []string{command("INCR", "a"), command("GET", "b"), command("LPOP", "c")},
		replies:  []string{":1\r\n", "$-1\r\n", "-WRONGTYPE Operation\r\n"},
		steps:    []string{"INCR a", "GET b", "LPOP c"},
		texts:    []string{"1", "nil", "WRONGTYPE Operation"},
	},
	{
		name:     "handshake and health pass uncounted",
		commands: []string{command("hello", "3"), command("CLIENT", "SETNAME", "x"), command("SELECT", "1"), command("ping"), command("GET", "a"), command("READONLY"), command("COMMAND")},
		replies:  []string{"%1\r\n+proto\r\n:3\r\n", "+OK\r\n", "+OK\r\n", "+PONG\r\n", "$1\r\nx\r\n", "+OK\r\n", "*0\r\n"},
		steps:    []string{"GET a"},
		texts:    []string{`"x"`},
	},
	{
		name:     "inside a transaction everything counts",
		commands: []string{command("WATCH", "a"), command("MULTI"), command("PING"), command("INCR", "a"), command("EXEC"), command("PING")},
		replies:  []string{"+OK\r\n", "+OK\r\n", "+QUEUED\r\n", "+QUEUED\r\n", "*2\r\n+PONG\r\n:2\r\n", "+PONG\r\n"},
		steps:    []string{"WATCH a", "MULTI", "PING", "INCR a", "EXEC"},
		texts:    []string{"OK", "OK", "QUEUED", "QUEUED", "[PONG, 2]"},
	},
	{
		name:     "pushes of RESP 3 between replies belong to no step",
		commands: []string{command("HELLO", "3"), command("SUBSCRIBE", "c", "d"), command("LRANGE", "l", "0", "-1"), command("GET", "a")},
		replies: []string{"%0\r\n", ">2\r\n+invalidate\r\n*0\r\n", ">3\r\n+subscribe\r\n$1\r\nc\r\n:1\r\n", ">3\r\n+message\r\n$1\r\nc\r\n$1\r\nm\r\n",
			">3\r\n+subscribe\r\n$1\r\nd\r\n:2\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n", ">2\r\n+invalidate\r\n_\r\n", "$1\r\nv\r\n"},
		steps: []string{"LRANGE l 0 -1", "GET a"},
		texts: []string{`["message", "c", "m"]`, `"v"`},
	},
	{
		name:     "messages of RESP 2 on a subscribed connection belong to no step",
		commands: []string{command("SUBSCRIBE", "c", "d"), command("PING"), command("UNSUBSCRIBE", "c", "d"), command("LRANGE", "l", "0", "-1")},
		replies: []string{"*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n",
			"*2\r\n$4\r\npong\r\n$0\r\n\r\n", "*3\r\n$11\r\nunsubscribe\r\n$1\r\nc\r\n:1\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$1\r\nm\r\n",
			"*3\r\n$11\r\nunsubscribe\r\n$1\r\nd\r\n:0\r\n", "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$1\r\nm\r\n"},
		steps: []string{"LRANGE l 0 -1"},
		texts: []string{`["message", "c", "m"]`},
	},
	{
		name:     "unsubscribing from all channels",
		commands: []string{command("PSUBSCRIBE", "a*", "b*"), command("PUNSUBSCRIBE"), command("GET", "a")},
		replies: []string{"*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:1\r\n", "*3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:2\r\n",
			"*3\r\n$12\r\npunsubscribe\r\n$2\r\na*\r\n:1\r\n", "*3\r\n$12\r\npunsubscribe\r\n$2\r\nb*\r\n:0\r\n", "$-1\r\n"},
		steps: []string{"GET a"},
		texts: []string{"nil"},
	},
	{
		name:     "a subscription refused",
		commands: []string{command("SUBSCRIBE", "c"), command("GET", "a"), "*0\r\n", command("GET", "b")},
		replies:  []string{"-NOPERM no\r\n", "$1\r\n1\r\n", "$1\r\n2\r\n"},
		steps:    []string{"GET a", "GET b"},
		texts:    []string{`"1"`, `"2"`},
	},
	{
		name:     "a large binary value",
		commands: []string{command("SET", "a", strings.Repeat("\r\n*1$\x00", 40_000)), command("GET", "a")},
		replies:  []string{"+OK\r\n", "$240000\r\n" + strings.Repeat("\r\n*1$\x00", 40_000) + "\r\n"},
		steps:    []string{"SET a", "GET a"},
		texts:    []string{"OK", `"\r\n*1$`},
	},
}

// hold plays a conversation in pieces of one size and returns what was seen.
func (v conversation) hold(size int) (r *rig, g *recorder) {
	g = &recorder{}
	r = newRig(Redis, g)
	feed(r.c.up.in, []byte(strings.Join(v.commands, "")), size)
	r.sent(len(strings.Join(v.commands, "")))
	feed(r.c.down.in, []byte(strings.Join(v.replies, "")), size)
	r.answered()
	return r, g
}

func TestConversationsAreUnderstoodInPiecesOfAnySize(t *testing.T) {
	for _, v := range conversations {
		t.Run(v.name, func(t *testing.T) {
			for size := 1; size < 100; size++ {
				if len(v.commands[0]) > 1000 && size%31 != 3 {
					continue
				}
				r, g := v.hold(size)
				require.Empty(t, r.p.Errors())
				require.Equal(t, strings.Join(v.commands, ""), r.toServer.String(), "bytes to the server")
				require.Equal(t, strings.Join(v.replies, ""), r.toClient.String(), "bytes to the client")
				var steps, texts []string
				for _, e := range g.seen() {
					switch e.kind {
					case "request":
						require.Equal(t, len(steps)+1, e.step.N)
						steps = append(steps, strings.Join(e.step.Argv, " "))
					case "reply":
						texts = append(texts, e.reply.Text)
					}
				}
				require.Len(t, steps, len(v.steps))
				for i := range steps {
					require.True(t, strings.HasPrefix(steps[i], v.steps[i]), steps[i])
					require.True(t, strings.HasPrefix(texts[i], v.texts[i]), texts[i])
				}
				g.requireEachEndsOnce(t)
			}
		})
	}
}

func TestWhatARedisClientMustNotSay(t *testing.T) {
	for _, raw := range []string{"PING\r\n", "GET a\r\n", "*1\r\n:1\r\n", "*1\r\n$-1\r\n", command("MONITOR"), command("CLIENT", "REPLY", "OFF"), "*x\r\n", "\x00"} {
		g := &recorder{}
		r := newRig(Redis, g)
		good := command("GET", "a")
		feed(r.c.up.in, []byte(good+raw+good))
		r.asked()
		feed(r.c.down.in, []byte("$-1\r\n"))
		r.finish()
		require.Len(t, r.p.Errors(), 1, "%q", raw)
		require.ErrorIs(t, r.p.Errors()[0], ErrMalformed)
		require.Equal(t, good, r.toServer.String(), "%q", raw)
		gone := g.await(t, "gone", 1)
		requireCause(t, gone[0].err, ErrMalformed, true, true)
		g.requireEachEndsOnce(t)
	}
}

func TestWhatARedisServerMustNotSay(t *testing.T) {
	for _, raw := range []string{"hello\r\n", "$-7\r\n", ":1\r\n:2\r\n+surplus\r\n", "$1\r\nabc\r\n"} {
		g := &recorder{}
		r := newRig(Redis, g)
		commands := command("GET", "a") + command("GET", "b")
		feed(r.c.up.in, []byte(commands))
		r.sent(len(commands))
		feed(r.c.down.in, []byte(raw))
		r.finish()
		require.Len(t, r.p.Errors(), 1, "%q", raw)
		require.ErrorIs(t, r.p.Errors()[0], ErrMalformed)
		g.requireEachEndsOnce(t)
	}
}

// FuzzRedisConversation: whatever either side says, in whatever pieces, both
// hear a prefix of it; all of it when it was understood and complete.
func FuzzRedisConversation(f *testing.F) {
	for _, v := range conversations {
		if len(v.commands[0]) < 1000 {
			f.Add([]byte(strings.Join(v.commands, "")), []byte(strings.Join(v.replies, "")), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, commands, replies []byte, size uint8) {
		play := func(sizes ...int) (*rig, *recorder) {
			g := &recorder{}
			r := newRig(Redis, g)
			feed(r.c.up.in, commands, sizes...)
			r.asked()
			feed(r.c.down.in, replies, sizes...)
			r.answered()
			return r, g
		}
		whole, g := play()
		require.True(t, strings.HasPrefix(string(commands), whole.toServer.String()))
		g.requireEachEndsOnce(t)
		pieces, h := play(int(size), 1)
		require.Equal(t, whole.toServer.String(), pieces.toServer.String())
		require.Equal(t, requests(g), requests(h))
		h.requireEachEndsOnce(t)
		if len(whole.p.Errors()) == 0 {
			var s respScanner
			n, _ := s.scan(commands[whole.toServer.Len():])
			require.Zero(t, n, "a whole command was kept back")
		}
	})
}

func requests(g *recorder) (lines []string) {
	for _, e := range g.seen() {
		if e.kind == "request" {
			lines = append(lines, e.step.String())
		}
	}
	return lines
}

// FuzzRedisReplies: the client hears exactly what the server said as far as it
// was understood, whatever the pieces.
func FuzzRedisReplies(f *testing.F) {
	for _, v := range conversations {
		if len(v.commands[0]) < 1000 {
			f.Add([]byte(strings.Join(v.replies, "")), uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, replies []byte, size uint8) {
		play := func(sizes ...int) (*rig, *recorder) {
			g := &recorder{}
			r := newRig(Redis, g)
			commands := command("HELLO", "2") + command("SUBSCRIBE", "c") + command("GET", "a") + command("GET", "b") + command("UNSUBSCRIBE")
			feed(r.c.up.in, []byte(commands))
			r.sent(len(commands))
			feed(r.c.down.in, replies, sizes...)
			r.answered()
			return r, g
		}
		whole, g := play()
		require.True(t, strings.HasPrefix(string(replies), whole.toClient.String()))
		if len(whole.p.Errors()) == 0 {
			var s respScanner
			n, _ := s.scan(replies[whole.toClient.Len():])
			require.Zero(t, n, "a whole reply was kept back")
		}
		g.requireEachEndsOnce(t)
		pieces, h := play(int(size), 1)
		require.Equal(t, whole.toClient.String(), pieces.toClient.String())
		require.Equal(t, g.lines(), h.lines())
	})
}

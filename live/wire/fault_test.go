package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeRedis answers each command with +<first argument>, or with what the
// test says, and hands over what it has seen.
type fakeRedis struct {
	addr string
	seen chan string // the key of each command, in order
	gone chan struct{}
}

func startFake(t *testing.T, answer func(argv []string) string) *fakeRedis {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	f := &fakeRedis{addr: l.Addr().String(), seen: make(chan string, 10000), gone: make(chan struct{}, 1000)}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { c.Close(); f.gone <- struct{}{} }()
				r := bufio.NewReader(c)
				for {
					argv, err := readCommand(r)
					if err != nil {
						return
					}
					f.seen <- argv[1]
					a := "+" + argv[1] + "\r\n"
					if answer != nil {
						a = answer(argv)
					}
					if _, err := io.WriteString(c, a); err != nil {
						return
					}
				}
			}()
		}
	}()
	return f
}

func readCommand(r *bufio.Reader) ([]string, error) {
	var n int
	if _, err := fmt.Fscanf(r, "*%d\r\n", &n); err != nil {
		return nil, err
	}
	argv := make([]string, n)
	for i := range argv {
		var l int
		if _, err := fmt.Fscanf(r, "$%d\r\n", &l); err != nil {
			return nil, err
		}
		b := make([]byte, l+2)
		if _, err := io.ReadFull(r, b); err != nil {
			return nil, err
		}
		argv[i] = string(b[:l])
	}
	return argv, nil
}

func (f *fakeRedis) all() (keys []string) {
	for {
		select {
		case k := <-f.seen:
			keys = append(keys, k)
		default:
			return keys
		}
	}
}

// pipeline sends GET a, b, c, … in one packet and returns what comes back until
// the connection ends; want bytes are enough.
func pipeline(t *testing.T, addr string, keys string, want int) string {
	c, err := net.Dial("tcp", addr)
	require.NoError(t, err)
	defer c.Close()
	var b strings.Builder
	for _, k := range keys {
		b.WriteString(command("GET", string(k)))
	}
	_, err = io.WriteString(c, b.String())
	require.NoError(t, err)
	got, _ := io.ReadAll(io.LimitReader(c, int64(want)))
	return string(got)
}

const everything = 1 << 20 // more than ever comes: read until the end

func TestRequestLostInAPipelineSparesWhatCameBefore(t *testing.T) {
	for i := 1; i <= 3; i++ {
		f := startFake(t, nil)
		g := &recorder{onRequest: at(i, Lose)}
		p := open(t, Redis, f.addr, g)
		require.Equal(t, []string{"", "+a\r\n", "+a\r\n+b\r\n"}[i-1], pipeline(t, p.Addr(), "abc", everything))
		<-f.gone
		require.Equal(t, "abc"[:i-1], strings.Join(f.all(), ""), "the server has what came before, no more")
		gone := g.await(t, "gone", 1)
		require.Equal(t, i, gone[0].step.N)
		requireCause(t, gone[0].err, ErrRequestLost, false, false)
		require.NoError(t, p.Close())
		require.Len(t, requests(g), i, "what came behind a lost request reaches nobody")
		g.requireEachEndsOnce(t)
	}
}

func TestReplyLostInAPipelineSparesWhatCameBefore(t *testing.T) {
	for i := 1; i <= 3; i++ {
		f := startFake(t, nil)
		g := &recorder{onReply: replyAt(i, LoseReply)}
		p := open(t, Redis, f.addr, g)
		require.Equal(t, []string{"", "+a\r\n", "+a\r\n+b\r\n"}[i-1], pipeline(t, p.Addr(), "abc", everything))
		<-f.gone
		require.Equal(t, []string{"a", "b", "c"}, f.all(), "the server had the whole pipeline")
		gone := g.await(t, "gone", 4-i)
		requireCause(t, gone[0].err, ErrReplyLost, true, true)
		require.NoError(t, p.Close())
		require.Len(t, g.await(t, "reply", 3), 3, "replies behind the lost one are reported all the same")
		g.requireEachEndsOnce(t)
	}
}

func TestDeliverThenCut(t *testing.T) {
	f := startFake(t, nil)
	g := &recorder{onReply: replyAt(2, DeliverThenCut)}
	p := open(t, Redis, f.addr, g)
	require.Equal(t, "+a\r\n+b\r\n", pipeline(t, p.Addr(), "abc", everything))
	gone := g.await(t, "gone", 1)
	require.Equal(t, 3, gone[0].step.N)
	requireCause(t, gone[0].err, ErrCut, true, true)
	g.requireEachEndsOnce(t)
}

func TestAHeldStepIsSeenByNobodyUntilItIsReleased(t *testing.T) {
	f := startFake(t, nil)
	release := make(chan struct{})
	g := &recorder{onRequest: func(ctx context.Context, s Step) RequestAction {
		if s.N == 2 {
			<-release
		}
		return Forward
	}}
	p := open(t, Redis, f.addr, g)
	answers := make(chan string)
	go func() { answers <- pipeline(t, p.Addr(), "abc", len("+a\r\n+b\r\n+c\r\n")) }()
	g.await(t, "request", 2)
	g.await(t, "reply", 1)
	require.Equal(t, []string{"a"}, f.all())
	close(release)
	require.Equal(t, "+a\r\n+b\r\n+c\r\n", <-answers)
	g.requireEachEndsOnce(t)
}

func TestAHeldStepOfADeadClientIsLetGo(t *testing.T) {
	f := startFake(t, nil)
	g := &recorder{onRequest: func(ctx context.Context, _ Step) RequestAction {
		<-ctx.Done()
		require.ErrorIs(t, context.Cause(ctx), ErrClientGone)
		return Lose
	}}
	p := open(t, Redis, f.addr, g)
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	_, err = io.WriteString(c, command("GET", "a")+command("GET", "b"))
	require.NoError(t, err)
	g.await(t, "request", 1)
	require.NoError(t, c.Close())
	requireCause(t, g.await(t, "gone", 1)[0].err, ErrRequestLost, false, false)
	<-f.gone
	require.Empty(t, f.all())
	require.Len(t, requests(g), 1)
}

func TestAReplyForADeadClientIsReported(t *testing.T) {
	release := make(chan struct{})
	f := startFake(t, func(argv []string) string { <-release; return "+late\r\n" })
	g := &recorder{}
	p := open(t, Redis, f.addr, g)
	c, err := net.Dial("tcp", p.Addr())
	require.NoError(t, err)
	_, err = io.WriteString(c, command("GET", "a"))
	require.NoError(t, err)
	require.Equal(t, "a", <-f.seen)
	require.NoError(t, c.Close())
	for _, open := range p.open() {
		<-open.client.Done()
	}
	close(release)
	requireCause(t, g.await(t, "gone", 1)[0].err, ErrClientGone, true, true)
	require.Equal(t, "late", g.await(t, "reply", 1)[0].reply.Text)
	<-f.gone
}

func TestADetachedStepIsExecutedLater(t *testing.T) {
	f := startFake(t, nil)
	release := make(chan struct{})
	g := &recorder{onRequest: at(2, Detach(release))}
	p := open(t, Redis, f.addr, g)
	require.Equal(t, "+a\r\n", pipeline(t, p.Addr(), "abc", everything), "cut after the reply before it")
	require.Equal(t, []string{"a"}, f.all())
	close(release)
	require.Equal(t, "b", <-f.seen)
	require.Equal(t, "c", <-f.seen)
	gone := g.await(t, "gone", 2)
	requireCause(t, gone[0].err, ErrDetached, true, true)
	<-f.gone
	g.requireEachEndsOnce(t)
}

func TestADetachedStepNeverReleasedIsNeverExecuted(t *testing.T) {
	f := startFake(t, nil)
	g := &recorder{onRequest: at(1, Detach(make(chan struct{})))}
	p := open(t, Redis, f.addr, g)
	require.Empty(t, pipeline(t, p.Addr(), "a", everything))
	require.NoError(t, p.Close())
	requireCause(t, g.await(t, "gone", 1)[0].err, ErrClosed, false, false)
	require.Empty(t, f.all())
}

func TestTheServerGoesWhileAStepIsUnderWay(t *testing.T) {
	for _, partial := range []string{"", "$100\r\nhalf"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		go func() {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = readCommand(bufio.NewReader(c))
			_, _ = io.WriteString(c, partial)
			c.Close()
		}()
		g := &recorder{}
		p := open(t, Redis, l.Addr().String(), g)
		require.Empty(t, pipeline(t, p.Addr(), "a", everything), "half a reply is none")
		requireCause(t, g.await(t, "gone", 1)[0].err, ErrServerGone, true, false)
		require.Empty(t, p.Errors())
		l.Close()
	}
}

func TestCloseAndCutAllEndWhatIsHeld(t *testing.T) {
	for name, end := range map[string]func(*Proxy){"close": func(p *Proxy) { p.Close(); p.Close() }, "cut": (*Proxy).CutAll} {
		f := startFake(t, nil)
		g := &recorder{onRequest: func(ctx context.Context, _ Step) RequestAction { <-ctx.Done(); return Forward }}
		p := open(t, Redis, f.addr, g)
		done := make(chan string)
		go func() { done <- pipeline(t, p.Addr(), "ab", everything) }()
		g.await(t, "request", 1)
		end(p)
		require.Empty(t, <-done, name)
		requireCause(t, g.await(t, "gone", 1)[0].err, map[string]error{"close": ErrClosed, "cut": ErrCut}[name], false, false)
		require.NoError(t, p.Close())
		require.Zero(t, p.Connections())
		require.Empty(t, f.all(), name)
		g.requireEachEndsOnce(t)
	}
}

func TestManyConnectionsAreNeverMixedUp(t *testing.T) {
	f := startFake(t, nil)
	g := &recorder{}
	p := open(t, Redis, f.addr, g)
	const n = 60
	answers := make(chan string, n)
	for i := range n {
		go func() {
			c, err := net.Dial("tcp", p.Addr())
			if err != nil {
				answers <- err.Error()
				return
			}
			defer c.Close()
			r := bufio.NewReader(c)
			for j := range 20 {
				want := fmt.Sprintf("%d.%d", i, j)
				_, _ = io.WriteString(c, command("GET", want))
				if line, err := r.ReadString('\n'); err != nil || line != "+"+want+"\r\n" {
					answers <- fmt.Sprintf("%q instead of %q: %v", line, want, err)
					return
				}
			}
			answers <- ""
		}()
	}
	for range n {
		require.Empty(t, <-answers)
	}
	require.NoError(t, p.Close())
	client := map[int]string{}
	for _, e := range g.seen() {
		who, _, _ := strings.Cut(e.step.Argv[1], ".")
		if client[e.step.Conn] == "" {
			client[e.step.Conn] = who
		}
		require.Equal(t, client[e.step.Conn], who, "connection %d", e.step.Conn)
		if e.kind == "reply" {
			require.Equal(t, e.step.Argv[1], e.reply.Text)
		}
	}
	require.Len(t, client, n)
	require.Empty(t, p.Errors())
	g.requireEachEndsOnce(t)
}

func TestOneCounterNumbersAllProxiesOfAClient(t *testing.T) {
	f := startFake(t, nil)
	g, counter := &recorder{}, &Counter{}
	var addrs []string
	for range 2 {
		p, err := Listen(Config{Server: Redis, Upstream: f.addr, Client: 1, Counter: counter, Gate: g})
		require.NoError(t, err)
		defer p.Close()
		addrs = append(addrs, p.Addr())
	}
	for i := range 4 {
		require.Equal(t, "+x\r\n", pipeline(t, addrs[i%2], "x", 4))
		require.Equal(t, i+1, counter.Count())
	}
	counter.Reset()
	require.Equal(t, "+x\r\n", pipeline(t, addrs[0], "x", 4))
	require.Equal(t, 1, counter.Count())
}

func TestListenRefusesWhatItCannotServe(t *testing.T) {
	g, c := &recorder{}, &Counter{}
	for _, cfg := range []Config{
		{Server: Redis, Upstream: "127.0.0.1:1", Counter: c}, {Server: Redis, Upstream: "127.0.0.1:1", Gate: g},
		{Server: Redis, Upstream: "nowhere", Counter: c, Gate: g}, {Server: "mysql", Upstream: "127.0.0.1:1", Counter: c, Gate: g},
	} {
		_, err := Listen(cfg)
		require.Error(t, err)
	}
}

// A splitter that takes a packet for a command, and a matcher that takes a push
// for a reply: the checks above must convict both.
type packetCounter struct{ *redisDialect }

func (d packetCounter) requests(r *reader) ([]*request, error) {
	if !r.fill() {
		return nil, io.EOF
	}
	raw := r.consume(len(r.bytes()))
	a := make([]*answer, strings.Count(string(raw), "*2\r\n"))
	for i := range a {
		a[i] = &answer{}
	}
	return []*request{{raw: raw, answers: a, step: &flight{step: Step{Argv: []string{"packet", "?"}}}}}, nil
}

func TestMutantThatCountsPacketsIsConvicted(t *testing.T) {
	count := func(d func(*conn) dialect, atLeast int) int {
		f := startFake(t, nil)
		g := &recorder{}
		p := openDialect(t, Redis, f.addr, g, d)
		require.Equal(t, "+a\r\n", pipeline(t, p.Addr(), "abc", 4))
		g.await(t, "request", atLeast) // the rest of the pipeline is still on its way
		require.NoError(t, p.Close())
		return len(requests(g))
	}
	require.Equal(t, 3, count(nil, 3))
	require.Equal(t, 1, count(func(c *conn) dialect { return packetCounter{newRedisDialect(c)} }, 1))
}

type pushMatcher struct{ *redisDialect }

func (d pushMatcher) reply(r *reader) (unit, error) {
	for {
		if b := r.bytes(); len(b) > 0 {
			if n, err := d.answered.scan(b); err != nil || n > 0 {
				v, _ := parseValue(b[:n])
				front := d.c.front()
				if front == nil {
					return unit{raw: r.consume(n)}, nil
				}
				d.c.pop()
				return unit{raw: r.consume(n), flight: front.flight, reply: Reply{Text: v.text()}}, nil
			}
		}
		if !r.fill() {
			return unit{}, io.EOF
		}
	}
}

func TestMutantThatTakesAPushForAReplyIsConvicted(t *testing.T) {
	text := func(d func(*conn) dialect) string {
		f := startFake(t, func([]string) string { return ">2\r\n+invalidate\r\n_\r\n+right\r\n" })
		g := &recorder{}
		p := openDialect(t, Redis, f.addr, g, d)
		require.NotEmpty(t, pipeline(t, p.Addr(), "a", 12))
		return g.await(t, "reply", 1)[0].reply.Text
	}
	require.Equal(t, "right", text(nil))
	require.NotEqual(t, "right", text(func(c *conn) dialect { return pushMatcher{newRedisDialect(c)} }))
}

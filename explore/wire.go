package explore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"stockproof/engines/redisstore"
)

// errDead is what a client meets on every use of the wire once its run is
// over: a process that has crashed sends nothing any more, a deferred unlock
// neither.
var errDead = errors.New("this client is no more")

// wire is the network of one client run inside a bubble. Steps are parked in
// it until they are answered; the handshake is answered at once.
type wire struct {
	mu       sync.Mutex
	conns    []*conn
	calls    []*sqlCall // statements that wait for an answer
	closed   []int      // database connections the client has closed, sorted
	dead     bool
	refused  int           // uses after death
	activity chan struct{} // capacity 1: something the outside can see happened
	outside  error         // a command that cannot be modelled
}

func newWire() *wire { return &wire{activity: make(chan struct{}, 1)} }

func (w *wire) stir() {
	select {
	case w.activity <- struct{}{}:
	default:
	}
}

// dial is the Dialer given to go-redis.
func (w *wire) dial(context.Context, string, string) (net.Conn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c := &conn{wire: w, id: len(w.conns), readable: make(chan struct{}, 1), channels: map[string]bool{}}
	if w.dead { // go-redis writes to its log when dialling fails, so it may dial
		c.err = errDead
		return c, nil
	}
	w.conns = append(w.conns, c)
	return c, nil
}

// maxRefusals ends a scheme that does not give up on errors.
const maxRefusals = 100_000

func (w *wire) refuse() error {
	if w.refused++; w.refused > maxRefusals {
		panic("scheme never returns although every command fails")
	}
	return errDead
}

// kill ends the run: every present and later use of the wire fails.
func (w *wire) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for _, c := range w.conns {
		c.fail(errDead)
	}
	for _, s := range w.calls {
		s.answer <- sqlAnswer{err: errDead}
	}
	w.calls = nil
}

// place is where a parked step can be answered.
type place struct {
	step step
	conn *conn
	call *sqlCall
}

// pending lists the parked steps in an order that depends only on what they
// say, never on which goroutine was faster.
func (w *wire) pending() []place {
	w.mu.Lock()
	defer w.mu.Unlock()
	var places []place
	for _, c := range w.conns {
		if len(c.queue) > 0 && !c.closed && c.err == nil {
			places = append(places, place{step: c.queue[0], conn: c})
		}
	}
	for _, s := range w.calls {
		places = append(places, place{step: s.step, call: s})
	}
	slices.SortStableFunc(places, func(a, b place) int {
		switch {
		case a.step.less(b.step):
			return -1
		case b.step.less(a.step):
			return 1
		}
		return 0
	})
	return places
}

// subscriptions lists the channels this client listens on, sorted.
func (w *wire) subscriptions() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := map[string]bool{}
	var channels []string
	for _, c := range w.conns {
		if c.closed || c.err != nil {
			continue
		}
		for ch := range c.channels {
			if !seen[ch] {
				seen[ch] = true
				channels = append(channels, ch)
			}
		}
	}
	sort.Strings(channels)
	return channels
}

// publish delivers a message to every connection that listens on its channel.
func (w *wire) publish(channel, payload string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if !c.closed && c.err == nil && c.channels[channel] {
			c.push(bulks("message", channel, payload))
		}
	}
}

// conn is one connection. Its mutex is the wire's.
type conn struct {
	wire     *wire
	id       int
	out      bytes.Buffer // bytes from the client, not yet a whole command
	queue    []step       // in flight, oldest first
	session  sessionBelief
	in       bytes.Buffer // bytes for the client
	readable chan struct{}
	err      error // what reading and writing ends with
	closed   bool
	deadline time.Time
	channels map[string]bool
}

// push makes bytes readable; the mutex is held.
func (c *conn) push(reply string) {
	c.in.WriteString(reply)
	select {
	case c.readable <- struct{}{}:
	default:
	}
}

// fail breaks the connection for its client; the mutex is held.
func (c *conn) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.queue = nil
	select {
	case c.readable <- struct{}{}:
	default:
	}
}

// reply answers the oldest step in flight.
func (c *conn) reply(raw string) {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.queue = c.queue[1:]
	c.push(raw)
}

// cut is a connection that breaks: the client reads EOF.
func (c *conn) cut() {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.fail(io.EOF)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	if c.wire.dead {
		return 0, c.wire.refuse()
	}
	if c.closed {
		return 0, net.ErrClosed
	}
	if c.err != nil {
		return 0, c.err
	}
	c.out.Write(b)
	for {
		args, n := nextCommand(c.out.Bytes())
		if n == 0 {
			return len(b), nil
		}
		c.out.Next(n)
		if reply, ok := c.handshake(args); ok {
			if len(c.queue) > 0 {
				c.wire.outside = fmt.Errorf("%w: %s in one pipeline with data commands", redisstore.ErrOutside, args[0])
			}
			if c.session.multi {
				c.wire.outside = fmt.Errorf("%w: %s inside of a transaction", redisstore.ErrOutside, args[0])
			}
			c.push(reply)
			continue
		}
		err := redisstore.Check(args)
		if strings.EqualFold(args[0], "WAIT") {
			err = nil // what the replication answers, see kit.exec
		}
		if err != nil && c.wire.outside == nil {
			c.wire.outside = err
		}
		st := step{args: joinArgs(args)}
		c.session.sent(&st, c.id, args)
		c.queue = append(c.queue, st)
		c.wire.stir()
	}
}

// nextCommand takes the first whole command off b; n is 0 when there is none.
func nextCommand(b []byte) (args []string, n int) {
	count, n := number(b, '*')
	if n == 0 {
		return nil, 0
	}
	args = make([]string, 0, count)
	for range count {
		size, head := number(b[n:], '$')
		if head == 0 || len(b) < n+head+size+2 {
			return nil, 0
		}
		n += head
		args = append(args, string(b[n:n+size]))
		n += size + 2
	}
	return args, n
}

// number reads a type byte, a length and CRLF; n is 0 when they are not there.
func number(b []byte, kind byte) (value, n int) {
	if len(b) == 0 || b[0] != kind {
		return 0, 0
	}
	for n = 1; n < len(b) && b[n] >= '0' && b[n] <= '9'; n++ {
		value = 10*value + int(b[n]-'0')
	}
	if n+1 >= len(b) || b[n] != '\r' || b[n+1] != '\n' {
		return 0, 0
	}
	return value, n + 2
}

// helloReply is what Redis 7 answers to HELLO 2.
var helloReply = "*14\r\n" + bulkList("server", "redis", "version", "7.0.15") + "$5\r\nproto\r\n:2\r\n$2\r\nid\r\n:1\r\n" +
	bulkList("mode", "standalone", "role", "master") + "$7\r\nmodules\r\n*0\r\n"

// handshake answers what a client library sends on its own account. ok is
// false for a step. The mutex is held.
func (c *conn) handshake(args []string) (reply string, ok bool) {
	is := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(args[0], name) })
	}
	switch {
	case is("HELLO"):
		return helloReply, true
	case is("CLIENT", "SELECT", "READONLY", "AUTH"):
		return "+OK\r\n", true
	case is("PING"):
		if len(c.channels) > 0 {
			return bulks("pong", ""), true
		}
		return "+PONG\r\n", true
	case is("SUBSCRIBE"):
		var b strings.Builder
		for _, ch := range args[1:] {
			c.channels[ch] = true
			b.WriteString("*3\r\n" + bulkList("subscribe", ch) + ":" + strconv.Itoa(len(c.channels)) + "\r\n")
		}
		return b.String(), true
	case is("UNSUBSCRIBE"):
		var b strings.Builder
		for _, ch := range args[1:] {
			delete(c.channels, ch)
			b.WriteString("*3\r\n" + bulkList("unsubscribe", ch) + ":" + strconv.Itoa(len(c.channels)) + "\r\n")
		}
		return b.String(), true
	}
	return "", false
}

func bulkList(words ...string) string {
	var b strings.Builder
	for _, w := range words {
		b.WriteString("$" + strconv.Itoa(len(w)) + "\r\n" + w + "\r\n")
	}
	return b.String()
}

func bulks(words ...string) string {
	return "*" + strconv.Itoa(len(words)) + "\r\n" + bulkList(words...)
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	for {
		c.wire.mu.Lock()
		switch {
		case c.wire.dead:
			err := c.wire.refuse()
			c.wire.mu.Unlock()
			return 0, err
		case c.closed:
			c.wire.mu.Unlock()
			return 0, net.ErrClosed
		case c.in.Len() > 0:
			n, err := c.in.Read(b)
			c.wire.mu.Unlock()
			return n, err
		case c.err != nil:
			err := c.err
			c.wire.mu.Unlock()
			return 0, err
		}
		deadline := c.deadline
		c.wire.mu.Unlock()
		if deadline.IsZero() {
			<-c.readable
			continue
		}
		timer := time.NewTimer(time.Until(deadline))
		select {
		case <-c.readable:
			timer.Stop()
		case <-timer.C:
			return 0, os.ErrDeadlineExceeded
		}
	}
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.closed = true
	c.queue = nil
	select {
	case c.readable <- struct{}{}:
	default:
	}
	return nil
}

// SetReadDeadline implements net.Conn.
func (c *conn) SetReadDeadline(t time.Time) error {
	c.wire.mu.Lock()
	defer c.wire.mu.Unlock()
	c.deadline = t
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline implements net.Conn; writing never blocks.
func (c *conn) SetWriteDeadline(time.Time) error { return nil }

// LocalAddr implements net.Conn.
func (c *conn) LocalAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// RemoteAddr implements net.Conn.
func (c *conn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 6379} }

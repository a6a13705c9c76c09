// Package wire stands between one client and one server, understands what
// crosses the wire, and lets its owner hold, lose or delay exactly one step.
//
// Every proxy is a listener of an embedded toxiproxy on 127.0.0.1 with two
// toxics of ours on each connection, one a direction. They split the stream
// into commands (RESP 2 and 3) or statements (PostgreSQL), count them, and ask
// a Gate what to do with each. What is forwarded is always the bytes that came
// in, never a re-encoding of them.
//
// A step is one command to Redis or one SQL statement. These pass uncounted:
//
//   - Redis: HELLO, AUTH, SELECT, CLIENT, COMMAND, READONLY, READWRITE, RESET,
//     QUIT, PING, the (un)subscribe commands, and whatever the server pushes.
//     Between MULTI and EXEC everything counts.
//   - PostgreSQL: start-up and authentication, round trips that only prepare,
//     describe or close, statements that are empty or only a comment, Terminate.
//     Each Execute and each simple Query counts, as one step even when the
//     query string holds several statements.
//
// A CancelRequest passes uncounted too, unless the connection whose statement it
// would cancel was cut by the proxy: drivers send one when their connection
// breaks, and it would undo what a fault was placed for.
package wire

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"stockproof/faults/schedule"
)

// Server says which protocol a proxy speaks.
type Server string

// The servers a proxy can stand in front of.
const (
	Redis    Server = "redis"
	Postgres Server = "postgres"
)

// Step is one command or statement that has completely arrived at the proxy.
type Step struct {
	Client int // the client the proxy belongs to, as given to Listen
	N      int // 1-based over both servers of the client, in order of arrival at the gate
	Server Server
	Conn   int // 1-based number of the connection at its proxy

	Argv []string // Redis: the command and its arguments

	SQL        string   // PostgreSQL: the statement as the client prepared or sent it
	Args       []string // PostgreSQL: its parameters as text; NULL for null, \x… for types unknown
	BackendPID uint32   // PostgreSQL: the server process, for pg_locks and the like; 0 when unknown

	// Batch is the 1-based position among the BatchLen steps that the client
	// sent before it asked for an answer (Sync or Flush). The server answers a
	// batch as a whole: a gate that keeps the second request of a batch
	// waiting for the reply of the first waits for ever. Both are 1 for a
	// step on its own, and for Redis, where each command of a pipeline is
	// answered by itself.
	Batch, BatchLen int
}

// String is the step on one line, as a report shows it.
func (s Step) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "client %d step %d %s:", s.Client, s.N, s.Server)
	if s.Server == Redis {
		for _, a := range s.Argv {
			b.WriteByte(' ')
			b.WriteString(word(a))
		}
		return b.String()
	}
	b.WriteByte(' ')
	b.WriteString(s.SQL)
	if len(s.Args) > 0 {
		fmt.Fprintf(&b, " [%s]", strings.Join(s.Args, ", "))
	}
	return b.String()
}

// word shows an argument bare when a person could have typed it so.
func word(s string) string {
	if s == "" || len(s) > maxText {
		return quote(s)
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' || s[i] == '"' {
			return quote(s)
		}
	}
	return s
}

// maxText bounds one string in a text meant for people, in bytes.
const maxText = 1024

func quote(s string) string {
	if len(s) > maxText {
		return fmt.Sprintf("%s… (%d bytes)", strconv.Quote(s[:maxText]), len(s))
	}
	return strconv.Quote(s)
}

// Reply is the server's whole answer to a step.
type Reply struct {
	// Text is the answer as a person would write it. Redis: nil, "1" for
	// strings, 3, OK, [1, "a"], {"k": 1}, the text of an error. PostgreSQL:
	// `row (3, 0)`, `no rows`, `UPDATE 1`, `ERROR 40001 could not …`; several
	// results are joined by "; ".
	Text string
	Err  bool // the server answered with an error
	// Answer is the same in the parts that a schedule compares; of several
	// results the last.
	Answer schedule.Reply
}

// Gate decides the fate of each step of the proxies it is given to. Its
// methods are called from a goroutine per connection and direction, so from
// many at once.
//
// The context ends when the client's side of the connection ends (the client
// died, closed, or was cut) and when the proxy is closed; a gate that blocks
// must watch it, or Close never returns. A client that dies after its request
// was forwarded has had it executed all the same: Reply is still called when
// the reply arrives, with a context that has ended.
//
// Each step given to Request ends in exactly one of two ways: Reply answered
// Deliver or DeliverThenCut and the client's connection took the bytes, or
// Gone is called, once, after Request and Reply have returned.
type Gate interface {
	// Request is called when a step has completely arrived, before the server
	// sees a byte of it. It may block: that is how a step is held.
	Request(context.Context, Step) RequestAction
	// Reply is called when the server's reply has completely arrived, before
	// the client sees a byte of it. It may block.
	Reply(context.Context, Step, Reply) ReplyAction
	// Gone is called when a step ends without a delivered reply; the error is
	// a *GoneError.
	Gone(Step, error)
}

// Listener is a Gate that wants to know who listens to what Redis publishes.
// Its methods must not block.
type Listener interface {
	// Listens says to how many channels and patterns a connection of a client is
	// subscribed now; 0 when the client has closed it.
	Listens(client, conn, channels int)
	// Heard says that Redis has sent a message to the connection. The client's
	// side is about to get it.
	Heard(client, conn int, channel string)
}

// RequestAction is the fate of a request: Forward, Lose or Detach.
type RequestAction struct {
	kind          requestKind
	release, drop <-chan struct{}
}

type requestKind int

const (
	forward requestKind = iota
	lose
	detach
)

// Forward lets the server have the step, also when the client is already dead:
// what it had sent was on its way.
var Forward = RequestAction{kind: forward}

// Lose keeps the step from the server for ever. What the same connection sent
// before it is not disturbed: once those replies are delivered (except replies
// of the same PostgreSQL batch, which the server never completes), both sides
// of the connection are cut. What came after the step is dropped and never
// reaches the gate.
var Lose = RequestAction{kind: lose}

// Detach cuts the client's side of the connection, after the replies to earlier
// steps as in Lose, and gives the server the step when release is closed. Its
// reply is reported through Reply, whose answer is ignored. What the client
// sent behind the step follows it through the gate, with a context that ends
// with the proxy only.
func Detach(release <-chan struct{}) RequestAction {
	return RequestAction{kind: detach, release: release}
}

// DetachUnless is Detach, except that the server never gets the step when drop
// is closed before release.
func DetachUnless(release, drop <-chan struct{}) RequestAction {
	return RequestAction{kind: detach, release: release, drop: drop}
}

// ReplyAction is the fate of a reply.
type ReplyAction int

// The fates of a reply. Steps that had arrived before a cut still go to the
// gate, and replies to those already forwarded are still reported.
const (
	Deliver        ReplyAction = iota
	LoseReply                  // cut the client without delivering
	DeliverThenCut             // deliver, then cut the client
)

// Why a step ended without a delivered reply.
var (
	ErrRequestLost = errors.New("request lost on purpose")
	ErrReplyLost   = errors.New("reply lost on purpose")
	ErrDetached    = errors.New("client was cut from the step on purpose")
	ErrCut         = errors.New("connection cut on purpose")
	ErrClientGone  = errors.New("client closed the connection")
	ErrServerGone  = errors.New("server closed the connection")
	ErrClosed      = errors.New("proxy closed")
	ErrMalformed   = errors.New("malformed or unsupported message")
)

// GoneError says how far a step came. Unwrap gives one of the errors above.
type GoneError struct {
	Forwarded bool // the server may have seen it, whole or in part
	Replied   bool // the server's reply came back and was reported through Reply
	Cause     error
}

func (e *GoneError) Error() string {
	switch {
	case e.Replied:
		return "executed, reply not delivered: " + e.Cause.Error()
	case e.Forwarded:
		return "forwarded, no reply: " + e.Cause.Error()
	}
	return "not forwarded: " + e.Cause.Error()
}

func (e *GoneError) Unwrap() error { return e.Cause }

// Counter numbers the steps of one client; its proxies share it.
type Counter struct {
	mu sync.Mutex
	n  int
}

// Count is the number of steps counted since the last Reset.
func (c *Counter) Count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n
}

// Reset makes the next step number 1.
func (c *Counter) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n = 0
}

func (c *Counter) next() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	return c.n
}

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
)

// dialect is what a protocol knows: where messages begin and end, which of
// them are steps, and which answer belongs to which question.
type dialect interface {
	// requests reads what the client sends until a group can be forwarded:
	// a command, or a batch of statements. io.EOF at the end, anything else
	// means that the client cannot be understood.
	requests(*reader) ([]*request, error)
	// reply reads what the server sends until a unit is complete; errors as
	// in requests.
	reply(*reader) (unit, error)
}

// request is what is forwarded as a whole.
type request struct {
	raw     []byte
	step    *flight   // nil: passes uncounted
	answers []*answer // what the server will send back for it, in order
}

// flight is a step between its arrival and its end.
type flight struct {
	step      Step
	forwarded bool
	replied   bool
	over      bool
}

// answer is one thing the server owes the client.
type answer struct {
	group  int     // the group of requests it belongs to
	flight *flight // nil: uncounted
	last   bool    // with it the reply to the flight is complete
	kind   answerKind
	sub    *subscription // Redis
	proto  int           // Redis, HELLO: the protocol asked for
	pg     pgAnswer      // PostgreSQL
}

type answerKind int

// unit is what is delivered as a whole.
type unit struct {
	raw    []byte
	flight *flight // nil: passes
	reply  Reply
}

// conn is one connection of the client, paired with one to the server. Two
// goroutines work on it, one a direction; each may be blocked in the gate.
type conn struct {
	p        *Proxy
	id       int
	up, down *half
	d        dialect

	ctx        context.Context // ends with the connection
	cancel     context.CancelCauseFunc
	client     context.Context // ends with the client's side of it
	stopClient context.CancelCauseFunc
	clientGone chan struct{}
	serverGone chan struct{}

	mu      sync.Mutex
	changed sync.Cond // queue, or ended
	queue   []*answer
	flights int // forwarded and not over
	group   int // of the request being dealt with, from 1
	// delivering is the group of the answer taken from the queue last, 0 when
	// the client has it.
	delivering int
	detached   bool
	asked      bool // the request loop has ended
	ended      bool
}

func newConn(p *Proxy, id int) *conn {
	c := &conn{p: p, id: id, clientGone: make(chan struct{}), serverGone: make(chan struct{})}
	c.changed.L = &c.mu
	c.ctx, c.cancel = context.WithCancelCause(p.ctx)
	c.client, c.stopClient = context.WithCancelCause(c.ctx)
	c.up = newHalf(c.serverGone, func() {
		c.listens(0)
		c.stopClient(ErrClientGone)
		close(c.clientGone)
	})
	c.down = newHalf(c.clientGone, func() {
		close(c.serverGone)
		c.mu.Lock()
		c.changed.Broadcast()
		c.mu.Unlock()
	})
	c.d = p.dialect(c)
	return c
}

func (c *conn) start() {
	go func() {
		defer c.p.running.Done()
		c.requests()
		c.mu.Lock()
		c.asked = true
		c.changed.Broadcast()
		c.mu.Unlock()
		c.settle()
	}()
	go func() {
		defer c.p.running.Done()
		defer c.p.forget(c)
		c.replies()
	}()
}

// cut ends the client's side; the server's lives on until it has answered what
// was forwarded.
func (c *conn) cut(cause error) {
	c.noteCut()
	c.stopClient(cause)
	c.down.close()
}

// noteCut remembers the server process of a connection before it is cut: a
// PostgreSQL driver answers a broken connection with a CancelRequest on another,
// and that must not reach a step which is still to be executed.
func (c *conn) noteCut() {
	if d, ok := c.d.(interface{ backend() uint32 }); ok {
		if pid := d.backend(); pid != 0 {
			c.p.cut.Store(pid, true)
		}
	}
}

// end ends both sides and all steps under way.
func (c *conn) end(cause error) {
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	c.ended = true
	var gone []*flight
	for _, a := range c.queue {
		if a.flight != nil && !a.flight.over {
			a.flight.over = true
			gone = append(gone, a.flight)
		}
	}
	c.queue = nil
	c.changed.Broadcast()
	c.mu.Unlock()
	if cause != ErrServerGone {
		c.noteCut()
	}
	c.cancel(cause)
	c.up.close()
	c.down.close()
	for _, f := range gone {
		c.gone(f, cause)
	}
}

func (c *conn) gone(f *flight, cause error) {
	c.p.cfg.Gate.Gone(f.step, &GoneError{Forwarded: f.forwarded, Replied: f.replied, Cause: cause})
}

// listens tells a gate that wants to know.
func (c *conn) listens(channels int) {
	if l, ok := c.p.cfg.Gate.(Listener); ok && c.p.cfg.Server == Redis {
		l.Listens(c.p.cfg.Client, c.id, channels)
	}
}

func (c *conn) heard(channel string) {
	if l, ok := c.p.cfg.Gate.(Listener); ok {
		l.Heard(c.p.cfg.Client, c.id, channel)
	}
}

// settle ends the connection when the client can ask no more and every
// forwarded step has been answered.
func (c *conn) settle() {
	c.mu.Lock()
	done := c.asked && c.flights == 0
	c.mu.Unlock()
	if done {
		c.end(c.clientCause())
	}
}

// clientCause is why the client's side has ended.
func (c *conn) clientCause() error {
	if err := context.Cause(c.client); err != nil {
		return err
	}
	return ErrClientGone
}

// gateContext is the context for the gate.
func (c *conn) gateContext() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.detached {
		return c.ctx
	}
	return c.client
}

// malformed reports a message that cannot be understood.
func (c *conn) malformed(who string, err error) {
	c.p.fail(fmt.Errorf("%s connection %d: %s: %w", c.p.cfg.Server, c.id, who, errors.Join(ErrMalformed, err)))
}

func (c *conn) requests() {
	r := &reader{in: c.up.in}
	for {
		group, err := c.d.requests(r)
		if err != nil {
			switch {
			case err == errCancelDropped:
				c.cut(ErrCut)
			case err != io.EOF:
				c.malformed("client", err)
				c.cut(ErrMalformed)
			}
			return
		}
		c.mu.Lock()
		c.group++
		c.mu.Unlock()
		for _, q := range group {
			if !c.request(q) {
				return
			}
		}
	}
}

// request sees one request through; false when nothing may follow it.
func (c *conn) request(q *request) bool {
	if q.step == nil {
		return c.forward(q)
	}
	if c.over() {
		return false // it arrived too late to be asked about
	}
	s := &q.step.step
	s.Client, s.Server, s.Conn = c.p.cfg.Client, c.p.cfg.Server, c.id
	s.N = c.p.cfg.Counter.next()
	action := c.p.cfg.Gate.Request(c.gateContext(), *s)
	switch action.kind {
	case lose:
		c.awaitEarlier()
		c.gone(q.step, ErrRequestLost)
		c.end(ErrRequestLost)
		return false
	case detach:
		c.mu.Lock()
		c.detached = true
		c.mu.Unlock()
		c.awaitEarlier()
		c.cut(ErrDetached)
		select {
		case <-action.release:
		case <-action.drop:
			c.gone(q.step, ErrRequestLost)
			c.end(ErrRequestLost)
			return false
		case <-c.ctx.Done():
		case <-c.serverGone:
		}
	}
	return c.forward(q)
}

func (c *conn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// forward puts down what the server will owe and hands it the bytes.
func (c *conn) forward(q *request) bool {
	if !c.expect(q) {
		if q.step != nil {
			c.gone(q.step, context.Cause(c.ctx))
		}
		return false
	}
	// When this fails the server has gone, and the reply loop tells the gate.
	return c.up.send(q.raw)
}

func (c *conn) expect(q *request) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended || c.ctx.Err() != nil {
		return false
	}
	for _, a := range q.answers {
		a.group, a.flight = c.group, q.step
	}
	if q.step != nil {
		q.answers[len(q.answers)-1].last = true
		q.step.forwarded = true
		c.flights++
	}
	c.queue = append(c.queue, q.answers...)
	c.changed.Broadcast()
	return true
}

// awaitEarlier waits until the server has answered all groups before the
// current one, or never will.
func (c *conn) awaitEarlier() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for !c.ended && (c.delivering > 0 && c.delivering < c.group || len(c.queue) > 0 && c.queue[0].group < c.group) {
		c.changed.Wait()
	}
}

// front is what the server owes next, nil when nothing.
func (c *conn) front() *answer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return nil
	}
	return c.queue[0]
}

// pop takes the front away: the server has answered it, or will not.
func (c *conn) pop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 {
		c.delivering = c.queue[0].group
		c.queue = c.queue[1:]
	}
}

func (c *conn) replies() {
	r := &reader{in: c.down.in}
	for {
		u, err := c.d.reply(r)
		if err != nil {
			cause := ErrServerGone
			if err != io.EOF {
				c.malformed("server", err)
				cause = ErrMalformed
			}
			c.end(cause)
			return
		}
		c.reply(u)
	}
}

// reply sees one unit through.
func (c *conn) reply(u unit) {
	f := u.flight
	if f == nil {
		c.down.send(u.raw)
		c.delivered()
		return
	}
	c.mu.Lock()
	mine := !f.over
	f.over, f.replied = true, true
	c.mu.Unlock()
	if !mine {
		return
	}
	action := c.p.cfg.Gate.Reply(c.gateContext(), f.step, u.reply)
	delivered := false
	switch {
	case c.client.Err() != nil:
	case action == LoseReply:
		c.cut(ErrReplyLost)
	default:
		delivered = c.down.send(u.raw)
		if action == DeliverThenCut {
			c.cut(ErrCut)
		}
	}
	if !delivered {
		c.gone(f, c.clientCause())
	}
	c.mu.Lock()
	c.flights--
	c.mu.Unlock()
	c.delivered()
	c.settle()
}

func (c *conn) delivered() {
	c.mu.Lock()
	c.delivering = 0
	c.changed.Broadcast()
	c.mu.Unlock()
}

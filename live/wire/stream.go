package wire

import (
	"sync"
	"time"

	toxistream "github.com/Shopify/toxiproxy/v2/stream"
	"github.com/Shopify/toxiproxy/v2/toxics"
)

// maxMessage bounds one command, statement or reply, in bytes. A step of a
// sale is a few hundred bytes; more than this is somebody else's traffic or a
// length that was never meant, and ends the connection with an error.
const maxMessage = 64 << 20

// maxChunk is the most toxiproxy's own ChanReader takes in one piece: it reads
// into a buffer of 32 KiB and loses what of a chunk does not fit.
const maxChunk = 32 << 10

// inbox is what has arrived from one side and has not been looked at. It keeps
// on reading while the gate holds a step: only so is the end of the
// connection noticed.
type inbox struct {
	mu     sync.Mutex
	more   sync.Cond
	data   []byte
	closed bool
	taken  chan struct{} // a token when room was made
}

func newInbox() *inbox {
	b := &inbox{taken: make(chan struct{}, 1)}
	b.more.L = &b.mu
	return b
}

func (b *inbox) add(p []byte) {
	b.mu.Lock()
	b.data = append(b.data, p...)
	b.mu.Unlock()
	b.more.Signal()
}

func (b *inbox) close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.more.Signal()
}

func (b *inbox) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.data) > maxMessage
}

// take appends all that has arrived to dst, waiting for the first byte; false
// when nothing will come any more.
func (b *inbox) take(dst []byte) ([]byte, bool) {
	b.mu.Lock()
	for len(b.data) == 0 && !b.closed {
		b.more.Wait()
	}
	got := len(b.data) > 0
	dst = append(dst, b.data...)
	b.data = b.data[:0]
	b.mu.Unlock()
	select {
	case b.taken <- struct{}{}:
	default:
	}
	return dst, got
}

// reader is the parser's view of an inbox: the bytes not consumed yet.
type reader struct {
	in  *inbox
	buf []byte
	off int
}

// bytes are the bytes not consumed yet.
func (r *reader) bytes() []byte { return r.buf[r.off:] }

// fill waits for more bytes; false at the end of the stream.
func (r *reader) fill() bool {
	if r.off > 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.off:])]
		r.off = 0
	}
	var ok bool
	r.buf, ok = r.in.take(r.buf)
	return ok
}

// consume takes n bytes away and returns a copy of them.
func (r *reader) consume(n int) []byte {
	p := append([]byte(nil), r.buf[r.off:r.off+n]...)
	r.off += n
	return p
}

// half is one direction of a connection: what a toxic stub reads and writes.
type half struct {
	in   *inbox
	out  chan []byte   // to be written, at most maxChunk each
	stop chan struct{} // closed: write what was taken from out, then close the stub
	once sync.Once
	// dead is closed when nobody reads the other end of the stub's output.
	dead <-chan struct{}
	// ended is called when the input of the stub has ended.
	ended func()

	// Used by the goroutine in pipe only; kept here so that an interrupted
	// stub goes on where it was.
	pending           *toxistream.StreamChunk
	inEnded, outEnded bool
}

func newHalf(dead <-chan struct{}, ended func()) *half {
	return &half{in: newInbox(), out: make(chan []byte), stop: make(chan struct{}), dead: dead, ended: ended}
}

func (h *half) close() { h.once.Do(func() { close(h.stop) }) }

// send hands p to the stub; false when it cannot be written any more.
func (h *half) send(p []byte) bool {
	for len(p) > 0 {
		n := min(len(p), maxChunk)
		select {
		case <-h.dead:
			return false
		case <-h.stop:
			return false
		default:
		}
		select {
		case h.out <- p[:n]:
		case <-h.dead:
			return false
		case <-h.stop:
			return false
		}
		p = p[n:]
	}
	return true
}

// pipe moves bytes between the stub and the half until the input has ended and
// the output is closed (true), or toxiproxy interrupts it (false). It never
// blocks on one thing alone: whoever wants to end it is always heard. After
// the output is closed it goes on to empty the input, because toxiproxy's own
// goroutines would wait for ever to be rid of their last chunk.
func (h *half) pipe(stub *toxics.ToxicStub) bool {
	for {
		var (
			input     <-chan *toxistream.StreamChunk
			output    chan<- *toxistream.StreamChunk
			from      <-chan []byte
			stop      <-chan struct{}
			dead      <-chan struct{}
			interrupt <-chan struct{}
			taken     <-chan struct{}
		)
		if !h.inEnded {
			if h.in.full() && !h.outEnded {
				taken = h.in.taken
			} else {
				input = stub.Input
			}
		}
		if !h.outEnded {
			interrupt = stub.Interrupt
			if h.pending != nil {
				output, dead = stub.Output, h.dead
			} else {
				from, stop = h.out, h.stop
			}
		}
		if h.inEnded && h.outEnded {
			return true
		}
		select {
		case <-interrupt:
			return false
		case <-taken:
		case c := <-input:
			if c == nil {
				h.inEnded = true
				h.in.close()
				h.ended()
				continue
			}
			h.in.add(c.Data)
		case p := <-from:
			h.pending = &toxistream.StreamChunk{Data: p, Timestamp: time.Now()}
		case output <- h.pending:
			h.pending = nil
		case <-dead:
			h.pending = nil
		case <-stop:
			h.outEnded = true
			stub.Close()
		}
	}
}

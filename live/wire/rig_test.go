package wire

import (
	"bytes"
	"context"
	"sync"
)

// rig is a connection without sockets and toxiproxy: the test plays both sides
// byte by byte, and everything has ended when it says so.
type rig struct {
	p                  *Proxy
	c                  *conn
	wait               sync.WaitGroup
	toServer, toClient bytes.Buffer

	mu      sync.Mutex
	written sync.Cond
}

func newRig(server Server, g Gate) *rig {
	p := &Proxy{cfg: Config{Server: server, Client: 7, Counter: &Counter{}, Gate: g}, conns: map[*conn]struct{}{}}
	p.dialect = func(c *conn) dialect { return newRedisDialect(c) }
	if server == Postgres {
		p.dialect = func(c *conn) dialect { return newPostgresDialect(c) }
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	r := &rig{p: p, c: newConn(p, 1)}
	r.written.L = &r.mu
	collect := func(h *half, to *bytes.Buffer) {
		r.wait.Go(func() {
			for {
				select {
				case b := <-h.out:
					r.mu.Lock()
					to.Write(b)
					r.mu.Unlock()
					r.written.Broadcast()
				case <-h.stop:
					return
				}
			}
		})
	}
	collect(r.c.up, &r.toServer)
	collect(r.c.down, &r.toClient)
	p.running.Add(2)
	r.c.start()
	return r
}

// feed gives b to an inbox in pieces of the sizes given, over and over.
func feed(in *inbox, b []byte, sizes ...int) {
	for i := 0; len(b) > 0; i++ {
		n := len(b)
		if len(sizes) > 0 {
			n = min(n, max(1, sizes[i%len(sizes)]))
		}
		in.add(b[:n])
		b = b[n:]
	}
}

// asked ends the client's side and waits until all it sent was dealt with.
func (r *rig) asked() {
	r.c.up.in.close()
	r.c.mu.Lock()
	for !r.c.asked {
		r.c.changed.Wait()
	}
	r.c.mu.Unlock()
}

// sent waits until the server has n bytes, heard until the client has.
func (r *rig) sent(n int)  { r.await(&r.toServer, n) }
func (r *rig) heard(n int) { r.await(&r.toClient, n) }

func (r *rig) await(b *bytes.Buffer, n int) {
	r.mu.Lock()
	for b.Len() < n {
		r.written.Wait()
	}
	r.mu.Unlock()
}

// answered ends the server's side and waits for the end of everything.
func (r *rig) answered() {
	r.c.down.in.close()
	r.finish()
}

func (r *rig) finish() {
	// The reply loop ends the connection when its input has ended.
	<-r.c.ctx.Done()
	r.c.up.in.close()
	r.c.down.in.close()
	r.p.running.Wait()
	r.wait.Wait()
}

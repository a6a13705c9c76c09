package wire

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// Relay stands between proxies and a Redis server that is killed and comes back,
// or is replaced by its replica. Like the proxies that operators put before a
// Redis for that (Envoy, twemproxy, the endpoint of Redis Enterprise) it keeps
// the connections of its clients meanwhile: it opens new ones to whoever serves
// then, and repeats on each what makes a connection what it is: its protocol,
// its name, its database and its subscriptions.
type Relay struct {
	l  net.Listener
	wg sync.WaitGroup

	// mu is held to write for reading, and to hold for writing: so nothing is on
	// its way to the server while it is held.
	mu       sync.RWMutex
	upstream string
	held     bool
	ended    bool
	conns    map[*relayed]struct{}
}

// relayed is one connection.
type relayed struct {
	r      *Relay
	client net.Conn
	server net.Conn // guarded by the relay
	sort   [][]byte // commands that make the connection what it is, in order
}

// dialLimit bounds reaching the server, and repeating what makes a connection
// what it is.
const dialLimit = 5 * time.Second

// NewRelay starts a relay to a server on a free port of 127.0.0.1.
func NewRelay(upstream string) (*Relay, error) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("relay: %w", err)
	}
	r := &Relay{l: l, upstream: upstream, conns: map[*relayed]struct{}{}}
	r.wg.Go(r.accept)
	return r, nil
}

// Addr is where to connect to, 127.0.0.1:port.
func (r *Relay) Addr() string { return r.l.Addr().String() }

func (r *Relay) accept() {
	for {
		client, err := r.l.Accept()
		if err != nil {
			return // closed
		}
		r.wg.Go(func() { r.serve(client) })
	}
}

func (r *Relay) serve(client net.Conn) {
	c := &relayed{r: r, client: client}
	r.mu.Lock()
	server, err := net.DialTimeout("tcp4", r.upstream, dialLimit)
	if err != nil || r.ended {
		r.mu.Unlock()
		client.Close()
		if server != nil {
			server.Close()
		}
		return
	}
	c.server = server
	r.conns[c] = struct{}{}
	r.wg.Go(func() { c.replies(server) })
	r.mu.Unlock()
	c.requests()
	r.mu.Lock()
	delete(r.conns, c)
	c.server.Close()
	r.mu.Unlock()
	client.Close()
}

// requests passes on what the client sends, one command at a time.
func (c *relayed) requests() {
	var scan respScanner
	var buf []byte
	chunk := make([]byte, 16<<10)
	for {
		n, err := c.client.Read(chunk)
		buf = append(buf, chunk[:n]...)
		for err == nil && len(buf) > 0 {
			length, bad := scan.scan(buf)
			if bad != nil {
				return
			}
			if length == 0 {
				break
			}
			if err = c.pass(bytes.Clone(buf[:length])); err == nil {
				buf = buf[length:]
			}
		}
		if err != nil {
			return
		}
	}
}

func (c *relayed) pass(raw []byte) error {
	argv, err := parseCommand(raw)
	if err != nil {
		return err
	}
	c.r.mu.RLock()
	defer c.r.mu.RUnlock()
	if len(argv) > 0 {
		switch name := strings.ToUpper(argv[0]); {
		case name == "PING" || name == "QUIT" || name == "COMMAND":
		case uncountedCommands[name] || subscribeCommands[strings.ToLower(name)]:
			c.sort = append(c.sort, raw)
		}
	}
	_, err = c.server.Write(raw)
	return err
}

// replies passes on what a server sends until that server is no longer the one.
func (c *relayed) replies(server net.Conn) {
	chunk := make([]byte, 16<<10)
	for {
		n, err := server.Read(chunk)
		if n > 0 {
			if _, err := c.client.Write(chunk[:n]); err != nil {
				return
			}
		}
		if err == nil {
			continue
		}
		// A server that goes while it is held is expected back.
		if c.r.mu.TryRLock() {
			if c.server == server {
				c.client.Close()
			}
			c.r.mu.RUnlock()
		}
		return
	}
}

// Hold keeps everything from the server until Resume. What the server is
// answering must have been answered.
func (r *Relay) Hold() {
	r.mu.Lock()
	r.held = true
}

// Resume goes on with the server at an address, on connections that are what the
// old ones were. It follows a Hold.
func (r *Relay) Resume(upstream string) error {
	defer r.mu.Unlock()
	r.held, r.upstream = false, upstream
	var errs []error
	for c := range r.conns {
		if err := c.reconnect(upstream); err != nil {
			c.client.Close()
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// reconnect replaces the connection to the server; the relay's mu is held.
func (c *relayed) reconnect(upstream string) error {
	c.server.Close()
	server, err := net.DialTimeout("tcp4", upstream, dialLimit)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	c.server = server
	if err := server.SetDeadline(time.Now().Add(dialLimit)); err != nil {
		return err
	}
	var scan respScanner
	var buf []byte
	chunk := make([]byte, 4<<10)
	for _, raw := range c.sort {
		if _, err := server.Write(raw); err != nil {
			return fmt.Errorf("relay: repeat %.40q: %w", raw, err)
		}
		argv, _ := parseCommand(raw)
		answers := 1
		if subscribeCommands[strings.ToLower(argv[0])] {
			answers = max(1, len(argv)-1)
		}
		for answers > 0 {
			if length, err := scan.scan(buf); err != nil {
				return fmt.Errorf("relay: answer to %.40q: %w", raw, err)
			} else if length > 0 {
				buf = slices.Delete(buf, 0, length)
				answers--
				continue
			}
			n, err := server.Read(chunk)
			if err != nil {
				return fmt.Errorf("relay: answer to %.40q: %w", raw, err)
			}
			buf = append(buf, chunk[:n]...)
		}
	}
	if err := server.SetDeadline(time.Time{}); err != nil {
		return err
	}
	c.r.wg.Go(func() { c.replies(server) })
	return nil
}

// Close stops listening and ends every connection. It may follow a Hold.
func (r *Relay) Close() error {
	if !r.held {
		r.mu.Lock()
	}
	r.ended, r.held = true, false
	err := r.l.Close()
	for c := range r.conns {
		c.client.Close()
		c.server.Close()
	}
	r.mu.Unlock()
	r.wg.Wait()
	return err
}

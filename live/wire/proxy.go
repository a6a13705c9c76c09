package wire

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/Shopify/toxiproxy/v2/toxics"
	"github.com/rs/zerolog"
)

// Config says what a proxy stands between.
type Config struct {
	Server   Server
	Upstream string // host:port of the server
	Client   int    // number of the client, for Step.Client
	Counter  *Counter
	Gate     Gate
}

// Proxy is one listener: one client, one server.
type Proxy struct {
	cfg    Config
	toxi   *toxiproxy.Proxy
	id     string
	ctx    context.Context
	cancel context.CancelCauseFunc
	// running counts our goroutines: two pipes and two loops a connection.
	running sync.WaitGroup
	once    sync.Once
	dialect func(*conn) dialect // a test puts a broken one here

	cut sync.Map // server processes whose client was cut off, uint32 → true

	mu       sync.Mutex
	half     *conn // upstream link seen, downstream link still to come
	accepted int
	conns    map[*conn]struct{}
	errs     []error
	dropped  int
}

// maxErrors bounds what Errors keeps.
const maxErrors = 100

// Listen starts a proxy on a free port of 127.0.0.1. The upstream is dialled
// for each connection, not now: a client that connects while the server is
// away is closed at once.
func Listen(cfg Config) (*Proxy, error) { return listen(cfg, nil) }

func listen(cfg Config, d func(*conn) dialect) (*Proxy, error) {
	if cfg.Gate == nil || cfg.Counter == nil {
		return nil, errors.New("listen: a gate and a counter are needed")
	}
	if _, _, err := net.SplitHostPort(cfg.Upstream); err != nil {
		return nil, fmt.Errorf("listen: upstream: %w", err)
	}
	if d == nil {
		switch cfg.Server {
		case Redis:
			d = func(c *conn) dialect { return newRedisDialect(c) }
		case Postgres:
			d = func(c *conn) dialect { return newPostgresDialect(c) }
		default:
			return nil, fmt.Errorf("listen: unknown server %q", cfg.Server)
		}
	}
	register()
	p := &Proxy{cfg: cfg, dialect: d, conns: map[*conn]struct{}{}, id: strconv.FormatInt(lastID.Add(1), 10)}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	p.toxi = toxiproxy.NewProxy(server, "stockproof-"+p.id, "127.0.0.1:0", cfg.Upstream)
	proxies.Store(p.id, p)
	for _, t := range []struct{ kind, stream string }{{requestsType, "upstream"}, {repliesType, "downstream"}} {
		attributes, err := json.Marshal(map[string]any{
			"name": t.kind, "type": t.kind, "stream": t.stream, "toxicity": 1,
			"attributes": map[string]string{"proxy": p.id},
		})
		if err == nil {
			_, err = p.toxi.Toxics.AddToxicJson(strings.NewReader(string(attributes)))
		}
		if err != nil {
			proxies.Delete(p.id)
			return nil, fmt.Errorf("listen: add toxic %s: %w", t.kind, err)
		}
	}
	if err := p.toxi.Start(); err != nil {
		proxies.Delete(p.id)
		return nil, fmt.Errorf("listen: %w", err)
	}
	return p, nil
}

// Addr is where the client must connect to, 127.0.0.1:port.
func (p *Proxy) Addr() string { return p.toxi.Listen }

// Connections is the number of connections that have not ended.
func (p *Proxy) Connections() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}

// CutAll ends every connection, both sides, now. Steps under way are Gone.
func (p *Proxy) CutAll() {
	for _, c := range p.open() {
		c.end(ErrCut)
	}
}

// Close stops listening, ends every connection and waits until everything has
// ended. Steps that a gate holds see their context end. It may be called more
// than once.
func (p *Proxy) Close() error {
	p.once.Do(func() {
		p.cancel(ErrClosed)
		// Ends the accept loop first, so no connection can be born after it.
		p.toxi.Stop()
		for _, c := range p.open() {
			c.end(ErrClosed)
		}
		p.mu.Lock()
		if p.half != nil {
			p.half.up.close()
		}
		p.mu.Unlock()
		proxies.Delete(p.id)
	})
	p.running.Wait()
	return nil
}

// Errors are the messages that could not be understood, each with its
// connection, in order; at most a hundred are kept, and the last then says how
// many were not.
func (p *Proxy) Errors() []error {
	p.mu.Lock()
	defer p.mu.Unlock()
	errs := append([]error(nil), p.errs...)
	if p.dropped > 0 {
		errs = append(errs, fmt.Errorf("and %d more", p.dropped))
	}
	return errs
}

func (p *Proxy) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) == maxErrors {
		p.dropped++
		return
	}
	p.errs = append(p.errs, err)
}

func (p *Proxy) open() []*conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	var cs []*conn
	for c := range p.conns {
		cs = append(cs, c)
	}
	return cs
}

func (p *Proxy) forget(c *conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

// The toxics find their proxy by the id in their attributes: toxiproxy makes
// them from JSON.
var (
	proxies  sync.Map // id → *Proxy
	lastID   atomic.Int64
	register = sync.OnceFunc(func() {
		toxics.Register(requestsType, new(requestsToxic))
		toxics.Register(repliesType, new(repliesToxic))
	})
)

const (
	requestsType = "stockproof-requests"
	repliesType  = "stockproof-replies"
)

type requestsToxic struct {
	Proxy string `json:"proxy"`
}

type repliesToxic struct {
	Proxy string `json:"proxy"`
}

// link is the state of a stub: one half of a connection and whose it is. A nil
// half closes the stub at once.
type link struct {
	p *Proxy
	h *half
}

// NewState begins a connection. toxiproxy's accept loop makes the upstream
// link of a connection and then its downstream link, in one goroutine, before
// it accepts the next; that order is what pairs the two.
func (t *requestsToxic) NewState() any {
	v, ok := proxies.Load(t.Proxy)
	if !ok {
		return &link{}
	}
	p := v.(*Proxy)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running.Add(1)
	if p.half != nil {
		p.unpaired()
		return &link{p: p}
	}
	p.accepted++
	p.half = newConn(p, p.accepted)
	return &link{p: p, h: p.half.up}
}

// NewState completes the connection begun last and sets it going.
func (t *repliesToxic) NewState() any {
	v, ok := proxies.Load(t.Proxy)
	if !ok {
		return &link{}
	}
	p := v.(*Proxy)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running.Add(1)
	c := p.half
	p.half = nil
	if c == nil {
		p.unpaired()
		return &link{p: p}
	}
	p.conns[c] = struct{}{}
	p.running.Add(2)
	c.start()
	return &link{p: p, h: c.down}
}

// unpaired is the guard against a toxiproxy that links in another order:
// rather no connection than two that share a client. p.mu is held.
func (p *Proxy) unpaired() {
	p.errs = append(p.errs, errors.New("toxiproxy linked the directions of a connection in an unexpected order"))
	if p.half != nil {
		p.half.up.close()
		p.half = nil
	}
}

func (t *requestsToxic) Pipe(stub *toxics.ToxicStub) { pipe(stub) }
func (t *repliesToxic) Pipe(stub *toxics.ToxicStub)  { pipe(stub) }

func pipe(stub *toxics.ToxicStub) {
	l := stub.State.(*link)
	if l.h == nil {
		stub.Close()
		for c := range stub.Input {
			_ = c
		}
		if l.p != nil {
			l.p.running.Done()
		}
		return
	}
	if l.h.pipe(stub) && l.p != nil {
		l.p.running.Done()
	}
}

package subject

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/live/clients"
	"stockproof/live/reaper"
	"stockproof/model"
	"stockproof/schemes"
)

// Options say what a subject is and where its stores are.
type Options struct {
	Command     string
	RedisAddr   string        // host:port
	DatabaseURL string        // postgres://…
	Start       time.Duration // limit of the time until a process's hello; 0: DefaultStart
}

// answerLimit bounds an answer of the observer, with nothing between it and its
// stores. (A client's answers are bounded by the run.)
const answerLimit = 20 * time.Second

// Scheme is a subject as the rest of the program sees schemes. One of its processes,
// the observer, talks to the stores directly: it puts articles on sale, reads
// them, and answers the probe.
type Scheme struct {
	Hello    Hello
	options  Options
	observer *Process
}

// Open starts a subject's observer and reads what it says of itself. The error is
// a *StartError when it did not come to its hello.
func Open(ctx context.Context, r *reaper.Reaper, o Options) (*Scheme, error) {
	p, err := start(ctx, r, launch{command: o.Command, redisURL: redisURL(o.RedisAddr), databaseURL: o.DatabaseURL,
		client: "stockproof-observer", start: o.Start})
	if err != nil {
		return nil, err
	}
	return &Scheme{Hello: p.hello, options: o, observer: p}, nil
}

func redisURL(addr string) string {
	if addr == "" {
		return ""
	}
	return (&url.URL{Scheme: "redis", Host: addr, Path: "/0"}).String()
}

// Close ends the observer.
func (s *Scheme) Close() { s.observer.Kill() }

// Entry is the subject in the matrix, with what it declares. A subject that says
// where its leases are, or that it lists orders, is asked for them.
func (s *Scheme) Entry(declared schemes.Guarantees) schemes.Entry {
	e := schemes.Entry{
		Summary: "subject: " + s.options.Command, Hidden: true, Guarantees: declared,
		Stores: schemes.Stores{Redis: s.Hello.Redis, SQL: s.Hello.SQL},
	}
	orders, leases := s.Hello.Operations[opOrders], len(s.Hello.Leases) > 0
	switch {
	case orders && leases:
		e.Scheme = struct {
			*Scheme
			auditor
			leaser
		}{s, auditor{s}, leaser{s}}
	case orders:
		e.Scheme = struct {
			*Scheme
			auditor
		}{s, auditor{s}}
	case leases:
		e.Scheme = struct {
			*Scheme
			leaser
		}{s, leaser{s}}
	default:
		e.Scheme = s
	}
	return e
}

// Name is name and version.
func (s *Scheme) Name() string { return s.Hello.Scheme() }

// Restocks says whether the subject puts units back.
func (s *Scheme) Restocks() bool { return s.Hello.Operations[model.Restock] }

// Launch implements clients.Launcher: a client of a run, behind its proxies. Only
// the stores that the subject named are there.
func (s *Scheme) Launch(ctx context.Context, r *reaper.Reaper, setup clients.Setup) (clients.Client, error) {
	p, err := start(ctx, r, launch{
		command: s.options.Command, redisURL: redisURL(setup.RedisAddr), databaseURL: setup.DSN, client: setup.Client,
		lease: setup.Times.Lease, wait: setup.Times.Wait, retry: setup.Times.Retry, start: s.options.Start,
	})
	if err != nil {
		return nil, err
	}
	if p.hello.Scheme() != s.Name() {
		p.Kill()
		return nil, &ProtocolError{Rule: fmt.Sprintf("it called itself %s, and now %s", s.Name(), p.hello.Scheme())}
	}
	return p, nil
}

// Alive implements clients.Launcher.
func (s *Scheme) Alive() error {
	select {
	case <-s.observer.Gone():
		return fmt.Errorf("subject %s: %w", s.Name(), s.observer.Err())
	default:
		return nil
	}
}

// ask asks the observer.
func (s *Scheme) ask(ctx context.Context, req request) (answer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, answerLimit, fmt.Errorf("subject %s: no answer to %s after %s", s.Name(), req.Op, answerLimit))
	defer cancel()
	a, err := s.observer.ask(ctx, req)
	if err != nil {
		return a, fmt.Errorf("subject %s: %s: %w", s.Name(), req.Op, err)
	}
	return a, nil
}

// Load puts an article on sale.
func (s *Scheme) Load(ctx context.Context, env schemes.Env, sku string, units int64) error {
	switch {
	case s.Hello.Key == "":
		return s.applied(ctx, request{Op: opLoad, SKU: sku, Qty: units})
	case s.Hello.Field == "":
		return env.Redis.Set(ctx, forSKU(s.Hello.Key, sku), units, 0).Err()
	}
	return env.Redis.HSet(ctx, forSKU(s.Hello.Key, sku), s.Hello.Field, units).Err()
}

func (s *Scheme) applied(ctx context.Context, req request) error {
	a, err := s.ask(ctx, req)
	if err == nil && a.Outcome != model.OK {
		err = fmt.Errorf("subject %s: %s %s: %s: %s", s.Name(), req.Op, req.SKU, a.Outcome, a.Err)
	}
	return err
}

// Read answers the counter: where the subject said it is, or what it says.
func (s *Scheme) Read(ctx context.Context, env schemes.Env, sku string) (int64, error) {
	if s.Hello.Key == "" {
		return s.read(ctx, sku)
	}
	var got *redis.StringCmd
	if key := forSKU(s.Hello.Key, sku); s.Hello.Field == "" {
		got = env.Redis.Get(ctx, key)
	} else {
		got = env.Redis.HGet(ctx, key, s.Hello.Field)
	}
	left, err := got.Int64()
	if errors.Is(err, redis.Nil) {
		return 0, fmt.Errorf("%w: %s", schemes.ErrNoStock, sku)
	}
	return left, err
}

// read is what the subject says.
func (s *Scheme) read(ctx context.Context, sku string) (int64, error) {
	a, err := s.ask(ctx, request{Op: model.Read, SKU: sku})
	if err == nil && a.Outcome != model.Value {
		err = fmt.Errorf("subject %s: read %s: %s: %s", s.Name(), sku, a.Outcome, a.Err)
	}
	return a.Value, err
}

// Deduct is for the probe: a sale with no proxy in between.
func (s *Scheme) Deduct(ctx context.Context, _ schemes.Env, req schemes.Request) (model.Outcome, error) {
	return s.outcome(ctx, request{Op: model.Deduct, SKU: req.SKU, Qty: req.Qty, Request: req.ID, Buyer: req.Buyer})
}

// Restock implements schemes.Restocker.
func (s *Scheme) Restock(ctx context.Context, _ schemes.Env, req schemes.Request) (model.Outcome, error) {
	return s.outcome(ctx, request{Op: model.Restock, SKU: req.SKU, Qty: req.Qty, Request: req.ID, Buyer: req.Buyer})
}

func (s *Scheme) outcome(ctx context.Context, req request) (model.Outcome, error) {
	a, err := s.ask(ctx, req)
	if err != nil {
		return model.Unknown, err
	}
	if a.Err != "" {
		err = errors.New(a.Err)
	}
	return a.Outcome, err
}

// auditor implements schemes.Auditor.
type auditor struct{ s *Scheme }

// Orders lists the durable orders, as the subject says.
func (a auditor) Orders(ctx context.Context, _ schemes.Env, sku string) ([]model.Order, error) {
	got, err := a.s.ask(ctx, request{Op: opOrders, SKU: sku})
	if err == nil && got.Outcome != outcomeOrders {
		err = fmt.Errorf("subject %s: orders %s: %s: %s", a.s.Name(), sku, got.Outcome, got.Err)
	}
	return got.orders, err
}

// leaser implements schemes.Leaser.
type leaser struct{ s *Scheme }

// LeaseKeys are the keys that the subject named.
func (l leaser) LeaseKeys(sku string) []string {
	keys := make([]string, len(l.s.Hello.Leases))
	for i, k := range l.s.Hello.Leases {
		keys[i] = forSKU(k, sku)
	}
	return keys
}

package cost

import (
	"context"
	"fmt"

	"github.com/redis/go-redis/v9"

	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/model"
	"stockproof/schemes"
)

// Counts is what one request costs in messages, without contention: exact means
// over counted requests, not samples.
type Counts struct {
	RoundTrips float64 // commands to Redis and statements to PostgreSQL
	Commands   float64 // executed by Redis, those of scripts included
}

// passing lets every step through; the proxy counts them.
type passing struct{}

func (passing) Request(context.Context, wire.Step) wire.RequestAction         { return wire.Forward }
func (passing) Reply(context.Context, wire.Step, wire.Reply) wire.ReplyAction { return wire.Deliver }
func (passing) Gone(wire.Step, error)                                         {}

// count runs requests one after another through a proxy that counts. Of them the
// share futile finds nothing to buy.
func (s *servers) count(ctx context.Context, e schemes.Entry, requests int, futile float64) (c Counts, err error) {
	counter := new(wire.Counter)
	setup := clients.Setup{Scheme: e.Scheme.Name(), Client: s.name(), Retries: "off", Patience: patience, Pool: 4}
	if e.Stores.Redis {
		p, err := wire.Listen(wire.Config{Server: wire.Redis, Upstream: s.set.RedisAddr, Counter: counter, Gate: passing{}})
		if err != nil {
			return c, err
		}
		defer p.Close()
		setup.RedisAddr = p.Addr()
	}
	if e.Stores.SQL {
		p, err := wire.Listen(wire.Config{Server: wire.Postgres, Upstream: s.set.PostgresAddr, Counter: counter, Gate: passing{}})
		if err != nil {
			return c, err
		}
		defer p.Close()
		setup.DSN = s.set.PostgresDSNAt(p.Addr())
	}
	env, err := clients.Connect(setup)
	defer clients.Disconnect(env)
	if err != nil {
		return c, err
	}
	loader, ok := e.Scheme.(schemes.Loader)
	if !ok {
		return c, fmt.Errorf("scheme %s: has no Load", e.Scheme.Name())
	}
	one := &sale{entry: e, skus: []string{s.name()}, units: sellable(requests, futile), envs: []schemes.Env{env}, connections: 1}
	warm := &sale{entry: e, skus: []string{s.name()}, units: 1, envs: one.envs, connections: 1}
	defer func() {
		if own, has := e.Scheme.(interface{ hangUp() }); has {
			own.hangUp()
		}
	}()
	for _, sale := range []*sale{warm, one} {
		if err := loader.Load(ctx, env, sale.skus[0], sale.units); err != nil {
			return c, fmt.Errorf("scheme %s: load: %w", e.Scheme.Name(), err)
		}
	}
	for n := range 2 { // scripts are loaded and statements prepared on both ways
		warm.deduct(ctx, 0, -1-n) // ids that are not used again
	}
	direct := redis.NewClient(&redis.Options{Addr: s.set.RedisAddr})
	defer direct.Close()
	before, err := calls(ctx, direct)
	if err != nil {
		return c, err
	}
	counter.Reset()
	l := load{outcomes: map[model.Outcome]int{}, requests: requests}
	for n := range requests {
		l.outcomes[one.deduct(ctx, 0, n)]++
	}
	trips := counter.Count()
	after, err := calls(ctx, direct)
	if err != nil {
		return c, err
	}
	if sold := l.outcomes[model.Sold]; int64(sold) != one.units || l.share(model.Sold, model.SoldOut) != 1 {
		return c, fmt.Errorf("%w: %s, one after another, sold %d of %d: %v", ErrUnsound, e.Scheme.Name(), sold, one.units, l.outcomes)
	}
	if err := one.check(ctx, l); err != nil {
		return c, err
	}
	return Counts{RoundTrips: float64(trips) / float64(requests), Commands: float64(after-before) / float64(requests)}, nil
}

// sellable is the units that leave a share of requests futile.
func sellable(requests int, futile float64) int64 {
	return int64(float64(requests)*(1-futile) + 0.5)
}

package cost

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/live/clients"
	"stockproof/model"
	"stockproof/schemes"
)

// sale is some articles of a scheme on sale on real servers.
type sale struct {
	entry       schemes.Entry
	skus        []string
	units       int64 // of each article
	envs        []schemes.Env
	connections int
}

// ErrUnsound is a run whose sales do not add up: what it cost says nothing.
var ErrUnsound = errors.New("the sales do not add up")

// patience is how long an answer may take under load before the client gives up:
// far longer than a lease is waited for.
const patience = 20 * time.Second

// begin puts articles on sale. Every connection is a client with a name of its own;
// they share one pool of so many connections, as the threads of an application do.
func (s *servers) begin(ctx context.Context, e schemes.Entry, times schemes.Config, redisAddr string, connections, skus int, units int64) (*sale, error) {
	setup := clients.Setup{Scheme: e.Scheme.Name(), Retries: "off", Times: times, Patience: patience, Pool: connections}
	if e.Stores.Redis {
		setup.RedisAddr = redisAddr
	}
	if e.Stores.SQL {
		setup.DSN = s.set.PostgresDSN("")
	}
	env, err := clients.Connect(setup)
	if err != nil {
		clients.Disconnect(env)
		return nil, err
	}
	if env.DB != nil {
		env.DB.SetMaxIdleConns(connections) // otherwise most are closed and opened again all the time
	}
	sale := &sale{entry: e, units: units, connections: connections}
	for c := range connections {
		mine := env
		mine.Client = fmt.Sprintf("%s-%d", s.name(), c)
		sale.envs = append(sale.envs, mine)
	}
	loader, ok := e.Scheme.(schemes.Loader)
	if !ok {
		sale.end()
		return nil, fmt.Errorf("scheme %s: has no Load", e.Scheme.Name())
	}
	for range skus {
		sku := s.name()
		if err := loader.Load(ctx, env, sku, units); err != nil {
			sale.end()
			return nil, fmt.Errorf("scheme %s: load: %w", e.Scheme.Name(), err)
		}
		sale.skus = append(sale.skus, sku)
	}
	return sale, nil
}

func (s *sale) end() {
	if own, has := s.entry.Scheme.(interface{ hangUp() }); has {
		own.hangUp()
	}
	if len(s.envs) > 0 {
		clients.Disconnect(s.envs[0])
	}
}

// deduct is one request for one unit, of the article that is its turn.
func (s *sale) deduct(ctx context.Context, connection, n int) model.Outcome {
	env := s.envs[connection]
	id := env.Client + "." + strconv.Itoa(n)
	outcome, err := s.entry.Scheme.Deduct(ctx, env, schemes.Request{SKU: s.skus[n%len(s.skus)], Qty: 1, ID: id, Buyer: id})
	if err != nil && outcome == model.Sold {
		return model.Unknown // it did not come to its end
	}
	return outcome
}

// check refuses a run that cannot have been: more sold than there was, units from
// nowhere, or more units astray than there are answers that leave it open.
func (s *sale) check(ctx context.Context, l load) error {
	sold := int64(l.outcomes[model.Sold])
	all := s.units * int64(len(s.skus))
	must, _ := s.entry.Guarantees.Declared("none", "unit", "off", "live")
	if sold > all && !must[model.Oversell] {
		return fmt.Errorf("%w: %s sold %d of %d", ErrUnsound, s.entry.Scheme.Name(), sold, all)
	}
	reader, reads := s.entry.Scheme.(schemes.Reader)
	_, works := s.entry.Scheme.(schemes.Worker)
	if !reads || works || must[model.Oversell] || must[model.LostUnits] {
		return nil
	}
	var left int64
	for _, sku := range s.skus {
		n, err := reader.Read(ctx, s.envs[0], sku)
		if err != nil {
			return fmt.Errorf("scheme %s: read: %w", s.entry.Scheme.Name(), err)
		}
		left += n
	}
	open := int64(l.outcomes[model.Unknown] + l.outcomes[model.Failed])
	if astray := all - sold - left; astray < 0 || astray > open {
		return fmt.Errorf("%w: %s: %d on sale, %d sold and %d left", ErrUnsound, s.entry.Scheme.Name(), all, sold, left)
	}
	return nil
}

// cpu is the processor time that Redis has used, in seconds.
func cpu(ctx context.Context, r *redis.Client) (float64, error) {
	info, err := r.Info(ctx, "cpu").Result()
	if err != nil {
		return 0, err
	}
	total := 0.0
	for line := range strings.Lines(info) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if key == "used_cpu_sys" || key == "used_cpu_user" {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				return 0, err
			}
			total += n
		}
	}
	return total, nil
}

// calls is how many commands Redis has executed, those of scripts included, but
// not what a client says about itself or asks about the server.
func calls(ctx context.Context, r *redis.Client) (int64, error) {
	info, err := r.Info(ctx, "commandstats").Result()
	if err != nil {
		return 0, err
	}
	var total int64
	for line := range strings.Lines(info) {
		name, stats, ok := strings.Cut(strings.TrimSpace(line), ":")
		name, is := strings.CutPrefix(name, "cmdstat_")
		name, _, _ = strings.Cut(name, "|")
		switch name {
		case "info", "hello", "client", "ping", "config", "command":
			continue
		}
		if !ok || !is {
			continue
		}
		var n int64
		if _, err := fmt.Sscanf(stats, "calls=%d", &n); err != nil {
			return 0, fmt.Errorf("INFO commandstats: %q: %w", line, err)
		}
		total += n
	}
	return total, nil
}

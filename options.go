package stockproof

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/schemes"
)

// World is where a scheme is run.
type World string

// Worlds.
const (
	// Explore covers every interleaving and placement within bounds; it needs no
	// server.
	Explore World = "explore"
	// Live runs every placement on real Redis and PostgreSQL, with clients that are
	// processes; it needs [Main].
	Live World = "live"
)

// Option says what to judge, within which bounds, and what is declared.
type Option func(*plan)

// plan is what the options come to.
type plan struct {
	entry   schemes.Entry
	worlds  []World
	loads   []faults.Workload
	kinds   []faults.Kind
	retries []string
	bounds  evidence.ExploreBounds
	dir     string
	asked   bool // for faults or workloads by name
	errs    []error
}

// UsesSQL says that the scheme talks to PostgreSQL: [Env] has a DB then. In explore
// it is the subset of docs/sql-subset.md, with the tables goods and orders.
func UsesSQL() Option { return func(p *plan) { p.entry.Stores.SQL = true } }

// WithoutRedis says that the scheme does not talk to Redis.
func WithoutRedis() Option { return func(p *plan) { p.entry.Stores.Redis = false } }

// ByName says that what the scheme does depends on what its client, buyer or
// request is called. Clients are then not taken for interchangeable, and explore
// takes longer.
func ByName() Option { return func(p *plan) { p.entry.ByName = true } }

// Declare adds known weaknesses. Everything else is promised: a law that breaks
// without being declared fails, and so does a declared weakness that does not show.
func Declare(weaknesses ...Weakness) Option {
	return func(p *plan) {
		for _, w := range weaknesses {
			if err := known(w); err != nil {
				p.errs = append(p.errs, fmt.Errorf("Declare: %w", err))
			}
		}
		p.entry.Guarantees.Weaknesses = append(p.entry.Guarantees.Weaknesses, weaknesses...)
	}
}

// Breaks declares laws that are known to break under a fault, in every workload
// and with every setting of the client library.
func Breaks(fault Fault, why string, properties ...Property) Option {
	return Declare(Weakness{Fault: string(fault), Breaks: properties, Why: why})
}

// In chooses the worlds; [Explore] when nothing is said.
func In(worlds ...World) Option {
	return func(p *plan) {
		for _, w := range worlds {
			if w != Explore && w != Live {
				p.errs = append(p.errs, fmt.Errorf("In: unknown world %q; there are explore and live", w))
			}
		}
		p.worlds = worlds
	}
}

// UnderFaults chooses the kinds of fault; [ClientFaults] when nothing is said.
func UnderFaults(kinds ...Fault) Option {
	return func(p *plan) {
		for _, k := range kinds {
			if _, err := faults.ParseKind(string(k)); err != nil {
				p.errs = append(p.errs, err)
			}
		}
		p.kinds = kinds
	}
}

// WithWorkloads chooses the sales by name: unit, mixed, restock. When nothing is
// said, all that the scheme can serve.
func WithWorkloads(names ...string) Option {
	return func(p *plan) {
		p.loads, p.asked = nil, true
		for _, name := range names {
			w, err := faults.WorkloadByName(name)
			if err != nil {
				p.errs = append(p.errs, err)
			}
			p.loads = append(p.loads, w)
		}
	}
}

// WithClients sets the number of clients in explore, 1 to 6; three when nothing is said.
func WithClients(n int) Option {
	return func(p *plan) {
		if n < 1 {
			p.errs = append(p.errs, fmt.Errorf("WithClients: %d, want 1 or more", n))
		}
		p.bounds.Clients = n
	}
}

// WithFaultsAtOnce sets how many faults one execution of explore may have; one when
// nothing is said.
func WithFaultsAtOnce(n int) Option {
	return func(p *plan) {
		if n < 0 {
			p.errs = append(p.errs, fmt.Errorf("WithFaultsAtOnce: %d, want 0 or more", n))
		}
		p.bounds.MaxFaults = n
	}
}

// WithStock sets the units on sale that explore tries; 1 and 2 when nothing is said.
func WithStock(units ...int64) Option {
	return func(p *plan) {
		if len(units) == 0 || slices.Min(units) < 0 {
			p.errs = append(p.errs, fmt.Errorf("WithStock: %d, want one or more numbers from 0 on", units))
		}
		p.bounds.Stock = units
	}
}

// WithMemory bounds the memory of one search of explore, in bytes. A search that
// does not fit is inconclusive, which is a failure.
func WithMemory(bytes int64) Option { return func(p *plan) { p.bounds.MemoryLimit = bytes } }

// WithRetries chooses how go-redis is set: "off", "default", or both, which is what
// happens when nothing is said.
func WithRetries(settings ...string) Option {
	return func(p *plan) {
		for _, s := range settings {
			if !slices.Contains(faults.Retries(), s) {
				p.errs = append(p.errs, fmt.Errorf("WithRetries: %q, want off or default", s))
			}
		}
		p.retries = settings
	}
}

// KeepIn writes evidence.json, report.html, and all witnesses and histories to a
// folder. When nothing is said, only what a failed test points at is kept, in a
// folder of its own that the failure names.
func KeepIn(dir string) Option { return func(p *plan) { p.dir = dir } }

// ErrUsage is an option, or a scheme, that cannot be.
var ErrUsage = errors.New("stockproof: bad usage")

// A name becomes part of file names and of schedules.
var goodName = regexp.MustCompile(`^[a-z0-9][a-z0-9._@-]*$`)

func newPlan(scheme Scheme, options []Option) (*plan, error) {
	p := &plan{
		entry:   schemes.Entry{Scheme: scheme, Stores: schemes.Stores{Redis: true}},
		worlds:  []World{Explore},
		loads:   faults.Workloads(),
		kinds:   ClientFaults(),
		retries: faults.Retries(),
		bounds:  evidence.DefaultExploreBounds(),
	}
	for _, o := range options {
		o(p)
	}
	name := scheme.Name()
	if !goodName.MatchString(name) {
		p.errs = append(p.errs, fmt.Errorf("scheme %q: want a name of lower-case letters, digits and . _ @ -", name))
	}
	if !p.entry.Stores.Redis && !p.entry.Stores.SQL {
		p.errs = append(p.errs, errors.New("a scheme without Redis needs UsesSQL"))
	}
	if ours, err := schemes.ByName(name); err == nil && !ours.Hidden {
		p.errs = append(p.errs, fmt.Errorf("scheme %q: one that comes with stockproof is called that", name))
	}
	if _, restocks := scheme.(Restocker); !restocks {
		served := slices.DeleteFunc(slices.Clone(p.loads), faults.Workload.Restocks)
		if p.asked && len(served) < len(p.loads) {
			p.errs = append(p.errs, fmt.Errorf("scheme %q has no Restock, which the workload asks for", name))
		}
		p.loads = served
	}
	if len(p.worlds) == 0 || len(p.loads) == 0 || len(p.kinds) == 0 || len(p.retries) == 0 {
		p.errs = append(p.errs, errors.New("nothing is left to judge: worlds, workloads, faults and retries each need one"))
	}
	if len(p.errs) > 0 {
		return nil, fmt.Errorf("%w: %w", ErrUsage, errors.Join(p.errs...))
	}
	return p, nil
}

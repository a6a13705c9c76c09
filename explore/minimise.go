package explore

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// Minimiser looks for the smallest execution that shows the same as a larger
// one. It does not cut the larger one down: breadth-first search over the
// smallest sales finds the minimum in milliseconds. It keeps the searches it made,
// because one answers for every property, and is safe for concurrent use.
type Minimiser struct {
	lab      *Lab
	mu       sync.Mutex
	searches map[sales][]shown
}

// sales are the searches with one number of clients.
type sales struct {
	Sought
	clients int
}

// shown are the shortest executions of one sale, by property.
type shown map[model.Property]*schedule.Schedule

// Sought is what a minimal execution has in common with the one it is for.
type Sought struct {
	Scheme  string
	Retries string // "off" or "default"
	Fault   faults.Kind
}

// NewMinimiser makes a minimiser that searches in a laboratory.
func NewMinimiser(lab *Lab) *Minimiser {
	return &Minimiser{lab: lab, searches: map[sales][]shown{}}
}

// Bounds of the search for a smaller execution: the workloads of package
// faults, with so many clients and units. One more fault never makes an
// execution smaller.
const (
	minimiseClients = 3
	minimiseStock   = 2
)

// Minimise searches the smallest execution that violates p as s does: of the
// same scheme, retries and kind of fault, with the fewest clients, then the
// fewest steps, then the smallest stock. It answers s itself where there is no
// smaller one, so the answer never has more clients or steps than s.
func (m *Minimiser) Minimise(ctx context.Context, s *schedule.Schedule, p model.Property) (*schedule.Schedule, error) {
	if !s.Shows(p) {
		return nil, fmt.Errorf("%w: minimise: the schedule does not violate %s", ErrConfig, p)
	}
	kinds := s.Faults()
	if len(kinds) > 1 {
		return nil, fmt.Errorf("%w: minimise: %d kinds of fault in one execution, want one", ErrConfig, len(kinds))
	}
	smaller, err := m.Smallest(ctx, Sought{s.Scheme, s.Retries, kinds[0]}, p)
	if err != nil {
		return nil, err
	}
	if smaller == nil || len(smaller.Clients) > len(s.Clients) || len(smaller.Steps) > len(s.Steps) {
		return s, nil
	}
	return smaller, nil
}

// Smallest searches the smallest execution in which the fault happens and p is
// violated; nil when none of the sales that are searched shows it.
func (m *Minimiser) Smallest(ctx context.Context, want Sought, p model.Property) (*schedule.Schedule, error) {
	if want.Fault == faults.ClientPauseShort {
		// Shorter than a lease, a pause does not differ from an order of steps.
		want.Fault = faults.None
	}
	for clients := 1; clients <= minimiseClients; clients++ {
		all, err := m.search(ctx, sales{want, clients})
		if err != nil {
			return nil, err
		}
		var best *schedule.Schedule
		for _, found := range all { // smallest stock first
			if s := found[p]; s != nil && (best == nil || len(s.Steps) < len(best.Steps)) {
				best = s
			}
		}
		if best != nil {
			return best, nil
		}
	}
	return nil, nil
}

func (m *Minimiser) search(ctx context.Context, want sales) ([]shown, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if all, ok := m.searches[want]; ok {
		return all, nil
	}
	entry, err := schemes.ByName(want.Scheme)
	if err != nil {
		return nil, err
	}
	var all []shown
	for stock := int64(1); stock <= minimiseStock; stock++ {
		for _, load := range faults.Workloads() {
			cfg := Config{Entry: entry, Workload: load, Clients: want.clients, Stock: stock, Retries: want.Retries}
			if want.Fault != faults.None {
				cfg.Faults, cfg.MaxFaults = []faults.Kind{want.Fault}, 1
			}
			r, err := m.lab.Run(ctx, cfg)
			if err != nil {
				return nil, fmt.Errorf("minimise: %w", err)
			}
			found := shown{}
			for p, v := range r.Verdicts {
				if v.Witness == nil {
					continue
				}
				if s := v.Witness.Schedule(); slices.Equal(s.Faults(), []faults.Kind{want.Fault}) {
					found[p] = s
				}
			}
			all = append(all, found)
		}
	}
	if ctx.Err() == nil { // else they were cut short
		m.searches[want] = all
	}
	return all, context.Cause(ctx)
}

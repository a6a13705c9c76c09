package live

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"stockproof/faults"
	"stockproof/model"
)

// SoakResult is what a soak has come to so far.
type SoakResult struct {
	Sales    int // judged
	Slow     int // left out: the machine stood still for so long that a lease may have ended by itself
	Outcomes map[model.Outcome]int
	Settled  int // unknowns that the durable orders decided
	Open     int // unknowns that stayed
	Fired    map[faults.Kind]int
	Verdicts map[model.Property]*SoakVerdict
	Elapsed  time.Duration
	Stopped  bool // before its time
}

// SoakVerdict is what the sales say of one property.
type SoakVerdict struct {
	Broken    int   // sales that broke it
	Evaluated int   // sales that showed whether they do
	Worst     int64 // amount in one sale, in the property's unit
	Detail    string
	// Run is, of the sales that broke it, the one with the fewest clients (a client that
	// comes in the place of a killed one is another), then the fewest steps, and Sale
	// its number from 1.
	Run  *Run
	Sale int
}

// Operations counts what was asked and came to an answer or an unknown.
func (r *SoakResult) Operations() (n int) {
	for _, count := range r.Outcomes {
		n += count
	}
	return n
}

// SaleHistory is where the history of a sale, from 1, is written below the
// folder of a soak.
func SaleHistory(sale int) string { return fmt.Sprintf("%06d.jsonl", sale) }

// Soak makes sale after sale until the duration is over or ctx ends; then it lets the
// operations under way end, and judges that sale too. Each sale is on an article of its own
// and is judged when it is at rest: the laws, and the linearizability of its
// history. An error means that a sale broke down; what was found until then comes with it.
func (w *World) Soak(ctx context.Context, c SoakConfig) (*SoakResult, error) {
	result := &SoakResult{Outcomes: map[model.Outcome]int{}, Fired: map[faults.Kind]int{},
		Verdicts: map[model.Property]*SoakVerdict{}}
	for _, p := range model.Properties() {
		result.Verdicts[p.ID] = &SoakVerdict{}
	}
	if err := c.check(); err != nil {
		return result, err
	}
	load := faults.Workload{Name: "steps", Stock: 1, Clients: [][]faults.Call{{{Op: model.Deduct, Qty: 1}}}}
	commands, err := w.Observe(ctx, c.Entry, load, c.Retries)
	if err != nil {
		return result, err
	}
	began := time.Now()
	defer func() { result.Elapsed, result.Stopped = time.Since(began), ctx.Err() != nil }()
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	// The clock starts when the clients of the first sale are there: many of them
	// take longer to start than a short soak lasts.
	var clock *time.Timer
	ready := func() {
		if clock == nil {
			began, clock = time.Now(), time.AfterFunc(c.Duration, cancel)
		}
	}
	defer func() {
		if clock != nil {
			clock.Stop()
		}
	}()
	for n := 0; until.Err() == nil; n++ {
		path := ""
		if c.Dir != "" {
			path = filepath.Join(c.Dir, SaleHistory(n+1))
		}
		run, fired, err := w.soakSale(context.WithoutCancel(ctx), c, n, len(commands[0]), path, ready, until.Done())
		for kind, count := range fired {
			result.Fired[kind] += count
		}
		if err != nil {
			return result, err
		}
		if len(run.History.Ops) == 0 { // nobody came any more
			if path != "" {
				err = os.Remove(path)
			}
			return result, err
		}
		if err := run.Check(c.Dir); err != nil {
			return result, err
		}
		result.add(n+1, run)
		result.Elapsed = time.Since(began)
		if c.Progress != nil {
			c.Progress(result)
		}
	}
	return result, nil
}

// add counts a sale in.
func (r *SoakResult) add(number int, run *Run) {
	for _, o := range run.answers() {
		r.Outcomes[o.Outcome]++
	}
	r.Settled, r.Open = r.Settled+run.Decided, r.Open+run.Open
	if run.slow() {
		r.Slow++
		return
	}
	r.Sales++
	for _, f := range run.Findings {
		v := r.Verdicts[f.Property]
		if f.Evaluated {
			v.Evaluated++
		}
		if !f.Broken {
			if !f.Evaluated && v.Broken == 0 {
				v.Detail = f.Detail
			}
			continue
		}
		v.Broken++
		if max(f.Amount, -f.Amount) > max(v.Worst, -v.Worst) {
			v.Worst, v.Detail = f.Amount, f.Detail
		}
		if v.Run == nil || cmp.Or(cmp.Compare(len(run.Case.Workload.Clients), len(v.Run.Case.Workload.Clients)), cmp.Compare(len(run.Steps), len(v.Run.Steps))) < 0 {
			v.Run, v.Sale = run, number
		}
	}
}

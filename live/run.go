package live

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/model"
	"stockproof/schemes"
)

// Case is one run to make.
type Case struct {
	Entry     schemes.Entry
	Workload  faults.Workload
	Retries   string // of go-redis: "off" or "default"
	Placement faults.Placement
	// Sham makes of a fault of a server what looks like it and is not: a process
	// that is killed and loses nothing, a replica that was merely frozen, CLIENT PAUSE
	// for a freeze, a policy of eviction that spares the key, a crash after a
	// checkpoint. A run with it must not fire; it is there to convict the proofs.
	Sham bool
}

// Name identifies the case in file names.
func (c Case) Name() string {
	p := c.Placement
	kind := string(p.Kind)
	if p.Setting != faults.NoSetting {
		kind += "-" + string(p.Setting)
	}
	name := fmt.Sprintf("%s.%s.%s.retries-%s", c.Entry.Scheme.Name(), kind, c.Workload.Name, c.Retries)
	if p.Step > 0 {
		name += fmt.Sprintf(".%s%d", faults.ClientName(p.Client), p.Step)
	} else {
		name += "." + string(p.Order)
	}
	if p.Variant > 0 {
		name += fmt.Sprintf(".variant%d", p.Variant)
	}
	if p.ThenCrash {
		name += ".then-crash"
	}
	return name
}

// Run is what happened.
type Run struct {
	Case    Case
	History histories.History // as recorded: doubts are open
	Worked  []schedule.Answer // rounds of the background role; they are part of no history
	Settled histories.History // doubts decided from the orders, where there are any
	Decided int               // how many
	Open    int               // unknowns that stayed
	Steps   []Step
	Fired   bool   // the fault, or the order, took effect
	Proof   string // of a fault of a server: what proves that it did, or why it is not proved
	// Vacuous: where the fault was to happen there was nothing that it takes, as the
	// server said: a snapshot of just what Redis held, or no key. It is no place of
	// the fault.
	Vacuous  bool
	Unworked string // why the background role could not be brought to its end
	Findings []model.Finding
	Checked  histories.Checked
	Rest     model.Rest
	// NoCounter: at rest the scheme has no counter, as Read says. That is known, and
	// not the same as one that could not be read.
	NoCounter bool
	Notes     []string // errors the scheme reported, by request
	Elapsed   time.Duration

	audited int64 // the recorder's time when the orders were read
	marks   []mark
	sku     string
	times   schemes.Config
}

// OutcomeOf is what a client's n-th operation, from 0, was answered; Unknown
// when it was not.
func (r *Run) OutcomeOf(client, n int) model.Outcome {
	for _, o := range r.History.Ops {
		if o.Client != client {
			continue
		}
		if n == 0 {
			return o.Outcome
		}
		n--
	}
	return model.Unknown
}

// answers are the operations of the clients: the history without the read at rest.
func (r *Run) answers() []model.Operation {
	return slices.DeleteFunc(slices.Clone(r.History.Ops), func(o model.Operation) bool {
		return o.Client >= len(r.Case.Workload.Clients)
	})
}

// Finding is what the run says of a property.
func (r *Run) Finding(p model.Property) model.Finding {
	for _, f := range r.Findings {
		if f.Property == p {
			return f
		}
	}
	return model.Finding{Property: p, Detail: "not looked at"}
}

// Times a live run uses instead of the published ones.
const (
	// shortLease is a lease that a run can wait for. Nothing but the fault
	// itself may outlast it, so it is only used where a fault leaves a lock
	// behind or must outlast it.
	shortLease = 300 * time.Millisecond
	// shortLeaseSQL is the same for a scheme that commits to disk inside it.
	shortLeaseSQL = 1 * time.Second
	// serverLease outlasts the restart of a server on a busy machine.
	serverLease = 3 * time.Second
	// frozenPatience is how long a client waits for the answer of a server that
	// stands still, where go-redis would wait 3 s.
	frozenPatience = 500 * time.Millisecond
	// lockPatience is how long a client waits for a lock: shorter than
	// shortLease, so that a client that meets a dead holder's lock gives up.
	lockPatience = 100 * time.Millisecond
	lockRetry    = 50 * time.Millisecond
	// runLimit bounds a run; a run that meets it is an error, never a verdict.
	runLimit = 60 * time.Second
	// checkLimit bounds porcupine on one history.
	checkLimit = 10 * time.Second
)

// times of the case's run. A run without a fault, or with a pause that must stay
// shorter than the lease, keeps the published lease of 10 s and more: on a
// busy machine nothing else keeps a lease from ending by itself.
func (c Case) times() schemes.Config {
	t := schemes.Config{Wait: lockPatience, Retry: lockRetry}
	switch {
	case c.Placement.Kind == faults.None, c.Placement.Kind == faults.ClientPauseShort:
	case c.onServer():
		t.Lease = serverLease
	case c.Entry.Stores.SQL:
		t.Lease = shortLeaseSQL
	default:
		t.Lease = shortLease
	}
	if c.Placement.Setting == faults.Wait {
		t.Replicas = 1
	}
	return t
}

// onServer says whether the fault is one of a server, or of those who run it.
func (c Case) onServer() bool {
	_, is := ofServers[c.Placement.Kind]
	return is
}

// Run makes one run. An error means that the run says nothing: a server died,
// a fault could not be applied, the time was over. What was recorded until then
// comes with it.
func (w *World) Run(ctx context.Context, c Case) (run *Run, err error) {
	for _, turn := range w.turnsFor(c) {
		if err := turn.Acquire(ctx, 1); err != nil {
			return nil, fmt.Errorf("run %s: %w", c.Name(), context.Cause(ctx))
		}
		defer turn.Release(1)
	}
	began := time.Now()
	c = c.withWork()
	ctx, cancel := context.WithTimeoutCause(ctx, runLimit, fmt.Errorf("run %s: not done after %s", c.Name(), runLimit))
	defer cancel()
	n := w.runs.Add(1)
	s := &stage{
		world: w, c: c, times: c.times(), sku: fmt.Sprintf("%s-%d", w.prefix, n), env: w.env(c.times()),
		errs: make(chan error, len(c.Workload.Clients)), notes: make(chan string, operations(c.Workload)),
	}
	defer func() {
		s.close()
		if s.server != nil {
			s.server.end(w, err == nil)
		}
		if err != nil {
			err = fmt.Errorf("run %s: %w", c.Name(), errors.Join(err, context.Cause(ctx), w.Servers.Alive()))
		}
	}()
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	if err := s.perform(ctx); err != nil {
		return &Run{Case: c, History: s.rec.History()}, err
	}
	run, err = s.collect(ctx)
	run.Elapsed = time.Since(began)
	return run, err
}

// turnsFor is what a run has to wait for: servers of its own, if it needs any, and
// its turn.
func (w *World) turnsFor(c Case) (turns []*semaphore.Weighted) {
	needs := ofServers[c.Placement.Kind]
	if needs.redis {
		turns = append(turns, w.hitting)
	}
	if needs.postgres {
		turns = append(turns, w.crashing)
	}
	return append(turns, w.turns)
}

// operations counts what the clients of a workload do.
func operations(load faults.Workload) int {
	n := 0
	for _, calls := range load.Clients {
		n += len(calls)
	}
	return n
}

package live

import (
	"maps"
	"sync"
	"time"

	"stockproof/faults"
	"stockproof/live/clients"
	"stockproof/live/wire"
)

// randomFaults says where the faults of a sale are: each operation has at most
// one, at a step of its own count. Its methods do nothing on nil, which is what
// runs with one placement have.
type randomFaults struct {
	mu     sync.Mutex
	client map[int]*struck
	fired  map[faults.Kind]int
	killed map[int]bool
	stop   chan struct{}  // closed when whoever stands still shall go on at once
	paused sync.WaitGroup // clients that stand still
}

// struck is the fault of a client's present operation.
type struck struct {
	counter *wire.Counter
	base    int // steps the client had made before the operation
	planned Planned
}

func newRandomFaults() *randomFaults {
	return &randomFaults{client: map[int]*struck{}, fired: map[faults.Kind]int{}, killed: map[int]bool{}, stop: make(chan struct{})}
}

// counts notes where the steps of a client are counted.
func (r *randomFaults) counts(client int, counter *wire.Counter) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client[client] = &struck{counter: counter, planned: Planned{Fault: faults.None}}
}

// plan notes the fault of a client's next operation.
func (r *randomFaults) plan(client int, p Planned) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client[client].planned = p
}

// serving begins the count of the steps of an operation.
func (r *randomFaults) serving(client int) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.client[client]
	s.base = s.counter.Count()
}

func (r *randomFaults) at(s wire.Step) (kind faults.Kind, here bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.client[s.Client]
	return c.planned.Fault, c.planned.Fault != faults.None && s.N-c.base == c.planned.Step
}

// strikes notes that a fault takes effect.
func (r *randomFaults) strikes(client int, kind faults.Kind) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fired[kind]++
	r.killed[client] = r.killed[client] || kind == faults.ClientCrash
}

// hasKilled says whether a client was killed, also one that had its answer
// already: a step of its lock's watchdog may come later.
func (r *randomFaults) hasKilled(client int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.killed[client]
}

func (r *randomFaults) counted() map[faults.Kind]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.fired)
}

// resume lets a client that stands still go on when its time is over.
func (r *randomFaults) resume(c *conductor, client int, proc clients.Client) {
	r.mu.Lock()
	d := r.client[client].planned.Pause
	r.mu.Unlock()
	r.paused.Go(func() {
		select {
		case <-time.After(d):
		case <-r.stop:
		}
		c.happened(mark{resume: client + 1})
		if err := proc.Continue(); err != nil {
			c.fail(err)
		}
	})
}

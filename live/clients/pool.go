package clients

import (
	"sync"

	"stockproof/live/reaper"
)

// Pool keeps idle processes ready, because a process takes longer to start than
// a run to finish. It is safe for concurrent use.
type Pool struct {
	reaper *reaper.Reaper
	most   int // idle processes kept

	mu     sync.Mutex
	idle   []*Process
	closed bool
	starts sync.WaitGroup
}

// startAhead is how many processes a pool starts before anybody asks.
const startAhead = 4

// NewPool keeps up to most idle processes and starts the first ones at once.
func NewPool(r *reaper.Reaper, most int) *Pool {
	p := &Pool{reaper: r, most: most}
	for range min(startAhead, most) {
		p.prepare()
	}
	return p
}

// prepare starts one process in the background. An error is not lost: the next
// Get starts one itself and meets it again.
func (p *Pool) prepare() {
	p.starts.Go(func() {
		if proc, err := Start(p.reaper); err == nil {
			p.Put(proc)
		}
	})
}

// Get hands out an idle process, or a new one.
func (p *Pool) Get() (*Process, error) {
	for {
		p.mu.Lock()
		n := len(p.idle)
		if n == 0 {
			p.mu.Unlock()
			return Start(p.reaper)
		}
		proc := p.idle[n-1]
		p.idle = p.idle[:n-1]
		if n == 1 {
			p.prepare()
		}
		p.mu.Unlock()
		select {
		case <-proc.Gone():
			proc.Kill()
		default:
			return proc, nil
		}
	}
}

// Put takes back a process that is idle, alive and running; one that was killed
// is put away.
func (p *Pool) Put(proc *Process) {
	select {
	case <-proc.Gone():
		proc.Kill()
		return
	default:
	}
	p.mu.Lock()
	keep := !p.closed && len(p.idle) < p.most
	if keep {
		p.idle = append(p.idle, proc)
	}
	p.mu.Unlock()
	if !keep {
		proc.Kill()
	}
}

// Close ends every idle process and keeps no further one.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	idle := p.idle
	p.idle = nil
	p.mu.Unlock()
	p.starts.Wait()
	for _, proc := range idle {
		proc.Kill()
	}
}

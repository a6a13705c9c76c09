package histories

import (
	"sync"
	"time"

	"stockproof/model"
)

// Recorder collects a history while it happens, with one monotonic clock: the
// call is stamped before the client is told what to do and the return after
// its answer was read, so an interval can only be too long, which can hide a
// violation but never invent one. It is safe for concurrent use.
type Recorder struct {
	mu    sync.Mutex
	start time.Time
	h     History
	open  map[int]bool // indexes of operations without a return
	saved *saved       // written at every call and return; nil: nowhere
}

// NewRecorder starts the clock.
func NewRecorder(name, sku string, initial int64) *Recorder {
	return &Recorder{start: time.Now(), h: History{Name: name, SKU: sku, Initial: initial}, open: map[int]bool{}}
}

// Now is the recorder's time in nanoseconds.
func (r *Recorder) Now() int64 { return int64(time.Since(r.start)) }

// Call records that an operation begins now and answers its handle. Until
// Return it is an open unknown, which is what it stays when its client dies.
func (r *Recorder) Call(client int, op model.Op, qty int64, request string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := len(r.h.Ops)
	r.h.Ops = append(r.h.Ops, model.Operation{
		Client: client, Op: op, Qty: qty, Call: r.Now(), Open: true, Outcome: model.Unknown, Request: request,
	})
	r.open[i] = true
	r.saved.call(r.h.Ops[i])
	return i
}

// Return records that the operation was answered. An unknown outcome keeps the
// operation open: it may still take effect later.
func (r *Recorder) Return(handle int, outcome model.Outcome, value int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.open[handle] || outcome == model.Unknown {
		return
	}
	delete(r.open, handle)
	o := &r.h.Ops[handle]
	o.Return, o.Open, o.Outcome, o.Value = r.Now(), false, outcome, value
	r.saved.answered(handle, *o)
}

// History is a copy of what was recorded so far.
func (r *Recorder) History() History {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := r.h
	h.Ops = append([]model.Operation(nil), r.h.Ops...)
	return h
}

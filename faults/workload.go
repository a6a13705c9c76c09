package faults

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/model"
)

// Call is one operation a client is to run.
type Call struct {
	Op  model.Op
	Qty int64
}

// Workload is a sale small enough to be covered: the programs of its clients,
// in the order in which they arrive.
type Workload struct {
	Name    string
	Summary string
	Stock   int64    // units a live run starts with; explore also tries others
	Clients [][]Call // one program a client
}

// WithWork is the workload with one more client, the last to arrive, that does
// one round of the scheme's background role. A workload that says itself who
// does such rounds stays as it is.
func (w Workload) WithWork() Workload {
	for _, calls := range w.Clients {
		for _, c := range calls {
			if c.Op == model.Work {
				return w
			}
		}
	}
	w.Clients = append(slices.Clone(w.Clients), []Call{{Op: model.Work}})
	return w
}

// Restocks says whether somebody puts units back, which not every scheme can.
func (w Workload) Restocks() bool {
	return slices.ContainsFunc(w.Clients, func(calls []Call) bool {
		return slices.ContainsFunc(calls, func(c Call) bool { return c.Op == model.Restock })
	})
}

var workloads = []Workload{
	{
		Name:    "unit",
		Summary: "every buyer wants one unit",
		// One unit and three buyers: a winner, a loser, and somebody who
		// arrives after the fault has hit either of them.
		Stock:   1,
		Clients: [][]Call{{{model.Deduct, 1}}, {{model.Deduct, 1}}, {{model.Deduct, 1}}},
	},
	{
		Name:    "mixed",
		Summary: "buyers want one or two units",
		// The middle buyer asks for two of the last one: whoever hides that
		// unit meanwhile answers the third buyer wrongly.
		Stock:   2,
		Clients: [][]Call{{{model.Deduct, 1}}, {{model.Deduct, 2}}, {{model.Deduct, 1}}},
	},
	{
		Name:    "restock",
		Summary: "a cancel puts a unit back during the sale",
		// The third client puts one unit back and buys one itself, so its own
		// order tells that the unit must be there.
		Stock:   1,
		Clients: [][]Call{{{model.Deduct, 1}}, {{model.Deduct, 1}}, {{model.Restock, 1}, {model.Deduct, 1}}},
	},
}

// Workloads lists the workloads.
func Workloads() []Workload { return append([]Workload(nil), workloads...) }

// UnknownWorkloadError names a workload that does not exist and those that do.
type UnknownWorkloadError struct{ Name string }

func (e *UnknownWorkloadError) Error() string {
	var names []string
	for _, w := range workloads {
		names = append(names, w.Name)
	}
	return fmt.Sprintf("unknown workload %q; there are %s", e.Name, strings.Join(names, ", "))
}

// WorkloadByName finds a workload; the error is an *UnknownWorkloadError.
func WorkloadByName(name string) (Workload, error) {
	for _, w := range workloads {
		if w.Name == name {
			return w, nil
		}
	}
	return Workload{}, &UnknownWorkloadError{Name: name}
}

// ClientName is the name of the i-th client in schedules: a, b, … z, a1, b1, …
func ClientName(i int) string {
	name := string(rune('a' + i%26))
	if i >= 26 {
		name += fmt.Sprint(i / 26)
	}
	return name
}

// RequestID is the request id of the op-th operation of a client: a.1, b.1, …
func RequestID(client, op int) string { return fmt.Sprintf("%s.%d", ClientName(client), op+1) }

// SplitRequestID takes a RequestID apart: whose request it is, and which of
// theirs. An id that is none is all name.
func SplitRequestID(id string) (client, op string) {
	if i := strings.LastIndexByte(id, '.'); i >= 0 {
		return id[:i], id[i+1:]
	}
	return id, ""
}

// Retries lists the retry settings of go-redis a scheme is judged with: "off", and
// "default", three more attempts.
func Retries() []string { return []string{"off", "default"} }

// RetriesFor lists the retry settings with which a kind of fault is judged in the
// matrix. Where a fault breaks no connection to Redis go-redis repeats nothing and
// both settings are one. Where it does, or a primary refuses a write, what the
// repeats add is in the rows of reply-lost and request-delayed; a search of each of
// the commands that a server that stands still would buffer takes too long for a
// matrix, and can be asked for by itself.
func RetriesFor(kind Kind) []string {
	switch kind {
	case RedisRestart, RedisFailover, RedisFreeze, KeyEvicted, KeyExpired, PostgresRestart, StockReloaded, ReconcileOverlap:
		return []string{"off"}
	}
	return Retries()
}

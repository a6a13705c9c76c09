package explore

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/schemes"
)

func BenchmarkLock4Clients2Faults(b *testing.B) {
	entry, err := schemes.ByName("lock")
	require.NoError(b, err)
	w, _ := faults.WorkloadByName("unit")
	b.ReportAllocs()
	for b.Loop() {
		r, err := Run(context.Background(), Config{Entry: entry, Workload: w, Clients: 4, MaxFaults: 2,
			Faults: []faults.Kind{faults.ClientCrash, faults.RequestLost, faults.ReplyLost, faults.ScriptFlush}})
		require.NoError(b, err)
		b.ReportMetric(float64(r.States)/r.Elapsed.Seconds(), "states/s")
		b.Logf("%s: %d states, %d transitions, %v executions, %d MB, %v, %d runs, %d q, locals %s", letters(r), r.States, r.Transitions, r.Executions, r.Bytes>>20, r.Elapsed, r.Extractions, r.StoreQuestions, r.Why)
	}
}

func BenchmarkExtraction(b *testing.B) {
	entry, err := schemes.ByName("lock")
	require.NoError(b, err)
	var runs atomic.Int64
	park := newParking(0) // every question runs the code from its beginning
	defer park.close()
	a, err := newAutomaton(entry, role{deduct, 1, self, self + ".1", 0}, DefaultTimes, -1, &runs, park)
	require.NoError(b, err)
	n, err := a.step(a.root, event{kind: replied, text: ":300\r\n"})
	require.NoError(b, err)
	b.ReportAllocs()
	for b.Loop() {
		m := &node{parent: n, event: event{kind: replied, text: ":300\r\n"}, next: map[event]*node{}}
		if err := a.extract(m); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkMatrix searches every scheme, fault, workload and retry setting: 3
// clients, at most one fault.
func BenchmarkMatrix(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		lab := NewLab()
		var cells []Config
		for _, e := range schemes.All() {
			for _, retries := range []string{"off", "default"} {
				for _, wl := range []string{"unit", "mixed", "restock"} {
					for _, kind := range append([]faults.Kind{faults.None}, every...) {
						cells = append(cells, one(b, e.Scheme.Name(), kind, wl, retries))
					}
				}
			}
		}
		var states atomic.Uint64
		var next atomic.Int64
		var group sync.WaitGroup
		for range runtime.GOMAXPROCS(0) {
			group.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= len(cells) {
						return
					}
					r, err := lab.Run(context.Background(), cells[i])
					if err != nil {
						b.Error(err)
						return
					}
					states.Add(r.States)
				}
			})
		}
		group.Wait()
		b.ReportMetric(float64(len(cells)), "cells")
		b.ReportMetric(float64(states.Load()), "states")
		b.ReportMetric(float64(lab.runs.Load()), "extractions")
		lab.Close()
	}
}

// BenchmarkSearch is the search alone: the code and the stores were asked
// everything before.
func BenchmarkSearch(b *testing.B) {
	lab := NewLab()
	defer lab.Close()
	cfg := Config{Entry: entry(b, "lock"), Workload: workload(b, "unit"), Clients: 4, MaxFaults: 2,
		Faults: []faults.Kind{faults.ClientCrash, faults.RequestLost, faults.ReplyLost, faults.ScriptFlush}}
	_, err := lab.Run(context.Background(), cfg)
	require.NoError(b, err)
	b.ReportAllocs()
	var states uint64
	var spent time.Duration
	for b.Loop() {
		r, err := lab.Run(context.Background(), cfg)
		require.NoError(b, err)
		states += r.States
		spent += r.Elapsed
	}
	b.ReportMetric(float64(states)/spent.Seconds(), "states/s")
}

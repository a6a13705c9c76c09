package explore

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func BenchmarkLock4Clients2Faults(b *testing.B) {
	debug.SetGCPercent(400) // as the commands do
	entry, err := schemes.ByName("lock")
	require.NoError(b, err)
	w, _ := faults.WorkloadByName("unit")
	b.ReportAllocs()
	used, searches := cpuTime(b), 0
	for b.Loop() {
		searches++
		r, err := Run(context.Background(), Config{Entry: entry, Workload: w, Clients: 4, MaxFaults: 2,
			Faults: []faults.Kind{faults.ClientCrash, faults.RequestLost, faults.ReplyLost, faults.ScriptFlush}})
		require.NoError(b, err)
		b.ReportMetric(float64(r.States)/r.Elapsed.Seconds(), "states/s")
		b.Logf("%s: %d states, %d transitions, %v executions, %d MB, %v, %d runs, %d q, locals %s", letters(r), r.States, r.Transitions, r.Executions, r.Bytes>>20, r.Elapsed, r.Extractions, r.StoreQuestions, r.Why)
	}
	b.ReportMetric(float64((cpuTime(b)-used).Milliseconds())/float64(searches), "cpu-ms/op")
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
	debug.SetGCPercent(400) // as the commands do
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

// BenchmarkFirstWitness searches, from nothing each time and smallest first,
// for a witness of every violation that is declared to show in explore: scheme,
// fault, retries and property, in any workload, one or two units on sale.
func BenchmarkFirstWitness(b *testing.B) {
	debug.SetGCPercent(400) // as the commands do
	type violation struct {
		scheme, name string
		property     model.Property
	}
	var order []violation
	where := map[violation][]Config{}
	small(b, func(_ string, cfg Config) {
		must, _ := cfg.Entry.Guarantees.Declared(string(cfg.Faults[0]), cfg.Workload.Name, cfg.Retries, "explore")
		for _, p := range model.Properties() {
			if must[p.ID] {
				v := violation{cfg.Entry.Scheme.Name(), fmt.Sprintf("%s/%s/%s", cfg.Entry.Scheme.Name(), cfg.Faults[0], cfg.Retries), p.ID}
				if where[v] == nil {
					order = append(order, v)
				}
				where[v] = append(where[v], cfg)
			}
		}
	})
	type sought struct {
		took, cpu time.Duration
		what      string
		notes     bool // a scheme of the notes, or one of their controls
	}
	notes := map[string]bool{}
	for _, e := range schemes.OfTheNotes() {
		notes[e.Scheme.Name()] = true
	}
	var spent []sought
	for b.Loop() {
		spent = spent[:0]
		for _, v := range order {
			began, used := time.Now(), cpuTime(b)
			lab := NewLab()
			first, _, err := lab.FirstWitness(context.Background(), v.property, where[v]...)
			took, cpu := time.Since(began), cpuTime(b)-used
			require.NoError(b, err)
			require.NotNil(b, first, "%s", v)
			require.NoError(b, lab.Close())
			spent = append(spent, sought{took, cpu, fmt.Sprintf("%s %s: %d states, %d questions", v.name, v.property, first.States, lab.runs.Load()), notes[v.scheme]})
		}
	}
	slices.SortFunc(spent, func(x, y sought) int { return cmp.Compare(x.cpu, y.cpu) })
	late, lateCPU, lateNotes, ofNotes := 0, 0, 0, 0
	var times []time.Duration
	for _, s := range spent {
		if s.notes {
			ofNotes++
			if s.took > 50*time.Millisecond {
				lateNotes++
			}
		}
		times = append(times, s.took)
		if s.took > 50*time.Millisecond {
			late++
		}
		if s.cpu > 50*time.Millisecond {
			lateCPU++
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(len(spent)), "violations")
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(times[len(times)-1].Microseconds())/1000, "max-ms")
	b.ReportMetric(float64(late), "above-50ms")
	b.ReportMetric(float64(ofNotes), "violations-of-notes")
	b.ReportMetric(float64(lateNotes), "above-50ms-of-notes")
	b.ReportMetric(float64(spent[len(spent)/2].cpu.Microseconds())/1000, "median-cpu-ms")
	b.ReportMetric(float64(lateCPU), "above-50cpu-ms")
	for _, s := range spent[max(0, len(spent)-9):] {
		b.Logf("%v, %v of processor time: %s", s.took.Round(time.Millisecond/10), s.cpu.Round(time.Millisecond/10), s.what)
	}
}

// cpuTime is the processor time this process has used, its system calls
// included. Other processes on the same cores do not lengthen it much.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	require.NoError(tb, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkSearch is the search alone: the code and the stores were asked
// everything before.
func BenchmarkSearch(b *testing.B) {
	debug.SetGCPercent(400) // as the commands do
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

package model

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// BenchmarkChecker decides simulated sales, all of them linearizable, with the
// exact checker and, where it can, with porcupine.
func BenchmarkChecker(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000, 1_000_000, 10_000_000} {
		for _, c := range []struct {
			name string
			sale sale
			upTo int
		}{
			{"deducts/clients=4", sale{clients: 4, maxQty: 1}, 1_000_000},
			{"deducts/clients=64", sale{clients: 64, maxQty: 1}, 1_000_000},
			{"deducts/clients=256/unknown=5%", sale{clients: 256, maxQty: 1, unknown: 0.05}, 10_000_000},
			{"deducts-1-to-5/clients=64/unknown=5%", sale{clients: 64, maxQty: 5, unknown: 0.05}, 1_000_000},
			{"restocks-reads/clients=4", sale{clients: 4, maxQty: 1, restocks: 0.3, reads: 0.1}, 1_000_000},
			{"restocks-reads/clients=64", sale{clients: 64, maxQty: 1, restocks: 0.3, reads: 0.1}, 10_000_000},
			{"restocks-reads/clients=64/unknown=1%", sale{clients: 64, maxQty: 1, restocks: 0.3, reads: 0.1, unknown: 0.01}, 1_000_000},
			{"restocks-reads-1-to-5/clients=64", sale{clients: 64, maxQty: 5, restocks: 0.3, reads: 0.1}, 1_000_000},
			{"restocks-reads-1-to-5/clients=64/unknown=1%", sale{clients: 64, maxQty: 5, restocks: 0.3, reads: 0.1, unknown: 0.01}, 100_000},
		} {
			if n > c.upTo {
				continue
			}
			s := c.sale
			s.ops, s.initial, s.idle = n, int64(n)/4+10, 200
			if s.restocks > 0 {
				s.initial = 20
			}
			b.Run(fmt.Sprintf("%s/n=%d", c.name, n), func(b *testing.B) {
				ops := s.history(1)
				measure(b, func() {
					j := Judge(s.initial, ops, Limits{})
					if j.Ruling != Legal {
						b.Fatalf("%+v", j)
					}
				}, n)
			})
			if n <= 1000 {
				b.Run(fmt.Sprintf("%s/n=%d/porcupine", c.name, n), func(b *testing.B) { askInTime(b, s.initial, s.history(1)) })
			}
		}
	}
}

// BenchmarkSeeds decides sales of several units with reads: how often the
// checker has to go back differs from one to the next.
func BenchmarkSeeds(b *testing.B) {
	for seed := uint64(1); seed <= 6; seed++ {
		s := sale{clients: 64, maxQty: 5, restocks: 0.3, reads: 0.1, ops: 100_000, initial: 20, idle: 200}
		b.Run(fmt.Sprintf("seed=%d", seed), func(b *testing.B) {
			ops := s.history(seed)
			measure(b, func() {
				if j := Judge(s.initial, ops, Limits{}); j.Ruling != Legal {
					b.Fatalf("%+v", j)
				}
			}, s.ops)
		})
	}
}

// BenchmarkIllegal refutes histories whose last unit was sold twice, with a
// quarter of the operations open: where porcupine explodes.
func BenchmarkIllegal(b *testing.B) {
	for _, open := range []int{4, 8, 48} {
		ops := illegal(200, open)
		b.Run(fmt.Sprintf("open=%d", open), func(b *testing.B) {
			measure(b, func() {
				if j := Judge(100, ops, Limits{}); j.Ruling != Illegal {
					b.Fatalf("%+v", j)
				}
			}, len(ops))
		})
		b.Run(fmt.Sprintf("open=%d/porcupine", open), func(b *testing.B) { askInTime(b, 100, ops) })
	}
}

// illegal is n deducts of 100 units by 16 clients, so many of them open, and one
// unit too many sold.
func illegal(n, open int) []Operation {
	ops := make([]Operation, 0, n)
	for i := range n {
		o := Operation{Client: i % 16, Op: Deduct, Qty: 1, Call: int64(i) * 10, Return: int64(i)*10 + 150, Outcome: SoldOut}
		switch {
		case i < 101:
			o.Outcome = Sold
		case i-101 < open:
			o.Outcome, o.Open, o.Return = Unknown, true, 0
		}
		ops = append(ops, o)
	}
	return ops
}

func measure(b *testing.B, decide func(), n int) {
	b.ReportAllocs()
	for b.Loop() {
		decide()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/operation")
	runtime.GC()
}

func askInTime(b *testing.B, initial int64, ops []Operation) {
	m, p := PorcupineModel(initial, ops)
	for b.Loop() {
		if porcupine.CheckOperationsTimeout(m, p, 5*time.Second) == porcupine.Unknown {
			b.ReportMetric(1, "undecided")
		}
	}
}

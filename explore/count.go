package explore

import (
	"fmt"
	"math/big"
	"math/bits"
)

// wide is an unsigned 128-bit number; searches count more executions than 64
// bits hold.
type wide struct{ hi, lo uint64 }

// plus adds m times b; ok is false when the sum does not fit.
func (a wide) plus(b wide, m uint8) (wide, bool) {
	carryHi, lo := bits.Mul64(b.lo, uint64(m))
	over, hi := bits.Mul64(b.hi, uint64(m))
	hi, c1 := bits.Add64(hi, carryHi, 0)
	lo, c := bits.Add64(a.lo, lo, 0)
	hi, c2 := bits.Add64(a.hi, hi, c)
	return wide{hi, lo}, over == 0 && c1 == 0 && c2 == 0
}

func (a wide) big() *big.Int {
	n := new(big.Int).SetUint64(a.hi)
	n.Lsh(n, 64)
	return n.Add(n, new(big.Int).SetUint64(a.lo))
}

// executions counts the paths from the first state to every state at rest,
// clients told apart, by going through the states in an order in which each
// comes after all that lead to it. Executions that never end would be cycles;
// they are an error.
func (s *searcher) executions() (*big.Int, error) {
	n := s.seen.n
	type count struct {
		paths wide
		waits uint32 // edges to it that are not followed yet
	}
	counts := make([]count, n)
	for at := uint64(0); at < s.edges.n; at += 1 << pieceBits {
		piece := s.edges.pieces[at>>pieceBits]
		for _, e := range piece[:min(s.edges.n-at, 1<<pieceBits)] {
			counts[e.to].waits++
		}
	}
	queue := make([]uint32, 0, n)
	if counts[0].waits == 0 {
		queue = append(queue, 0)
	}
	counts[0].paths = wide{0, 1}
	ok := true
	for done := 0; done < len(queue); done++ {
		i := uint64(queue[done])
		here := counts[i].paths
		for k, end := s.starts.at(i), s.starts.at(i+1); k < end; k++ {
			e := s.edges.at(k)
			to := &counts[e.to]
			var fits bool
			to.paths, fits = to.paths.plus(here, e.mult)
			ok = ok && fits
			if to.waits--; to.waits == 0 {
				queue = append(queue, e.to)
			}
		}
	}
	if uint32(len(queue)) < n {
		return nil, fmt.Errorf("%d states lie on executions that never end", n-uint32(len(queue)))
	}
	if !ok {
		return nil, fmt.Errorf("more than 2^128 executions")
	}
	total := new(big.Int)
	for _, i := range s.ends {
		total.Add(total, counts[i].paths.big())
	}
	return total, nil
}

func (s *searcher) result(why string, runs int64) *Result {
	r := &Result{States: uint64(s.seen.n), Transitions: s.edges.n, Symmetry: s.symmetry, Extractions: runs, Bytes: s.bytes()}
	if why == "" {
		var err error
		if r.Executions, err = s.executions(); err != nil {
			why = err.Error()
		}
	}
	if why == "" && s.stalls > 0 {
		why = fmt.Sprintf("in %d states somebody waits for ever", s.stalls)
	}
	r.PlacementsEnumerated, r.PlacementsFired = s.countPlaces()
	r.Exhaustive, r.Why = why == "", why
	s.world.mu.Lock()
	r.StoreQuestions = len(s.world.asked)
	s.world.mu.Unlock()
	r.Verdicts = s.judge.verdicts(why, s.witness)
	return r
}

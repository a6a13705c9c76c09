package model

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/anishathalye/porcupine"
	"github.com/stretchr/testify/require"
)

// class is a kind of random history for the comparison of the checkers.
type class struct {
	name                     string
	maxQty                   int64
	restocks, reads, unknown int  // of 10, 10 and 10 operations
	rest                     bool // ends with the read at rest
}

var classes = []class{
	{"deducts of one unit", 1, 0, 0, 0, false},
	{"deducts of one unit with unknowns", 1, 0, 0, 3, false},
	{"deducts of up to four units", 4, 0, 0, 0, false},
	{"deducts of up to four units with unknowns", 4, 0, 0, 3, false},
	{"one unit with restocks", 1, 3, 0, 0, false},
	{"one unit with restocks and reads", 1, 3, 3, 0, false},
	{"one unit with restocks, reads and unknowns", 1, 3, 3, 3, false},
	{"up to three units with restocks and reads", 3, 3, 3, 0, false},
	{"up to three units with restocks, reads and unknowns", 3, 3, 3, 3, false},
	{"up to five units with reads and unknowns", 5, 0, 4, 4, false},
	{"deducts of one unit, read at rest", 1, 0, 0, 0, true},
	{"deducts of up to four units with unknowns, read at rest", 4, 0, 0, 3, true},
	{"up to three units with restocks and unknowns, read at rest", 3, 3, 0, 3, true},
}

// history makes one of 3 … 9 operations. Half of them are made up; the other
// half come from a real stock, of which one answer in two is then falsified, so
// that both verdicts are common and close to each other.
func (c class) history(r *rand.Rand) (int64, []Operation) {
	initial := r.Int64N(2 + 2*c.maxQty)
	clients := 2 + r.IntN(4)
	real := r.IntN(2) == 0
	clock := make([]int64, clients)
	var ops []Operation
	for range 3 + r.IntN(7) {
		k := r.IntN(clients)
		o := Operation{Client: k, Op: Deduct, Outcome: Sold, Qty: 1 + r.Int64N(c.maxQty)}
		o.Call = clock[k] + r.Int64N(5)
		o.Return = o.Call + r.Int64N(8)
		clock[k] = o.Return
		switch {
		case r.IntN(10) < c.restocks:
			o.Op, o.Outcome = Restock, OK
		case r.IntN(10) < c.reads:
			o.Op, o.Outcome, o.Qty, o.Value = Read, Value, 0, r.Int64N(2+2*c.maxQty)
		case r.IntN(3) == 0:
			o.Outcome = SoldOut
		}
		switch {
		case r.IntN(10) < c.unknown:
			o.Outcome, o.Open, o.Return, o.Value = Unknown, true, 0, 0
		case o.Op == Deduct && r.IntN(12) == 0:
			o.Outcome = []Outcome{Busy, Failed}[r.IntN(2)]
		}
		ops = append(ops, o)
	}
	left := r.Int64N(3+c.maxQty) - 1
	if real {
		left = answerTruly(r, initial, ops)
	}
	if c.rest {
		ops = AtRest(ops, &left)
	}
	if real && r.IntN(2) == 0 {
		falsify(r, ops)
	}
	return initial, ops
}

// answerTruly replaces the answers by those of a real stock, and says what is
// left of it.
func answerTruly(r *rand.Rand, initial int64, ops []Operation) int64 {
	at := make([]int64, len(ops))
	for i, o := range ops {
		at[i] = o.Call
		if o.Open {
			at[i] += r.Int64N(12)
		} else if o.Return > o.Call {
			at[i] += r.Int64N(o.Return - o.Call + 1)
		}
	}
	stock := initial
	for t := int64(0); t < 200; t++ {
		for i := range ops {
			o := &ops[i]
			if at[i] != t || o.Outcome == Busy || o.Outcome == Failed {
				continue
			}
			switch {
			case o.Open && (o.Op == Read || r.IntN(2) == 0):
			case o.Op == Restock:
				stock += o.Qty
			case o.Op == Read:
				o.Value = stock
			case stock >= o.Qty:
				stock -= o.Qty
				if !o.Open {
					o.Outcome = Sold
				}
			case !o.Open:
				o.Outcome = SoldOut
			}
		}
	}
	return stock
}

// falsify changes one answer.
func falsify(r *rand.Rand, ops []Operation) {
	o := &ops[r.IntN(len(ops))]
	switch o.Outcome {
	case Sold:
		o.Outcome = SoldOut
	case SoldOut:
		o.Outcome = Sold
	case Value:
		o.Value += 1 - 2*r.Int64N(2)
	}
}

// agree compares the exact checker with porcupine and brute force on one
// history, and its reasons with the history.
func agree(initial int64, ops []Operation, judge func(int64, []Operation, Limits) Judgement) error {
	want := bruteForce(initial, ops)
	got := judge(initial, ops, Limits{Order: true})
	switch asked := askPorcupine(initial, ops); {
	case (asked == porcupine.Ok) != want || asked == porcupine.Unknown:
		return fmt.Errorf("porcupine says %v, brute force %v", asked, want)
	case got.Ruling == Undecided || (got.Ruling == Legal) != want:
		return fmt.Errorf("the checker says %s by %s, brute force %v", got.Ruling, got.Method, want)
	}
	if want {
		return Confirm(initial, ops, got.Order)
	}
	return refutes(initial, ops, *got.Refutation)
}

// refutes says whether the prefix until the return of the operation is
// impossible.
func refutes(initial int64, ops []Operation, r Refutation) error {
	if x := ops[r.Op]; bruteForce(initial, Prefix(ops, x.Return)) {
		return fmt.Errorf("the history until the return of %s is possible", x)
	}
	return nil
}

// compare judges n random histories from a seed and answers how many there were
// of either verdict, by class.
func compare(seed uint64, n int, judge func(int64, []Operation, Limits) Judgement) (legal, illegal map[string]int, err error) {
	legal, illegal = map[string]int{}, map[string]int{}
	r := rand.New(rand.NewPCG(seed, 3))
	for i := range n {
		c := classes[i%len(classes)]
		initial, ops := c.history(r)
		if err := agree(initial, ops, judge); err != nil {
			return legal, illegal, fmt.Errorf("seed %d, history %d, %s, %d units: %w\n%s", seed, i, c.name, initial, err, lines(ops))
		}
		if bruteForce(initial, ops) {
			legal[c.name]++
		} else {
			illegal[c.name]++
		}
	}
	return legal, illegal, nil
}

func lines(ops []Operation) (text string) {
	for i, o := range ops {
		text += fmt.Sprintf("%2d  %3d … %3d  %s\n", i, o.Call, o.Return, o)
	}
	return text
}

// EnvHistories is how many random histories the checkers are compared on.
const EnvHistories = "STOCKPROOF_HISTORIES"

// keptSeeds are seeds on which a version of the checker was once wrong.
var keptSeeds = []uint64{20261201}

func TestTheExactCheckerAgreesWithPorcupineAndBruteForce(t *testing.T) {
	n := 30_000
	if text := os.Getenv(EnvHistories); text != "" {
		var err error
		n, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	legal, illegal := map[string]int{}, map[string]int{}
	var mu sync.Mutex
	var jobs sync.WaitGroup
	const batch = 10_000
	slots := make(chan struct{}, 2)
	for k := 0; k < n; k += batch {
		seed := keptSeeds[0] + uint64(k/batch)
		slots <- struct{}{}
		jobs.Go(func() {
			l, i, err := compare(seed, min(batch, n-k), Judge)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				t.Error(err)
			}
			for _, c := range classes {
				legal[c.name] += l[c.name]
				illegal[c.name] += i[c.name]
			}
			<-slots
		})
	}
	jobs.Wait()
	for _, c := range classes {
		t.Logf("%-55s %8d linearizable %8d not", c.name, legal[c.name], illegal[c.name])
		require.Greater(t, legal[c.name], n/len(classes)/5, "both verdicts must be common: %s", c.name)
		require.Greater(t, illegal[c.name], n/len(classes)/5, "both verdicts must be common: %s", c.name)
	}
}

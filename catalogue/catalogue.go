// Package catalogue holds real failures of flash sales against real servers: what
// was reported, with its numbers, and what is seen here. The scenarios are its
// tests; docs/track-record.md is what they came to.
package catalogue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"stockproof/model"
)

// Numbers are what an entry says and what was seen, by name. Those that laws are
// derived from:
//
//	S        units put on sale
//	back     units put back on sale
//	R        requests, of one unit each where nothing else is said
//	yes      requests answered sold
//	refused  requests answered sold out, rightly or not
//	errors   requests that got neither
//	orders   durable orders; absent where the scheme writes none
//	mine     purchases of one buyer who may have one
//	lowest   the lowest that the counter was seen at
//	final    the counter at rest
type Numbers map[string]int64

// String writes them in the order of the table above, further ones behind.
func (n Numbers) String() string {
	order := []string{"S", "back", "R", "yes", "refused", "errors", "orders", "mine", "lowest", "final"}
	var words []string
	for _, name := range order {
		if v, has := n[name]; has {
			words = append(words, fmt.Sprintf("%s=%d", name, v))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n)) {
		if !slices.Contains(order, name) {
			words = append(words, fmt.Sprintf("%s=%d", name, n[name]))
		}
	}
	return strings.Join(words, " ")
}

// Laws are those that the numbers break. An order is a promise as much as an answer
// is: what was sold is the larger of the two.
func (n Numbers) Laws() (broken []model.Property) {
	sold := max(n["yes"], n["orders"])
	all := n["S"] + n["back"]
	final, counted := n["final"]
	orders, writes := n["orders"]
	add := func(is bool, p model.Property) {
		if is {
			broken = append(broken, p)
		}
	}
	add(sold > all, model.Oversell)
	add(n["lowest"] < 0, model.NegativeTransient)
	add(final < 0, model.NegativePermanent)
	add(counted && sold+final < all, model.LostUnits)
	add(counted && final > 0 && sold+final > all, model.PhantomUnits)
	add(n["mine"] > 1, model.DoubleSale)
	add(writes && orders != n["yes"], model.OrderMismatch)
	add(n["refused"] > 0 && sold < all, model.FalseSoldOut)
	add(n["R"] > 0 && n["errors"] == n["R"], model.Stuck)
	return broken
}

// Entry is one failure.
type Entry struct {
	ID, Title string
	Scheme    string // or variant
	Fault     string // what has to happen
	Breaks    []model.Property
	Expected  Numbers // as reported, unless Reported says otherwise
	// Reported are the numbers of the report where what is run cannot come to them;
	// Otherwise says why. Expected then are those that are seen instead.
	Reported Numbers
	// Built says that the order of steps leaves one outcome only, so that the numbers
	// show what can be and measure nothing.
	Built bool
	// Says is what is reported to go wrong and is no property of ours.
	Says string
	// Schedules are those of testdata/schedules that show it with the code of a
	// scheme, in explore and, where they can be replayed there, live.
	Schedules []string
	// Otherwise says where what is seen, or done, differs from what is reported, and why.
	Otherwise string
	// NotShown says why nothing is run.
	NotShown string
}

// Convict compares what was seen with an entry: nil when it is as reported.
func (e Entry) Convict(seen Numbers) []string {
	var wrong []string
	for _, name := range slices.Sorted(maps.Keys(e.Expected)) {
		got, has := seen[name]
		switch {
		case !has:
			wrong = append(wrong, fmt.Sprintf("%s: expected %d, and it was not seen", name, e.Expected[name]))
		case got != e.Expected[name]:
			wrong = append(wrong, fmt.Sprintf("%s: expected %d, saw %d", name, e.Expected[name], got))
		}
	}
	broken := seen.Laws()
	for _, p := range e.Breaks {
		if !slices.Contains(broken, p) {
			wrong = append(wrong, fmt.Sprintf("%s is not broken by %s", p, seen))
		}
	}
	return wrong
}

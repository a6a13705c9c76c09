// Package model is the sequential stock a sale is supposed to be: what a
// buyer may be answered, what has to hold of the answers, and the checkers
// that decide it. It imports no other package of this module.
package model

import "fmt"

// Outcome is what an operation was answered. The text is the one of the
// history file.
type Outcome string

// The outcomes of an operation.
const (
	// Sold: the buyer was told the units are theirs.
	Sold Outcome = "sold"
	// SoldOut: the buyer was told there are too few units left.
	SoldOut Outcome = "sold_out"
	// Busy: the operation gave up waiting; it certainly deducted nothing.
	Busy Outcome = "busy"
	// Failed: an error, and the operation certainly was not applied.
	Failed Outcome = "failed"
	// OK: a restock was applied.
	OK Outcome = "ok"
	// Value: a read was answered with a number of units.
	Value Outcome = "value"
	// Unknown: the operation may or may not have been applied, at any time
	// after its call, also later than the moment the client gave up.
	Unknown Outcome = "unknown"
)

// String is the word reports use: "sold-out" where the file says sold_out.
func (o Outcome) String() string {
	if o == SoldOut {
		return "sold-out"
	}
	return string(o)
}

// Op is the kind of an operation.
type Op string

// The kinds of operation a client runs.
const (
	Deduct  Op = "deduct"
	Restock Op = "restock"
	Read    Op = "read"
	// Work is one round of a scheme's background role, which a client of its own
	// runs. It asks for no units and is part of no history.
	Work Op = "work"
)

// Operation is one line of a history: what one client asked and what it was
// told. Times are nanoseconds of one monotonic clock; equal times count as
// concurrent.
type Operation struct {
	Client  int
	Op      Op
	Qty     int64 // units, at least 1; 0 for a read
	Call    int64 // nanoseconds
	Return  int64 // nanoseconds; meaningless while Open
	Open    bool  // no return was seen: only with Unknown
	Outcome Outcome
	Value   int64  // units a read answered
	Request string // id of the request, empty when the log has none
}

func (o Operation) String() string {
	what := string(o.Op)
	if o.Op != Read {
		what = fmt.Sprintf("%s(%d)", o.Op, o.Qty)
	}
	answer := o.Outcome.String()
	if o.Outcome == Value {
		answer = fmt.Sprintf("%d", o.Value)
	}
	return fmt.Sprintf("client %d %s = %s", o.Client, what, answer)
}

// Package foreign turns the logs of others into history files of ours, while they
// are read: Jepsen's EDN and CSV.
package foreign

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"stockproof/model"
)

// Format is what a log is written in.
type Format string

// Formats.
const (
	EDN Format = "edn" // Jepsen's history.edn: one operation map a line
	CSV Format = "csv" // one operation a row, with a row of column names
)

// Options say what a log does not say itself.
type Options struct {
	SKU     string // keep only this article, where the log tells them apart
	Initial int64  // units on sale when the log begins
	// Columns is the column of a CSV for each field of ours; a field is looked for
	// under its own name otherwise. See Fields.
	Columns map[string]string
	// Ops turns the log's words for an operation into ours.
	Ops map[string]model.Op
	// Outcomes turns the log's words for an outcome into ours.
	Outcomes map[string]model.Outcome
	Unit     string // of times in a CSV: ns, us, ms or s; empty: ns
}

// op is the operation that a word stands for.
func (o Options) op(word string) model.Op {
	if ours, known := o.Ops[word]; known {
		return ours
	}
	return model.Op(word)
}

// Fields lists the fields of an operation that a CSV may have columns for.
func Fields() []string {
	return []string{"client", "op", "qty", "call", "return", "outcome", "value", "request", "sku"}
}

// LineError says which line of a log is bad, and why.
type LineError struct {
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

// operation is one operation of a log.
type operation struct {
	Client  int           `json:"client"`
	Op      model.Op      `json:"op"`
	Qty     int64         `json:"qty"`
	Call    int64         `json:"call"`
	Return  *int64        `json:"return"`
	Outcome model.Outcome `json:"outcome"`
	Value   *int64        `json:"value,omitempty"`
	Request string        `json:"request,omitempty"`

	line int
}

// remembered is how many lines back a position is still known. Who reads ours
// buffers 64 KiB, and a line of it has more than 60 bytes.
const remembered = 1 << 12

// errEmpty is a log without an operation: nothing was judged, so it must not pass.
var errEmpty = errors.New("no operation is in the log")

// Translator reads as a history file of ours. Its memory does not grow with the
// length of the log, but for what is called and has not returned.
type Translator struct {
	next func() (operation, error) // io.EOF behind the last
	text []byte
	err  error
	sku  string

	lines [remembered]int
	n     int // lines written
}

// NewTranslator reads a log. An error of Read that is about a line is a *LineError.
func NewTranslator(r io.Reader, f Format, o Options) (*Translator, error) {
	t := &Translator{sku: o.SKU}
	header, err := json.Marshal(map[string]any{"sku": o.SKU, "initial": o.Initial})
	if err != nil {
		return nil, err
	}
	t.text = append(header, '\n')
	t.n = 1
	switch f {
	case EDN:
		t.next = newEDN(r, o).next
	case CSV:
		t.next = newCSV(r, o).next
	default:
		return nil, fmt.Errorf("unknown format %q; there are edn and csv", string(f))
	}
	return t, nil
}

// Read gives the lines of ours.
func (t *Translator) Read(p []byte) (int, error) {
	for len(t.text) == 0 {
		if t.err != nil {
			return 0, t.err
		}
		var o operation
		if o, t.err = t.next(); t.err != nil {
			if t.err == io.EOF && t.n == 1 {
				if t.err = errEmpty; t.sku != "" {
					t.err = fmt.Errorf("%w for article %q", errEmpty, t.sku)
				}
				t.err = &LineError{1, t.err}
			}
			continue
		}
		t.n++
		t.lines[t.n%remembered] = o.line
		if t.text, t.err = json.Marshal(o); t.err == nil {
			t.text = append(t.text, '\n')
		}
	}
	n := copy(p, t.text)
	t.text = t.text[n:]
	return n, nil
}

// Line is the line of the log from which line n of ours, from 1, was made.
func (t *Translator) Line(n int) int {
	if n <= 1 || n > t.n || n <= t.n-remembered {
		return 1
	}
	return t.lines[n%remembered]
}

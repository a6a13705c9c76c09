package histories

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"hash/maphash"
	"io"

	"stockproof/histories/foreign"
	"stockproof/model"
)

// Reader reads histories one operation at a time, from JSON Lines: a header,
// then the operations of that SKU in order of call, then perhaps the header of
// another SKU, and so on. Blank lines are passed over.
//
// A line is rejected, with a *LineError, that cannot be true: a return before
// its call, a call before that of the line above (the clock went backwards), a
// call of a client before its operation before had returned, a request id that
// was there already. Its memory does not grow with the number of operations,
// except for 16 bytes and more for each request id.
type Reader struct {
	// Resubmits allows that a request id comes more than once: the same request
	// was submitted again.
	Resubmits bool

	lines *bufio.Scanner
	name  string
	line  int
	// origin is the line that a line was made from, in the log of others; nil: itself.
	origin func(int) int
	read   int
	held   []byte // a header that was met while reading operations
	done   bool
	any    bool

	skus     map[string]int // line of their header
	clock    int64
	called   bool
	busy     map[int]until
	requests fingerprints
}

// until is when a client's operation returned, and the line that says so.
type until struct {
	at   int64
	line int
}

// NewReader reads from r; name stands for the file in errors.
func NewReader(r io.Reader, name string) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64*1024), maxLine)
	return &Reader{lines: lines, name: name, skus: map[string]int{}}
}

// Line is the number of the line read last, from 1.
func (r *Reader) Line() int { return r.line }

func (r *Reader) bad(err error) error { return &LineError{r.name, r.line, err} }

// next is the next line that is not blank, io.EOF behind the last.
func (r *Reader) next() ([]byte, error) {
	for r.lines.Scan() {
		r.read++
		r.line = r.read
		if r.origin != nil {
			r.line = r.origin(r.read)
		}
		if text := bytes.TrimSpace(r.lines.Bytes()); len(text) > 0 {
			return text, nil
		}
	}
	r.done = true
	if err := r.lines.Err(); err != nil {
		if theirs := new(foreign.LineError); errors.As(err, &theirs) {
			return nil, &LineError{r.name, theirs.Line, theirs.Err}
		}
		r.line++
		return nil, r.bad(err)
	}
	return nil, io.EOF
}

var errNoHeader = errors.New(`missing header {"name":…,"sku":…,"initial":n}`)

// NextHistory is the next history without its operations, io.EOF when there is
// no other. Call it when NextOperation answered io.EOF.
func (r *Reader) NextHistory() (h History, err error) {
	text := r.held
	r.held = nil
	if text == nil {
		if r.done {
			return h, io.EOF
		}
		if text, err = r.next(); err != nil {
			if err == io.EOF && !r.any {
				r.line++
				return h, r.bad(errNoHeader)
			}
			return h, err
		}
	}
	r.any = true
	if err := h.addHeader(text); err != nil {
		var l operationLine
		if strict(text, &l) == nil && l.Op != "" {
			err = fmt.Errorf("%w: the first line is an operation", errNoHeader)
		}
		return h, r.bad(err)
	}
	if line, known := r.skus[h.SKU]; known {
		return h, r.bad(fmt.Errorf("a second header of sku %q, the first is in line %d", h.SKU, line))
	}
	r.skus[h.SKU] = r.line
	r.called, r.busy, r.requests = false, map[int]until{}, fingerprints{}
	return h, nil
}

// NextOperation is the next operation of the history, io.EOF when there is no
// other.
func (r *Reader) NextOperation() (o model.Operation, err error) {
	if r.held != nil {
		return o, io.EOF
	}
	text, err := r.next()
	if err != nil {
		return o, err
	}
	var l operationLine
	if plain, ok := parsePlain(text); ok {
		l = plain
	} else if err := strict(text, &l); err != nil {
		if bytes.Contains(text, []byte(`"initial"`)) {
			r.held = bytes.Clone(text)
			return o, io.EOF
		}
		return o, r.bad(err)
	}
	if o, err = l.operation(); err == nil {
		err = r.possible(o)
	}
	if err != nil {
		return o, r.bad(err)
	}
	return o, nil
}

// possible compares an operation with those before it.
func (r *Reader) possible(o model.Operation) error {
	if r.called && o.Call < r.clock {
		return fmt.Errorf("the clock goes backwards: call %d after call %d in the line above; operations are in order of call", o.Call, r.clock)
	}
	r.clock, r.called = o.Call, true
	if last, known := r.busy[o.Client]; known && o.Call < last.at {
		return fmt.Errorf("operations of client %d overlap: call %d, but that of line %d returned at %d", o.Client, o.Call, last.line, last.at)
	}
	if !o.Open {
		r.busy[o.Client] = until{o.Return, r.line}
	}
	if o.Request != "" && !r.Resubmits && r.requests.seen(string(o.Op), o.Request) {
		return fmt.Errorf("request %q of a %s is there already", o.Request, o.Op)
	}
	return nil
}

// fingerprints is a set of request ids. It keeps 128 bits of each, so that two
// of ten million different ids are taken for one with a chance of 10^-25.
type fingerprints struct {
	seeds [2]maphash.Seed
	table [][2]uint64
	n     int
}

// seen adds an id and says whether it was there.
func (f *fingerprints) seen(op, request string) bool {
	if f.table == nil {
		f.seeds = [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}
		f.table = make([][2]uint64, 1024)
	}
	if 4*f.n >= 3*len(f.table) {
		old := f.table
		f.table, f.n = make([][2]uint64, 2*len(old)), 0
		for _, key := range old {
			if key != [2]uint64{} {
				f.place(key)
			}
		}
	}
	id := op[:2] + request
	return f.place([2]uint64{maphash.String(f.seeds[0], id) | 1, maphash.String(f.seeds[1], id)})
}

func (f *fingerprints) place(key [2]uint64) bool {
	mask := uint64(len(f.table) - 1)
	for i := key[1] & mask; ; i = (i + 1) & mask {
		switch f.table[i] {
		case key:
			return true
		case [2]uint64{}:
			f.table[i] = key
			f.n++
			return false
		}
	}
}

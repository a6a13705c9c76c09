package foreign

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"olympos.io/encoding/edn"

	"stockproof/model"
)

// jepsen reads Jepsen's history: an event for each call and each return.
//
// A deduct that ends :ok is sold, unless its :value says :sold-out or :busy; one
// that ends :fail says in :error why, and is failed for every other reason. :info,
// and no end at all, is unknown. The quantity is the :value of the call, 1 where it
// has none, or the :qty of a map, which may also have a :request.
type jepsen struct {
	lines *bufio.Scanner
	line  int
	o     Options
	ended bool
	// queue holds the operations in order of call from the first that has not
	// ended; only when the first has ended it may go.
	queue []*called
	open  map[int]*called // by process
}

// called is an operation on its way.
type called struct {
	operation
	ended bool
}

// event is one line of Jepsen's.
type event struct {
	Type    edn.Keyword `edn:"type"`
	F       edn.Keyword `edn:"f"`
	Value   any         `edn:"value"`
	Process any         `edn:"process"`
	Time    *int64      `edn:"time"`
	Error   any         `edn:"error"`
	Request any         `edn:"request"`
}

func newEDN(r io.Reader, o Options) *jepsen {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64*1024), 1<<20)
	return &jepsen{lines: lines, o: o, open: map[int]*called{}}
}

func (j *jepsen) next() (operation, error) {
	for {
		if len(j.queue) > 0 && (j.queue[0].ended || j.ended) {
			o := j.queue[0].operation
			j.queue = j.queue[1:]
			return o, nil
		}
		if j.ended {
			return operation{}, io.EOF
		}
		if err := j.read(); err != nil {
			return operation{}, err
		}
	}
}

// read takes one line in.
func (j *jepsen) read() error {
	if !j.lines.Scan() {
		j.ended = true
		if err := j.lines.Err(); err != nil {
			return &LineError{j.line + 1, err}
		}
		return nil
	}
	j.line++
	text := bytes.TrimSpace(j.lines.Bytes())
	if len(text) == 0 || text[0] == ';' || len(text) == 1 && (text[0] == '[' || text[0] == ']') {
		return nil
	}
	if err := j.take(text); err != nil {
		return &LineError{j.line, err}
	}
	return nil
}

// tagged is a record as newer versions of Jepsen write it: #jepsen.history.Op{…}.
var tagged = []byte("#jepsen.history.Op")

func (j *jepsen) take(text []byte) error {
	text = bytes.TrimSpace(bytes.TrimPrefix(text, tagged))
	if len(text) == 0 || text[0] != '{' || text[len(text)-1] != '}' {
		return errors.New("want one operation map {…} a line, as Jepsen's history.edn has")
	}
	var e event
	d := edn.NewDecoder(bytes.NewReader(text))
	if err := d.Decode(&e); err != nil {
		return err
	}
	// Unmarshal would not look at what is behind: an operation would be lost.
	var behind any
	if err := d.Decode(&behind); err != io.EOF {
		return errors.New("something is behind the operation map: want one a line")
	}
	process, is := number(e.Process)
	if !is {
		if _, named := e.Process.(edn.Keyword); named {
			return nil // the nemesis, and who else is no client
		}
		return errors.New(":process is missing, or no number")
	}
	if e.Time == nil {
		return errors.New(":time is missing")
	}
	c := j.open[int(process)]
	if e.Type == "invoke" {
		if c != nil {
			return fmt.Errorf("process %d calls, and what it called in line %d has not returned", process, c.line)
		}
		return j.call(e, int(process))
	}
	if c == nil {
		return fmt.Errorf("process %d has called nothing", process)
	}
	if j.o.op(string(e.F)) != c.Op {
		return fmt.Errorf("process %d called %s in line %d, and this is a %s", process, c.Op, c.line, string(e.F))
	}
	delete(j.open, int(process))
	c.ended = true
	return j.end(c, e)
}

func (j *jepsen) call(e event, process int) error {
	c := &called{operation: operation{Client: process, Op: j.o.op(string(e.F)), Qty: 1, Call: *e.Time, Outcome: model.Unknown, line: j.line}}
	if c.Op == model.Read {
		c.Qty = 0
	}
	request := e.Request
	if c.Op != model.Read && e.Value != nil {
		qty := e.Value
		if m, is := e.Value.(map[any]any); is {
			qty = m[edn.Keyword("qty")]
			if r, has := m[edn.Keyword("request")]; has {
				request = r
			}
		}
		n, is := number(qty)
		if !is {
			return fmt.Errorf(":value %v of a call is no quantity", e.Value)
		}
		c.Qty = n
	}
	if request != nil {
		c.Request = word(request)
	}
	j.open[process] = c
	j.queue = append(j.queue, c)
	return nil
}

func (j *jepsen) end(c *called, e event) error {
	at := *e.Time
	switch e.Type {
	case "info":
		return nil // unknown, and open
	case "ok":
		switch c.Op {
		case model.Read:
			n, is := number(e.Value)
			if !is {
				return fmt.Errorf(":value %v of a read is no number", e.Value)
			}
			c.Outcome, c.Value = model.Value, &n
		case model.Restock:
			c.Outcome = model.OK
		default:
			c.Outcome = model.Sold
			if said, is := j.outcome(e.Value); is {
				c.Outcome = said
			}
		}
	case "fail":
		c.Outcome = model.Failed
		if said, is := j.outcome(e.Error); is {
			c.Outcome = said
		}
		switch c.Outcome {
		case model.Sold, model.OK, model.Value:
			return fmt.Errorf(":fail cannot mean %s", c.Outcome)
		}
	default:
		return fmt.Errorf("unknown :type %q; there are :invoke, :ok, :fail, :info", string(e.Type))
	}
	if c.Return = &at; c.Outcome == model.Unknown {
		c.Return = nil
	}
	return nil
}

// outcome is what a word says, where it is one of an outcome.
func (j *jepsen) outcome(value any) (model.Outcome, bool) {
	switch value.(type) {
	case edn.Keyword, edn.Symbol, string:
		return outcome(word(value), j.o)
	}
	return "", false
}

func word(value any) string {
	switch v := value.(type) {
	case edn.Keyword:
		return string(v)
	case edn.Symbol:
		return string(v)
	case string:
		return v
	}
	return fmt.Sprint(value)
}

func number(value any) (int64, bool) {
	switch v := value.(type) {
	case int64:
		return v, true
	case int:
		return int64(v), true
	}
	return 0, false
}

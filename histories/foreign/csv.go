package foreign

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math/big"
	"slices"
	"strings"
	"time"

	"stockproof/model"
)

// rows reads a CSV whose first row names its columns.
type rows struct {
	r       *csv.Reader
	o       Options
	columns map[string]int // of a field
	clients map[string]int
	first   *int64 // call: times count from there, so that people can read them
}

const byteOrderMark = "\ufeff"

func newCSV(r io.Reader, o Options) *rows {
	b := bufio.NewReader(r)
	// Spreadsheets begin with a byte order mark, which is no part of the first name.
	if mark, err := b.Peek(len(byteOrderMark)); err == nil && string(mark) == byteOrderMark {
		_, _ = b.Discard(len(byteOrderMark)) // it is in the buffer
	}
	c := csv.NewReader(b)
	c.ReuseRecord = true
	return &rows{r: c, o: o, clients: map[string]int{}}
}

func (c *rows) record() ([]string, int, error) {
	record, err := c.r.Read()
	var bad *csv.ParseError
	switch {
	case errors.As(err, &bad):
		return nil, 0, &LineError{bad.StartLine, bad.Err} // where the row begins: an open quote ends only with the file
	case err != nil:
		return nil, 0, err
	}
	line, _ := c.r.FieldPos(0)
	return record, line, nil
}

func (c *rows) next() (operation, error) {
	if c.columns == nil {
		names, line, err := c.record()
		if err == io.EOF {
			return operation{}, &LineError{1, errors.New("the row of column names is missing")}
		}
		if err == nil {
			err = c.name(names, line)
		}
		if err != nil {
			return operation{}, err
		}
	}
	for {
		row, line, err := c.record()
		if err != nil {
			return operation{}, err
		}
		if at, has := c.columns["sku"]; has && c.o.SKU != "" && row[at] != c.o.SKU {
			continue
		}
		o, err := c.operation(row)
		if err != nil {
			return o, &LineError{line, err}
		}
		o.line = line
		if c.first == nil {
			first := o.Call
			c.first = &first
		}
		if o.Call -= *c.first; o.Return != nil {
			*o.Return -= *c.first
		}
		return o, nil
	}
}

// name finds the columns of the fields.
func (c *rows) name(names []string, line int) error {
	c.columns = map[string]int{}
	for _, field := range Fields() {
		want, mapped := c.o.Columns[field]
		if !mapped {
			want = field
		}
		called := func(n string) bool { return strings.EqualFold(strings.TrimSpace(n), want) }
		at := slices.IndexFunc(names, called)
		switch {
		case at >= 0 && slices.ContainsFunc(names[at+1:], called):
			return &LineError{line, fmt.Errorf("two columns are called %q", want)}
		case at >= 0:
			c.columns[field] = at
		case mapped, field == "client", field == "call", field == "return", field == "outcome":
			return &LineError{line, fmt.Errorf("no column %q for %s; there are %s", want, field, strings.Join(names, ", "))}
		}
	}
	if _, has := c.columns["sku"]; has && c.o.SKU == "" {
		return &LineError{line, errors.New("there is a column of articles: say which one with --sku")}
	}
	return nil
}

func (c *rows) operation(row []string) (o operation, err error) {
	field := func(name string) string {
		if at, has := c.columns[name]; has {
			return strings.TrimSpace(row[at])
		}
		return ""
	}
	client := field("client")
	if client == "" {
		return o, errors.New("client is empty")
	}
	n, known := c.clients[client]
	if !known {
		n = len(c.clients)
		c.clients[strings.Clone(client)] = n
	}
	o = operation{Client: n, Op: model.Deduct, Qty: 1, Request: field("request")}
	if op := field("op"); op != "" {
		if o.Op = c.o.op(op); c.o.Ops[op] == "" {
			o.Op = model.Op(strings.ToLower(op))
		}
	}
	if o.Op == model.Read {
		o.Qty = 0
	}
	if qty := field("qty"); qty != "" && o.Op != model.Read {
		if o.Qty, err = whole(qty); err != nil {
			return o, fmt.Errorf("qty: %w", err)
		}
	}
	if o.Call, err = c.moment(field("call")); err != nil {
		return o, fmt.Errorf("call: %w", err)
	}
	said := field("outcome")
	var is bool
	if o.Outcome, is = outcome(said, c.o); !is {
		return o, fmt.Errorf("outcome %q is none of ours: say which with --outcomes", said)
	}
	if back := field("return"); back != "" {
		at, err := c.moment(back)
		if err != nil {
			return o, fmt.Errorf("return: %w", err)
		}
		o.Return = &at
	}
	if value := field("value"); value != "" && o.Outcome == model.Value {
		v, err := whole(value)
		if err != nil {
			return o, fmt.Errorf("value: %w", err)
		}
		o.Value = &v
	}
	return o, nil
}

func whole(text string) (int64, error) {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok || !n.IsInt64() {
		return 0, fmt.Errorf("%q is no whole number, or too large", text)
	}
	return n.Int64(), nil
}

// units of a time, in nanoseconds.
var units = map[string]int64{"": 1, "ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}

// Units lists the units that times of a CSV may have.
func Units() []string { return []string{"ns", "us", "ms", "s"} }

// moment is a time in nanoseconds: a number of the unit, also with decimals, or a
// date and time as RFC 3339 has it.
func (c *rows) moment(text string) (int64, error) {
	if text == "" {
		return 0, errors.New("it is empty")
	}
	if at, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return at.UnixNano(), nil
	}
	// An exponent would make a short text a huge number.
	r, ok := new(big.Rat).SetString(text)
	if !ok || strings.ContainsAny(text, "eEpPxX/_") {
		return 0, fmt.Errorf("%q is no number and no RFC 3339 time", text)
	}
	r.Mul(r, new(big.Rat).SetInt64(units[c.o.Unit]))
	n := new(big.Int).Quo(r.Num(), r.Denom())
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q is too large", text)
	}
	return n.Int64(), nil
}

// outcome is what a word says: ours, also with a hyphen or in capitals, or one that
// the options explain.
func outcome(text string, o Options) (model.Outcome, bool) {
	if ours, known := o.Outcomes[text]; known {
		return ours, true
	}
	ours := model.Outcome(strings.ReplaceAll(strings.ToLower(text), "-", "_"))
	switch ours {
	case model.Sold, model.SoldOut, model.Busy, model.Failed, model.OK, model.Value, model.Unknown:
		return ours, true
	}
	return "", false
}

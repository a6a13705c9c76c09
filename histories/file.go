// Package histories records, stores and checks what the clients of a sale
// were answered.
package histories

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"stockproof/model"
)

// History is one SKU's sale.
type History struct {
	Name    string
	SKU     string
	Initial int64 // units
	Ops     []model.Operation
}

// LineError says which line of a history file is bad, and why.
type LineError struct {
	File string
	Line int // from 1
	Err  error
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %v", e.File, e.Line, e.Err) }
func (e *LineError) Unwrap() error { return e.Err }

type headerLine struct {
	Name    string `json:"name,omitempty"`
	SKU     string `json:"sku"`
	Initial *int64 `json:"initial"`
}

type operationLine struct {
	Client  *int          `json:"client"`
	Op      model.Op      `json:"op"`
	Qty     int64         `json:"qty"`
	Call    *int64        `json:"call"`
	Return  *int64        `json:"return"`
	Outcome model.Outcome `json:"outcome"`
	Value   *int64        `json:"value,omitempty"`
	Request string        `json:"request,omitempty"`
}

// maxLine bounds one line of a history file, in bytes.
const maxLine = 1 << 20

// maxUnits bounds the units of one line, so that no sum over a history wraps
// around and makes a wrong answer look right.
const maxUnits = 1 << 40

// Decode reads a file with one history in JSON Lines; see Reader.
func Decode(r io.Reader, name string) (History, error) {
	reader := NewReader(r, name)
	h, err := reader.NextHistory()
	if err != nil {
		return h, err
	}
	for {
		o, err := reader.NextOperation()
		switch {
		case err == io.EOF:
			if _, err := reader.NextHistory(); err != io.EOF {
				return h, reader.bad(errors.New("a second header: the file has more than one history"))
			}
			return h, nil
		case err != nil:
			return h, err
		}
		h.Ops = append(h.Ops, o)
	}
}

// strict decodes one JSON value and nothing else.
func strict(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("more than one JSON value in the line")
	}
	return nil
}

func (h *History) addHeader(text []byte) error {
	var l headerLine
	if err := strict(text, &l); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	switch {
	case l.Initial == nil:
		return errors.New(`header: "initial" is missing`)
	case *l.Initial < 0:
		return fmt.Errorf("header: initial units %d are negative", *l.Initial)
	case *l.Initial > maxUnits:
		return fmt.Errorf("header: initial units %d are more than %d", *l.Initial, int64(maxUnits))
	}
	h.Name, h.SKU, h.Initial = l.Name, l.SKU, *l.Initial
	return nil
}

// outcomesOf lists the answers an operation may have.
var outcomesOf = map[model.Op][]model.Outcome{
	model.Deduct:  {model.Sold, model.SoldOut, model.Busy, model.Failed, model.Unknown},
	model.Restock: {model.OK, model.Busy, model.Failed, model.Unknown},
	model.Read:    {model.Value, model.Failed, model.Unknown},
}

// operation is what a line says, if that can be.
func (l *operationLine) operation() (o model.Operation, err error) {
	if l.Client == nil {
		return o, errors.New(`"client" is missing`)
	}
	if l.Call == nil {
		return o, errors.New(`"call" is missing`)
	}
	allowed, ok := outcomesOf[l.Op]
	if !ok {
		return o, fmt.Errorf("unknown op %q; there are deduct, restock, read", l.Op)
	}
	fits := false
	for _, o := range allowed {
		fits = fits || o == l.Outcome
	}
	o = model.Operation{
		Client: *l.Client, Op: l.Op, Qty: l.Qty, Call: *l.Call,
		Outcome: l.Outcome, Request: l.Request,
	}
	switch {
	case !fits:
		return o, fmt.Errorf("outcome %q does not fit op %q", string(l.Outcome), l.Op)
	case l.Op != model.Read && l.Qty < 1:
		return o, fmt.Errorf("qty %d: a %s has at least one unit", l.Qty, l.Op)
	case l.Qty > maxUnits:
		return o, fmt.Errorf("qty %d is more than %d", l.Qty, int64(maxUnits))
	case l.Op == model.Read && l.Qty != 0:
		return o, fmt.Errorf("qty %d: a read has none", l.Qty)
	case (l.Outcome == model.Value) != (l.Value != nil):
		return o, errors.New(`"value" belongs to the outcome value, and only to it`)
	case l.Return == nil && l.Outcome != model.Unknown:
		return o, fmt.Errorf("return is null, but the outcome is %q", string(l.Outcome))
	case l.Return != nil && *l.Return < *l.Call:
		return o, fmt.Errorf("return %d is before call %d", *l.Return, *l.Call)
	}
	if l.Return != nil {
		o.Return = *l.Return
	} else {
		o.Open = true
	}
	if l.Value != nil {
		o.Value = *l.Value
	}
	return o, nil
}

// Encode writes the history in the form Decode reads.
func (h History) Encode(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(headerLine{h.Name, h.SKU, &h.Initial}); err != nil {
		return err
	}
	for _, o := range h.Ops {
		if err := enc.Encode(lineOf(&o)); err != nil {
			return err
		}
	}
	return nil
}

func lineOf(o *model.Operation) operationLine {
	l := operationLine{Client: &o.Client, Op: o.Op, Qty: o.Qty, Call: &o.Call, Outcome: o.Outcome, Request: o.Request}
	if !o.Open {
		l.Return = &o.Return
	}
	if o.Outcome == model.Value {
		l.Value = &o.Value
	}
	return l
}

// ReadFile reads a history file.
func ReadFile(path string) (History, error) {
	f, err := Open(path)
	if err != nil {
		return History{}, err
	}
	defer f.Close()
	return Decode(f, path)
}

// WriteFile writes a history file, making its folder.
func (h History) WriteFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	var buf bytes.Buffer
	if err := h.Encode(&buf); err != nil {
		return err
	}
	return os.WriteFile(path, buf.Bytes(), 0o644)
}

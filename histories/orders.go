package histories

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"stockproof/model"
)

// Audit is the durable truth that was read after a sale: the orders, or a
// journal of what was taken, by request id.
type Audit struct {
	At     *int64 // time of the audit on the history's clock; nil: after everything
	Stock  *int64 // units the counter showed then; nil when it was not read
	Orders []model.Order
}

// ReadAudits reads the durable truth from JSON Lines, by SKU:
//
//	{"sku":…,"audited":ns,"stock":n}           once a SKU, each field but sku optional
//	{"sku":…,"request":"…","qty":n}            an order
//
// Lines without "sku" belong to the SKU called "". The error of a bad line is a
// *LineError.
func ReadAudits(path string) (map[string]*Audit, error) {
	f, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return DecodeAudits(f, path)
}

// DecodeAudits is ReadAudits from an open file.
func DecodeAudits(r io.Reader, name string) (map[string]*Audit, error) {
	audits := map[string]*Audit{}
	headers := map[string]bool{}
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 64*1024), maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := bytes.TrimSpace(lines.Bytes())
		if len(text) == 0 {
			continue
		}
		var l struct {
			SKU     string  `json:"sku"`
			Audited *int64  `json:"audited"`
			Stock   *int64  `json:"stock"`
			Request *string `json:"request"`
			Qty     int64   `json:"qty"`
		}
		err := strict(text, &l)
		a := audits[l.SKU]
		if a == nil {
			a = new(Audit)
			audits[l.SKU] = a
		}
		about := l.Audited != nil || l.Stock != nil
		switch {
		case err != nil:
		case about == (l.Request != nil):
			err = errors.New(`a line has either "request" and "qty", or "audited" and "stock"`)
		case about && headers[l.SKU]:
			err = fmt.Errorf("a second audit of sku %q", l.SKU)
		case about && l.Qty != 0:
			err = errors.New(`"qty" belongs to an order`)
		case about:
			headers[l.SKU] = true
			a.At, a.Stock = l.Audited, l.Stock
		case *l.Request == "":
			err = errors.New("an order without a request id settles nothing")
		case l.Qty < 1 || l.Qty > maxUnits:
			err = fmt.Errorf("qty %d is not between 1 and %d", l.Qty, int64(maxUnits))
		default:
			a.Orders = append(a.Orders, model.Order{Request: *l.Request, Qty: l.Qty})
		}
		if err != nil {
			return nil, &LineError{name, n, err}
		}
	}
	if err := lines.Err(); err != nil {
		return nil, &LineError{name, n + 1, err}
	}
	return audits, nil
}

// AuditError is an audit that was made before the last operation ended.
type AuditError struct {
	SKU      string
	At, Last int64 // nanoseconds on the history's clock
}

func (e *AuditError) Error() string {
	return fmt.Sprintf("sku %q: the audit at %d is before %d, when the last operation began or ended", e.SKU, e.At, e.Last)
}

// Settle decides the doubts of the history from an audit, ends it with the read
// of the audit where it made one, and answers what is known at rest. An audit that began before something returned is refused:
// what it did not find may have come later.
func (h History) Settle(a Audit) (settled History, decided int, rest model.Rest, err error) {
	last := int64(0)
	for i, o := range h.Ops {
		if i == 0 || o.Call > last {
			last = o.Call
		}
		if !o.Open {
			last = max(last, o.Return)
		}
	}
	at := last + 1
	if a.At != nil {
		if at = *a.At; at < last {
			return h, 0, rest, &AuditError{h.SKU, at, last}
		}
	}
	settled = h
	settled.Ops, decided = model.Settle(h.Ops, a.Orders, at)
	settled.Ops = model.AtRest(settled.Ops, a.Stock)
	orders := append([]model.Order{}, a.Orders...)
	return settled, decided, model.Rest{Initial: h.Initial, Counter: a.Stock, Orders: &orders}, nil
}

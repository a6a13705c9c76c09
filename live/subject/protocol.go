// Package subject runs schemes that are not part of this binary: programs in any
// language that speak JSON lines on standard input and output. docs/subject-protocol.md
// is the protocol for those who write one.
package subject

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"

	"stockproof/live/clients"
	"stockproof/model"
)

// Protocol is the version of the messages, the first thing a subject says.
const Protocol = "stockproof/subject/v1"

// Limits of the protocol.
const (
	maxLine = 1 << 20 // bytes of one line, its end included
	maxText = 200     // bytes of an error or a bad line that are shown
)

// ProtocolError says which rule a subject broke.
type ProtocolError struct {
	Rule string // what was due
	Line string // what came instead, shortened; may be empty
}

func (e *ProtocolError) Error() string {
	if e.Line == "" {
		return "protocol: " + e.Rule
	}
	return fmt.Sprintf("protocol: %s: %s", e.Rule, e.Line)
}

func broken(line []byte, format string, args ...any) error {
	return &ProtocolError{Rule: fmt.Sprintf(format, args...), Line: shown(line)}
}

// shown is a line as a message shows it.
func shown(line []byte) string {
	if len(line) > maxText {
		return fmt.Sprintf("%q… (%d bytes)", line[:maxText], len(line))
	}
	return fmt.Sprintf("%q", line)
}

// The further operations of the protocol.
const (
	opLoad   model.Op = "load"
	opOrders model.Op = "orders"
)

// Hello is the first line of a subject.
type Hello struct {
	Name    string
	Version string
	Redis   bool
	SQL     bool
	// Operations that it offers; deduct is always among them.
	Operations map[model.Op]bool
	// Key and Field say where the counter is in Redis, with {sku} for the article;
	// an empty Field is a string key. An empty Key: the subject loads and reads.
	Key, Field string
	// Leases are the Redis keys whose expiry ends a lease, with {sku}.
	Leases []string
}

// Scheme is the name in reports.
func (h Hello) Scheme() string { return h.Name + "@" + h.Version }

const skuWord = "{sku}"

var (
	nameWord    = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)
	versionWord = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._+-]{0,63}$`)
)

// fields takes a JSON object apart: every field is one of the known, and there once.
func fields(line []byte, known ...string) (map[string]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(line))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, broken(line, "a line is one JSON object (logs belong on standard error)")
	}
	found := map[string]json.RawMessage{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, broken(line, "a line is one JSON object: %v", err)
		}
		name := t.(string) // the decoder accepts nothing else as a key
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, broken(line, "field %.40q: %v", name, err)
		}
		switch _, twice := found[name]; {
		case twice:
			return nil, broken(line, "field %.40q is there twice", name)
		case !contains(known, name):
			return nil, broken(line, "unknown field %.40q; there are %s", name, strings.Join(known, ", "))
		}
		found[name] = value
	}
	if _, err := dec.Token(); err != nil {
		return nil, broken(line, "a line is one JSON object: %v", err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, broken(line, "a line is one JSON object and nothing behind it")
	}
	return found, nil
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

// field reads one field into v; a missing one is an error unless optional.
func field(line []byte, found map[string]json.RawMessage, name string, optional bool, v any) error {
	raw, ok := found[name]
	if !ok || string(raw) == "null" {
		if optional && !ok {
			return nil
		}
		return broken(line, "field %q is missing", name)
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return broken(line, "field %q: %v", name, err)
	}
	return nil
}

// parseHello reads the first line.
func parseHello(line []byte) (h Hello, err error) {
	found, err := fields(line, "protocol", "name", "version", "stores", "operations", "stock", "leases")
	if err != nil {
		return h, err
	}
	var protocol string
	var stores, ops []string
	var stock struct{ Key, Field string }
	if err := field(line, found, "protocol", false, &protocol); err != nil {
		return h, err
	}
	if protocol != Protocol {
		return h, broken(line, "protocol %.40q is not spoken here, only %q", protocol, Protocol)
	}
	if err := errors.Join(
		field(line, found, "name", false, &h.Name), field(line, found, "version", false, &h.Version),
		field(line, found, "stores", false, &stores), field(line, found, "operations", false, &ops),
		field(line, found, "stock", true, &stock), field(line, found, "leases", true, &h.Leases),
	); err != nil {
		return h, err
	}
	switch {
	case !nameWord.MatchString(h.Name):
		return h, broken(line, "name %.80q: want lower case letters, digits, and . _ - in between", h.Name)
	case !versionWord.MatchString(h.Version):
		return h, broken(line, "version %.80q: want letters, digits, and . _ + - in between", h.Version)
	}
	for _, s := range stores {
		switch s {
		case "redis":
			h.Redis = true
		case "postgres":
			h.SQL = true
		default:
			return h, broken(line, "unknown store %.40q; there are redis, postgres", s)
		}
	}
	if len(stores) == 0 {
		return h, broken(line, "stores: want redis, postgres, or both")
	}
	h.Operations, h.Key, h.Field = map[model.Op]bool{}, stock.Key, stock.Field
	for _, o := range ops {
		if !known(model.Op(o)) {
			return h, broken(line, "unknown operation %.40q; there are deduct, restock, read, load, orders", o)
		}
		h.Operations[model.Op(o)] = true
	}
	return h, h.check(line)
}

// check looks at how the parts fit.
func (h Hello) check(line []byte) error {
	for _, op := range []model.Op{model.Deduct, model.Read} {
		if !h.Operations[op] {
			return broken(line, "operations: %s is missing", op)
		}
	}
	switch {
	case h.Key == "" && !h.Operations[opLoad]:
		return broken(line, "neither operation load nor stock: how shall an article be put on sale?")
	case h.Key != "" && h.Operations[opLoad]:
		return broken(line, "operation load and stock: one of them puts an article on sale")
	case h.Key == "" && h.Field != "":
		return broken(line, "stock: a field without a key")
	case h.Key != "" && !h.Redis:
		return broken(line, "stock is a place in redis, which is not among the stores")
	case h.Key != "" && !strings.Contains(h.Key, skuWord):
		return broken(line, "stock: the key %.40q has no %s in it", h.Key, skuWord)
	case len(h.Leases) > 0 && !h.Redis:
		return broken(line, "leases are keys in redis, which is not among the stores")
	}
	for _, l := range h.Leases {
		if !strings.Contains(l, skuWord) {
			return broken(line, "leases: the key %.40q has no %s in it", l, skuWord)
		}
	}
	return nil
}

// forSKU puts the article into a key.
func forSKU(key, sku string) string { return strings.ReplaceAll(key, skuWord, sku) }

// request is one line to a subject.
type request struct {
	ID      int64    `json:"id"`
	Op      model.Op `json:"op"`
	SKU     string   `json:"sku"`
	Qty     int64    `json:"qty"`
	Request string   `json:"request,omitempty"`
	Buyer   string   `json:"buyer,omitempty"`
}

// answer is one line from a subject, after the first.
type answer struct {
	clients.Answer
	orders []model.Order
}

// outcomeOrders is what orders answers with.
const outcomeOrders model.Outcome = "orders"

// isAnswer says whether an outcome is an answer to an operation of the protocol.
func isAnswer(op model.Op, o model.Outcome) bool {
	switch op {
	case opLoad:
		return o == model.OK || o == model.Failed
	case opOrders:
		return o == outcomeOrders || o == model.Failed
	}
	// What is no operation has certainly not been applied.
	return clients.IsAnswer(op, o) || !known(op) && o == model.Failed
}

func known(op model.Op) bool {
	switch op {
	case model.Deduct, model.Restock, model.Read, opLoad, opOrders:
		return true
	}
	return false
}

// words lists the outcomes an operation may have.
func words(op model.Op) string {
	var list []string
	for _, o := range []model.Outcome{model.Sold, model.SoldOut, model.OK, model.Value, outcomeOrders, model.Busy, model.Failed, model.Unknown} {
		if isAnswer(op, o) {
			list = append(list, string(o))
		}
	}
	return strings.Join(list, ", ")
}

// parseAnswer reads the answer to a request.
func parseAnswer(line []byte, req request) (a answer, err error) {
	found, err := fields(line, "id", "outcome", "value", "orders", "error")
	if err != nil {
		return a, err
	}
	var id int64
	if err := errors.Join(field(line, found, "id", false, &id), field(line, found, "outcome", false, &a.Outcome),
		field(line, found, "error", true, &a.Err)); err != nil {
		return a, err
	}
	_, value := found["value"]
	_, orders := found["orders"]
	switch {
	case id != req.ID:
		return a, broken(line, "request %d is answered with id %d", req.ID, id)
	case !isAnswer(req.Op, a.Outcome):
		return a, broken(line, "%.40q is no answer to %.40s; there are %s", string(a.Outcome), string(req.Op), words(req.Op))
	case value != (a.Outcome == model.Value):
		return a, broken(line, "value belongs to outcome value, and to no other")
	case orders != (a.Outcome == outcomeOrders):
		return a, broken(line, "orders belong to outcome orders, and to no other")
	}
	if value {
		if err := field(line, found, "value", false, &a.Value); err != nil {
			return a, err
		}
	}
	if len(a.Err) > maxText {
		a.Err = a.Err[:maxText] + "…"
	}
	if !orders {
		return a, nil
	}
	var list []struct {
		Request string `json:"request"`
		Qty     int64  `json:"qty"`
	}
	if err := field(line, found, "orders", false, &list); err != nil {
		return a, err
	}
	for _, o := range list {
		if o.Request == "" || o.Qty < 1 {
			return a, broken(line, "orders: want a request and a qty of at least 1 for each")
		}
		a.orders = append(a.orders, model.Order{Request: o.Request, Qty: o.Qty})
	}
	return a, nil
}

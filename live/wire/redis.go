package wire

import (
	"fmt"
	"io"
	"strconv"
	"strings"
)

// subscription is a (un)subscribe command waiting for its confirmations.
type subscription struct {
	name string // lower case
	want int    // confirmations still to come; 1 when only the server knows
}

// The commands that pass uncounted. They neither read nor write data.
var uncountedCommands = map[string]bool{
	"HELLO": true, "AUTH": true, "SELECT": true, "CLIENT": true, "COMMAND": true, "READONLY": true, "READWRITE": true,
	"RESET": true, "QUIT": true, "PING": true,
}

var subscribeCommands = map[string]bool{
	"subscribe": true, "unsubscribe": true, "psubscribe": true, "punsubscribe": true, "ssubscribe": true, "sunsubscribe": true,
}

var publishedKinds = map[string]bool{"message": true, "pmessage": true, "smessage": true}

// After these, replies no longer follow requests one to one.
var unsupportedCommands = map[string]bool{"MONITOR": true, "SYNC": true, "PSYNC": true}

// redisDialect knows RESP 2 and 3.
type redisDialect struct {
	c *conn

	// Of the request loop.
	asked respScanner
	multi bool

	// Of the reply loop.
	answered   respScanner
	proto      int
	subscribed bool // RESP 2: messages may come between replies
}

func newRedisDialect(c *conn) *redisDialect { return &redisDialect{c: c, proto: 2} }

func (d *redisDialect) requests(r *reader) ([]*request, error) {
	for {
		if b := r.bytes(); len(b) > 0 {
			if b[0] != '*' {
				return nil, fmt.Errorf("inline command %.40q", b)
			}
			n, err := d.asked.scan(b)
			if err != nil {
				return nil, err
			}
			if n > 0 {
				q, err := d.request(r.consume(n))
				if err != nil {
					return nil, err
				}
				return []*request{q}, nil
			}
		}
		if !r.fill() {
			return nil, io.EOF
		}
	}
}

func (d *redisDialect) request(raw []byte) (*request, error) {
	argv, err := parseCommand(raw)
	if err != nil {
		return nil, err
	}
	if len(argv) == 0 {
		return &request{raw: raw}, nil // not answered
	}
	name := strings.ToUpper(argv[0])
	a := &answer{}
	q := &request{raw: raw, answers: []*answer{a}}
	switch {
	case unsupportedCommands[name], name == "CLIENT" && len(argv) > 1 && strings.EqualFold(argv[1], "REPLY"):
		return nil, fmt.Errorf("%s is not supported behind this proxy", strings.Join(argv[:min(2, len(argv))], " "))
	case d.multi:
		// Part of a transaction, whatever it is.
	case subscribeCommands[strings.ToLower(name)]:
		a.sub = &subscription{name: strings.ToLower(name), want: max(1, len(argv)-1)}
		return q, nil
	case uncountedCommands[name]:
		if name == "HELLO" && len(argv) > 1 {
			a.proto, _ = strconv.Atoi(argv[1])
		}
		if name == "RESET" {
			a.proto = 2
		}
		return q, nil
	}
	switch name {
	case "MULTI":
		d.multi = true
	case "EXEC", "DISCARD":
		d.multi = false
	}
	q.step = &flight{step: Step{Argv: argv, Batch: 1, BatchLen: 1}}
	return q, nil
}

func (d *redisDialect) reply(r *reader) (unit, error) {
	for {
		if b := r.bytes(); len(b) > 0 {
			n, err := d.answered.scan(b)
			if err != nil {
				return unit{}, err
			}
			if n > 0 {
				return d.unit(r.consume(n))
			}
		}
		if !r.fill() {
			return unit{}, io.EOF
		}
	}
}

func (d *redisDialect) unit(raw []byte) (unit, error) {
	v, _ := parseValue(raw)
	front := d.c.front()
	kind := ""
	if (v.kind == '>' || v.kind == '*' && d.proto == 2) && len(v.children) > 0 {
		kind = string(v.children[0].data)
	}
	waiting := front != nil && front.sub != nil
	if n := len(v.children); publishedKinds[kind] && n >= 3 {
		d.c.heard(string(v.children[n-2].data))
	}
	switch {
	case waiting && v.isError():
		d.c.pop()
		return unit{raw: raw}, nil
	case waiting && kind == front.sub.name:
		d.confirmed(v)
		if front.sub.want--; front.sub.want == 0 {
			d.c.pop()
		}
		return unit{raw: raw}, nil
	case v.kind == '>':
		return unit{raw: raw}, nil
	case d.subscribed && (publishedKinds[kind] || subscribeCommands[kind]):
		if subscribeCommands[kind] {
			d.confirmed(v)
		}
		return unit{raw: raw}, nil
	case front == nil:
		// A server that closes an idle connection says why.
		if v.isError() {
			return unit{raw: raw}, nil
		}
		return unit{}, fmt.Errorf("reply without a command: %.40q", raw)
	case waiting:
		return unit{}, fmt.Errorf("%s answered with %.40q", front.sub.name, raw)
	}
	if front.proto != 0 && !v.isError() {
		d.proto = front.proto
		if d.proto == 2 {
			d.subscribed = false
		}
	}
	d.c.pop()
	if front.flight != nil {
		v = v.inPairs(front.flight.step.Argv)
	}
	return unit{raw: raw, flight: front.flight, reply: Reply{Text: v.text(), Err: v.isError(), Answer: v.answer()}}, nil
}

// confirmed keeps account of whether anything is subscribed to: a confirmation
// ends with the number of channels left.
func (d *redisDialect) confirmed(v value) {
	if len(v.children) != 3 {
		return
	}
	left := string(v.children[2].data)
	if d.proto == 2 {
		d.subscribed = left != "0"
	}
	if n, err := strconv.Atoi(left); err == nil {
		d.c.listens(n)
	}
}

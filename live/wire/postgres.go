package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgproto3"

	"stockproof/faults/schedule"
)

// What the server owes for each message of the client.
const (
	answerReply     answerKind = iota // Redis: any value
	answerTLS                         // one byte, before start-up
	answerStartup                     // everything up to the first ReadyForQuery
	answerSimple                      // everything up to ReadyForQuery
	answerParse                       // ParseComplete
	answerBind                        // BindComplete
	answerStatement                   // ParameterDescription, then RowDescription or NoData
	answerPortal                      // RowDescription or NoData
	answerExecute                     // rows, then the end of the command
	answerClose                       // CloseComplete
	answerSync                        // ReadyForQuery
)

// pgAnswer is what more is known of an answer of PostgreSQL.
type pgAnswer struct {
	statement *statement
	portal    *portal
	// undo takes back what was noted on the strength of a message that the
	// server then refused or skipped.
	undo func()
}

// statement is a prepared statement of the connection, as far as is known.
type statement struct {
	sql    string
	oids   []uint32 // of the parameters
	fields []pgproto3.FieldDescription
}

// portal is a statement with its parameters bound.
type portal struct {
	statement *statement
	args      [][]byte
	formats   []int16 // of the parameters
	results   []int16 // formats asked for the columns
	fields    []pgproto3.FieldDescription
}

// Codes in place of a protocol version in the first message of a connection.
const (
	codeCancel = 80877102
	codeSSL    = 80877103
	codeGSSEnc = 80877104
)

// maxStartup bounds the first message, as PostgreSQL does.
const maxStartup = 10000

// postgresDialect knows version 3 of the PostgreSQL protocol, but neither TLS,
// nor COPY, replication and the fast-path function call.
type postgresDialect struct {
	c *conn

	// Of the request loop.
	started bool
	group   []*request // of the batch under way
	tail    *request   // what has come since its last step

	// Of both loops; statement and portal are shared as well.
	mu         sync.Mutex
	statements map[string]*statement
	portals    map[string]*portal
	pid        uint32

	// Of the reply loop.
	raw     []byte // of the unit under way
	current *flight
	results []string
	rows    int
	last    schedule.Reply   // of the last command of the unit
	table   []schedule.Reply // rows of the command under way
	failed  bool             // the unit holds an error
	skip    string           // the error after which the server skips to the next Sync
	fields  []pgproto3.FieldDescription
	ready   []unit
}

func newPostgresDialect(c *conn) *postgresDialect {
	return &postgresDialect{c: c, statements: map[string]*statement{}, portals: map[string]*portal{}, tail: &request{}}
}

// errCancelDropped: the request to cancel is lost like the connection whose
// statement it names.
var errCancelDropped = errors.New("cancel request of a connection that was cut")

func (d *postgresDialect) backend() uint32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.pid
}

// decode runs a decoder of pgproto3 over a body that anybody may have sent.
func decode(m interface{ Decode([]byte) error }, body []byte) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%T: %v", m, p)
		}
	}()
	return m.Decode(body)
}

// message takes the next whole message: its type and all its bytes.
func message(r *reader) (byte, []byte, error) {
	for {
		if b := r.bytes(); len(b) >= 5 {
			n := int(int32(binary.BigEndian.Uint32(b[1:])))
			if n < 4 || n > maxMessage {
				return 0, nil, fmt.Errorf("message %q of length %d", b[0], n)
			}
			if len(b) >= n+1 {
				return b[0], r.consume(n + 1), nil
			}
		}
		if !r.fill() {
			return 0, nil, io.EOF
		}
	}
}

func (d *postgresDialect) requests(r *reader) ([]*request, error) {
	if !d.started {
		q, err := d.first(r)
		if err != nil {
			return nil, err
		}
		return []*request{q}, nil
	}
	for {
		kind, raw, err := message(r)
		if err != nil {
			return nil, err
		}
		group, err := d.message(kind, raw)
		if err != nil || len(group) > 0 {
			return group, err
		}
	}
}

// first reads a message without a type.
func (d *postgresDialect) first(r *reader) (*request, error) {
	for {
		if b := r.bytes(); len(b) >= 8 {
			n, code := int(int32(binary.BigEndian.Uint32(b))), binary.BigEndian.Uint32(b[4:])
			if n < 8 || n > maxStartup {
				return nil, fmt.Errorf("first message of length %d", n)
			}
			if len(b) >= n {
				raw := r.consume(n)
				switch code {
				case codeSSL, codeGSSEnc:
					return &request{raw: raw, answers: []*answer{{kind: answerTLS}}}, nil
				case codeCancel:
					if n >= 12 {
						if _, cut := d.c.p.cut.Load(binary.BigEndian.Uint32(raw[8:])); cut {
							return nil, errCancelDropped
						}
					}
					return &request{raw: raw}, nil // the server closes
				}
				if err := decode(&pgproto3.StartupMessage{}, raw[4:]); err != nil {
					return nil, err
				}
				d.started = true
				return &request{raw: raw, answers: []*answer{{kind: answerStartup}}}, nil
			}
		}
		if !r.fill() {
			return nil, io.EOF
		}
	}
}

// message notes one message of the client; the group when it completes one.
func (d *postgresDialect) message(kind byte, raw []byte) ([]*request, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	body := raw[5:]
	add := func(a *answer) {
		d.tail.raw = append(d.tail.raw, raw...)
		if a != nil {
			d.tail.answers = append(d.tail.answers, a)
		}
	}
	switch kind {
	case 'p': // passwords; the answer is part of the start-up's
		return []*request{{raw: raw}}, nil
	case 'Q':
		var m pgproto3.Query
		if err := decode(&m, body); err != nil {
			return nil, err
		}
		add(&answer{kind: answerSimple})
		if !blank(m.String) {
			d.step(Step{SQL: m.String})
		}
		return d.flush(), nil
	case 'P':
		var m pgproto3.Parse
		if err := decode(&m, body); err != nil {
			return nil, err
		}
		s := &statement{sql: m.Query, oids: append([]uint32(nil), m.ParameterOIDs...)}
		undo := note(d.statements, m.Name, s)
		add(&answer{kind: answerParse, pg: pgAnswer{undo: undo}})
	case 'B':
		var m pgproto3.Bind
		if err := decode(&m, body); err != nil {
			return nil, err
		}
		s := d.statements[m.PreparedStatement]
		if s == nil {
			// The server will say so.
			s = &statement{sql: fmt.Sprintf("<unknown statement %q>", m.PreparedStatement)}
		}
		p := &portal{statement: s, args: m.Parameters, formats: m.ParameterFormatCodes, results: m.ResultFormatCodes}
		undo := note(d.portals, m.DestinationPortal, p)
		add(&answer{kind: answerBind, pg: pgAnswer{undo: undo}})
	case 'D':
		var m pgproto3.Describe
		if err := decode(&m, body); err != nil {
			return nil, err
		}
		if m.ObjectType == 'S' {
			add(&answer{kind: answerStatement, pg: pgAnswer{statement: d.statements[m.Name]}})
		} else {
			add(&answer{kind: answerPortal, pg: pgAnswer{portal: d.portals[m.Name]}})
		}
	case 'E':
		var m pgproto3.Execute
		if err := decode(&m, body); err != nil {
			return nil, err
		}
		p := d.portals[m.Portal]
		if p == nil {
			p = &portal{statement: &statement{sql: fmt.Sprintf("<unknown portal %q>", m.Portal)}}
		}
		add(&answer{kind: answerExecute, pg: pgAnswer{portal: p}})
		if !blank(p.statement.sql) {
			d.step(Step{SQL: p.statement.sql, Args: p.arguments()})
		}
	case 'C':
		var m pgproto3.Close
		if err := decode(&m, body); err != nil {
			return nil, err
		}
		if m.ObjectType == 'S' {
			delete(d.statements, m.Name)
		} else {
			delete(d.portals, m.Name)
		}
		add(&answer{kind: answerClose})
	case 'S':
		add(&answer{kind: answerSync})
		return d.flush(), nil
	case 'H', 'X':
		add(nil)
		return d.flush(), nil
	case 'd', 'c', 'f':
		return nil, errors.New("COPY is not supported behind this proxy")
	case 'F':
		return nil, errors.New("the fast-path function call is not supported behind this proxy")
	default:
		return nil, fmt.Errorf("unknown message %q", kind)
	}
	return nil, nil
}

// note sets m[name] and returns what takes it back.
func note[V any](m map[string]*V, name string, v *V) func() {
	old, had := m[name]
	m[name] = v
	return func() {
		switch {
		case m[name] != v:
			// Already something newer.
		case had:
			m[name] = old
		default:
			delete(m, name)
		}
	}
}

// step makes what has come so far one step.
func (d *postgresDialect) step(s Step) {
	s.BackendPID = d.pid
	d.tail.step = &flight{step: s}
	d.group = append(d.group, d.tail)
	d.tail = &request{}
}

// flush ends the batch: what came after its last step goes with that step,
// because the server does not answer before it has seen the end.
func (d *postgresDialect) flush() []*request {
	group, tail := d.group, d.tail
	d.group, d.tail = nil, &request{}
	if len(group) == 0 {
		return []*request{tail}
	}
	last := group[len(group)-1]
	last.raw = append(last.raw, tail.raw...)
	last.answers = append(last.answers, tail.answers...)
	for i, q := range group {
		q.step.step.Batch, q.step.step.BatchLen = i+1, len(group)
	}
	return group
}

// blank tells whether a query holds nothing but space, comments and
// semicolons, as the pings of drivers do.
func blank(sql string) bool {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n\f\v;")
		switch {
		case sql == "":
			return true
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			depth, i := 0, 0
			for i < len(sql) {
				switch {
				case strings.HasPrefix(sql[i:], "/*"):
					depth++
					i += 2
				case strings.HasPrefix(sql[i:], "*/"):
					depth--
					i += 2
				default:
					i++
				}
				if depth == 0 {
					break
				}
			}
			if depth > 0 {
				return false // the server will complain
			}
			sql = sql[i:]
		default:
			return false
		}
	}
}

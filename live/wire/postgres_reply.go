package wire

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"

	"stockproof/faults/schedule"
)

// maxRows bounds the rows written out in a Reply.
const maxRows = 16

func (d *postgresDialect) reply(r *reader) (unit, error) {
	for {
		if len(d.ready) > 0 {
			u := d.ready[0]
			d.ready = d.ready[1:]
			return u, nil
		}
		front := d.c.front()
		if b := r.bytes(); front != nil && front.kind == answerTLS && len(b) > 0 && b[0] != 'E' {
			if b[0] != 'N' {
				return unit{}, errors.New("the server wants to encrypt, which cannot be read")
			}
			d.c.pop()
			return unit{raw: r.consume(1)}, nil
		} else if len(b) == 0 {
			// Look at what is owed only when there is something to match
			// with it: the request is put down before its bytes are sent.
			if !r.fill() {
				return unit{}, io.EOF
			}
			continue
		}
		kind, raw, err := message(r)
		if err != nil {
			return unit{}, err
		}
		if len(d.raw)+len(raw) > maxMessage {
			return unit{}, fmt.Errorf("reply of more than %d bytes", maxMessage)
		}
		d.mu.Lock()
		err = d.answer(kind, raw)
		d.mu.Unlock()
		if err != nil {
			return unit{}, err
		}
	}
}

// answer matches one message of the server with what it owes.
func (d *postgresDialect) answer(kind byte, raw []byte) error {
	d.skipped()
	front := d.c.front()
	body := raw[5:]
	switch kind {
	case 'N', 'S', 'A': // may come at any time
		if kind == 'N' && front != nil && front.flight != nil {
			d.begin(front)
		}
		d.add(raw)
		return nil
	}
	if front == nil {
		if kind == 'E' { // why the server is about to close
			d.add(raw)
			return nil
		}
		return fmt.Errorf("message %q that nothing asked for", kind)
	}
	d.begin(front)
	d.add(raw)
	if kind == 'E' {
		var m pgproto3.ErrorResponse
		if err := decode(&m, body); err != nil {
			return err
		}
		text := fmt.Sprintf("%s %s %s", m.Severity, m.Code, m.Message)
		d.results, d.failed = append(d.results, text), true
		d.last = schedule.Reply{Kind: schedule.Error, Text: m.Code}
		switch front.kind {
		case answerStartup, answerTLS:
			d.done() // the server closes
		case answerSimple:
		default:
			if front.kind != answerSync {
				d.skip = text
				d.skipped()
			}
		}
		return nil
	}
	return d.expected(front, kind, body)
}

// expected deals with a message that can only be the one owed.
func (d *postgresDialect) expected(front *answer, kind byte, body []byte) error {
	wrong := fmt.Errorf("message %q in answer to something else", kind)
	switch kind {
	case 'G', 'H', 'W':
		return errors.New("COPY is not supported behind this proxy")
	}
	switch front.kind {
	case answerStartup:
		switch kind {
		case 'K':
			var m pgproto3.BackendKeyData
			if err := decode(&m, body); err != nil {
				return err
			}
			d.pid = m.ProcessID
		case 'Z':
			d.done()
		case 'R', 'v':
		default:
			return wrong
		}
		return nil
	case answerSimple:
		switch kind {
		case 'T':
			var m pgproto3.RowDescription
			if err := decode(&m, body); err != nil {
				return err
			}
			d.fields = keep(m.Fields)
		case 'D':
			return d.row(body, d.fields)
		case 'C':
			err := d.complete(body, len(d.fields) > 0)
			d.fields = nil
			return err
		case 'I':
		case 'Z':
			d.done()
		default:
			return wrong
		}
		return nil
	case answerStatement:
		switch kind {
		case 't':
			var m pgproto3.ParameterDescription
			if err := decode(&m, body); err != nil {
				return err
			}
			if s := front.pg.statement; s != nil {
				s.oids = append([]uint32(nil), m.ParameterOIDs...)
			}
			return nil
		case 'T':
			var m pgproto3.RowDescription
			if err := decode(&m, body); err != nil {
				return err
			}
			if s := front.pg.statement; s != nil {
				s.fields = keep(m.Fields)
			}
		case 'n':
		default:
			return wrong
		}
	case answerPortal:
		switch kind {
		case 'T':
			var m pgproto3.RowDescription
			if err := decode(&m, body); err != nil {
				return err
			}
			if p := front.pg.portal; p != nil {
				p.fields = keep(m.Fields)
			}
		case 'n':
		default:
			return wrong
		}
	case answerExecute:
		switch kind {
		case 'D':
			return d.row(body, front.pg.portal.columns())
		case 'C':
			if err := d.complete(body, front.pg.portal.answersRows()); err != nil {
				return err
			}
		case 's', 'I':
		default:
			return wrong
		}
	case answerParse, answerBind, answerClose, answerSync:
		want := map[answerKind]byte{answerParse: '1', answerBind: '2', answerClose: '3', answerSync: 'Z'}
		if kind != want[front.kind] {
			return wrong
		}
	default:
		return wrong
	}
	d.done()
	return nil
}

// begin makes the front's step the one whose reply is being put together.
func (d *postgresDialect) begin(front *answer) {
	if front.flight != nil {
		d.current = front.flight
	}
}

// add keeps a message back while it belongs to the reply of a step, or would
// overtake one.
func (d *postgresDialect) add(raw []byte) {
	if d.current == nil {
		d.ready = append(d.ready, unit{raw: raw})
		return
	}
	d.raw = append(d.raw, raw...)
}

// done takes the front away; with the last answer to a step its reply is
// complete.
func (d *postgresDialect) done() {
	front := d.c.front()
	if front == nil {
		return
	}
	if front.kind == answerSync || front.kind == answerSimple {
		d.skip = ""
	}
	if front.last {
		text := strings.Join(d.results, "; ")
		if d.rows > maxRows {
			text += fmt.Sprintf("; … (%d rows)", d.rows)
		}
		d.ready = append(d.ready, unit{raw: d.raw, flight: front.flight, reply: Reply{Text: text, Err: d.failed, Answer: d.last}})
		d.raw, d.current = nil, nil
	}
	if front.flight == nil || front.last {
		d.results, d.rows, d.failed = nil, 0, false
		d.last, d.table = schedule.Reply{}, nil
	}
	d.c.pop()
}

// skipped takes away what the server will not answer after an error: all up
// to the next Sync.
func (d *postgresDialect) skipped() {
	for d.skip != "" {
		front := d.c.front()
		if front == nil || front.kind == answerSync {
			return
		}
		if front.pg.undo != nil {
			front.pg.undo()
		}
		if f := front.flight; f != nil && f != d.current {
			d.current = f
			d.results, d.failed = []string{"not executed after " + d.skip}, true
		}
		d.done()
	}
}

// row adds one row to the text of the reply.
func (d *postgresDialect) row(body []byte, fields []pgproto3.FieldDescription) error {
	var m pgproto3.DataRow
	if err := decode(&m, body); err != nil {
		return err
	}
	if d.rows++; d.rows > maxRows {
		return nil
	}
	texts := make([]string, len(m.Values))
	row := schedule.Reply{Kind: schedule.Row}
	for i, v := range m.Values {
		var f pgproto3.FieldDescription
		if i < len(fields) {
			f = fields[i]
		}
		texts[i] = column(f, v)
		row.Items = append(row.Items, answerOf(f, v))
	}
	d.table = append(d.table, row)
	d.results = append(d.results, "row ("+strings.Join(texts, ", ")+")")
	return nil
}

// complete ends a command. A SELECT says nothing that its rows did not say.
func (d *postgresDialect) complete(body []byte, columns bool) error {
	var m pgproto3.CommandComplete
	if err := decode(&m, body); err != nil {
		return err
	}
	tag := string(m.CommandTag)
	d.last = tagged(tag, columns, d.table)
	d.table = nil
	switch {
	case tag == "SELECT 0":
		d.results = append(d.results, "no rows")
	case strings.HasPrefix(tag, "SELECT "):
	default:
		d.results = append(d.results, tag)
	}
	return nil
}

// tagged is the answer to a command as a schedule writes it: the rows of one that
// has columns, else how many it changed.
func tagged(tag string, columns bool, table []schedule.Reply) schedule.Reply {
	if columns {
		return schedule.Reply{Kind: schedule.Rows, Items: table}
	}
	if i := strings.LastIndexByte(tag, ' '); i >= 0 {
		if n, err := strconv.ParseInt(tag[i+1:], 10, 64); err == nil {
			return schedule.Reply{Kind: schedule.Count, Int: n}
		}
	}
	return schedule.Reply{Kind: schedule.Tag, Text: tag}
}

// answerOf is a value of a row as a schedule writes it.
func answerOf(f pgproto3.FieldDescription, v []byte) schedule.Reply {
	if v == nil {
		return schedule.Reply{Kind: schedule.Nil}
	}
	text, _ := valueText(f.DataTypeOID, f.Format, v)
	switch f.DataTypeOID {
	case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return schedule.Reply{Kind: schedule.Int, Int: n}
		}
	case pgtype.BoolOID:
		return schedule.Reply{Kind: schedule.Bool, Text: text}
	}
	return schedule.Reply{Kind: schedule.Text, Text: text}
}

// keep copies fields: pgproto3 uses its slice again and their names lie in the
// message.
func keep(fields []pgproto3.FieldDescription) []pgproto3.FieldDescription {
	kept := append([]pgproto3.FieldDescription(nil), fields...)
	for i := range kept {
		kept[i].Name = nil
	}
	return kept
}

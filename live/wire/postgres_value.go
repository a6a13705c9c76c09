package wire

import (
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/pgtype"
)

var maps = sync.Pool{New: func() any { return pgtype.NewMap() }}

// Formats of a value on the wire.
const (
	formatText   = 0
	formatBinary = 1
)

// format picks the format of the i-th value: none means text, one is for all.
func format(formats []int16, i int) int16 {
	switch {
	case len(formats) == 0:
		return formatText
	case len(formats) == 1:
		return formats[0]
	case i < len(formats):
		return formats[i]
	}
	return formatText
}

// arguments are the parameters as text.
func (p *portal) arguments() []string {
	var texts []string
	for i, v := range p.args {
		var oid uint32
		if i < len(p.statement.oids) {
			oid = p.statement.oids[i]
		}
		text, _ := valueText(oid, format(p.formats, i), v)
		texts = append(texts, text)
	}
	return texts
}

// columns describe the rows of the portal: its own description when the client
// asked for it, else the statement's with the formats of the Bind.
func (p *portal) columns() []pgproto3.FieldDescription {
	if p.fields != nil {
		return p.fields
	}
	fields := append([]pgproto3.FieldDescription(nil), p.statement.fields...)
	for i := range fields {
		fields[i].Format = format(p.results, i)
	}
	return fields
}

// answersRows says whether the statement of the portal has columns.
func (p *portal) answersRows() bool {
	return p != nil && (p.fields != nil || p.statement != nil) && len(p.columns()) > 0
}

// column is a value of a row: numbers bare, text in quotes.
func column(f pgproto3.FieldDescription, v []byte) string {
	text, bare := valueText(f.DataTypeOID, f.Format, v)
	if bare {
		return text
	}
	return quote(text)
}

// valueText decodes a value as far as its type is known; bare tells that it
// would not be in quotes in SQL.
func valueText(oid uint32, format int16, v []byte) (text string, bare bool) {
	if v == nil {
		return "NULL", true
	}
	if format == formatText {
		switch oid {
		case pgtype.Int2OID, pgtype.Int4OID, pgtype.Int8OID, pgtype.Float4OID, pgtype.Float8OID, pgtype.NumericOID, pgtype.OIDOID:
			return string(v), true
		case pgtype.BoolOID:
			return map[string]string{"t": "true", "f": "false"}[string(v)], true
		}
		return string(v), false
	}
	decoded, ok := decodeBinary(oid, v)
	if !ok {
		return fmt.Sprintf(`\x%x`, v), true
	}
	switch x := decoded.(type) {
	case int64:
		return strconv.FormatInt(x, 10), true
	case float64:
		return strconv.FormatFloat(x, 'g', -1, 64), true
	case bool:
		return strconv.FormatBool(x), true
	case time.Time:
		return x.UTC().Format(time.RFC3339Nano), false
	case []byte:
		return fmt.Sprintf(`\x%x`, x), true
	case string:
		return x, oid == pgtype.NumericOID
	}
	return fmt.Sprint(decoded), false
}

// decodeBinary leaves the decoding to pgtype, whose maps are not made for use by
// many at once.
func decodeBinary(oid uint32, v []byte) (decoded any, ok bool) {
	defer func() {
		if recover() != nil {
			decoded, ok = nil, false
		}
	}()
	m := maps.Get().(*pgtype.Map)
	defer maps.Put(m)
	t, known := m.TypeForOID(oid)
	if !known {
		return nil, false
	}
	decoded, err := t.Codec.DecodeDatabaseSQLValue(m, oid, formatBinary, v)
	return decoded, err == nil && decoded != nil
}

package sqlsubset

import (
	"encoding/binary"
	"reflect"
	"strconv"
	"strings"
)

// typ is the type of an expression.
type typ uint8

const (
	typUnknown typ = iota // a string literal, NULL or parameter not yet resolved
	typInt4               // integer literals only; no column has it
	typInt8
	typNumeric // what sum(bigint) answers; held as an int64 here
	typText
	typBool
)

func (t typ) String() string {
	return [...]string{"unknown", "integer", "bigint", "numeric", "text", "boolean"}[t]
}

func (t typ) number() bool { return t == typInt4 || t == typInt8 || t == typNumeric }

// value is one SQL value. The zero value is NULL. Values are comparable with ==.
type value struct {
	kind valueKind
	n    int64 // kindInt, and kindBool as 0 or 1
	s    string
}

type valueKind uint8

const (
	kindNull valueKind = iota
	kindInt
	kindText
	kindBool
)

func intValue(n int64) value   { return value{kind: kindInt, n: n} }
func textValue(s string) value { return value{kind: kindText, s: s} }
func boolValue(b bool) value {
	if b {
		return value{kind: kindBool, n: 1}
	}
	return value{kind: kindBool}
}

func (v value) null() bool   { return v.kind == kindNull }
func (v value) isTrue() bool { return v.kind == kindBool && v.n == 1 }

// compare orders two values of one type that are not NULL. Text compares
// byte by byte, as under the collation "C".
func compare(a, b value) int {
	switch {
	case a.kind == kindText:
		return strings.Compare(a.s, b.s)
	case a.n < b.n:
		return -1
	case a.n > b.n:
		return 1
	}
	return 0
}

// compareNulls orders values with NULL last.
func compareNulls(a, b value) int {
	switch {
	case a.null() && b.null():
		return 0
	case a.null():
		return 1
	case b.null():
		return -1
	}
	return compare(a, b)
}

// goValue is the value as the pgx driver hands it to database/sql.
func (v value) goValue(t typ) any {
	switch v.kind {
	case kindInt:
		if t == typNumeric {
			return strconv.FormatInt(v.n, 10)
		}
		return v.n
	case kindText:
		return v.s
	case kindBool:
		return v.n == 1
	}
	return nil
}

// appendKey writes the value so that no two values, one after another, read alike.
func (v value) appendKey(b []byte) []byte {
	b = append(b, byte(v.kind))
	switch v.kind {
	case kindInt, kindBool:
		b = binary.AppendVarint(b, v.n)
	case kindText:
		b = binary.AppendUvarint(b, uint64(len(v.s)))
		b = append(b, v.s...)
	}
	return b
}

// display is the value as PostgreSQL writes it in an error's detail.
func (v value) display() string {
	switch v.kind {
	case kindInt:
		return strconv.FormatInt(v.n, 10)
	case kindText:
		return v.s
	case kindBool:
		return strconv.FormatBool(v.n == 1)
	}
	return "null"
}

// argValue turns an argument into a value of the type its parameter has, as
// pgx does: integers for numbers, strings for text, and a string for a number
// is sent as text for the server to read.
func argValue(arg any, t typ, param int) (value, error) {
	bad := &ArgumentError{Param: param, Type: t.String(), Arg: arg}
	if arg == nil {
		return value{}, nil
	}
	rv := reflect.ValueOf(arg)
	for rv.Kind() == reflect.Pointer {
		if rv.IsNil() {
			return value{}, nil
		}
		rv = rv.Elem()
	}
	switch rv.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n := rv.Int()
		if !t.number() || t == typInt4 && int64(int32(n)) != n {
			return value{}, bad
		}
		return intValue(n), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n := rv.Uint()
		if !t.number() || n > 1<<63-1 || t == typInt4 && n > 1<<31-1 {
			return value{}, bad
		}
		return intValue(int64(n)), nil
	case reflect.String:
		if t == typBool || t == typNumeric {
			return value{}, bad
		}
		if t == typText {
			return readText(rv.String(), typText)
		}
		return readText(rv.String(), t)
	case reflect.Bool:
		if t != typBool {
			return value{}, bad
		}
		return boolValue(rv.Bool()), nil
	}
	return value{}, bad
}

// readText reads a string as the input function of a type does.
func readText(s string, t typ) (value, error) {
	switch t {
	case typText, typUnknown:
		if strings.IndexByte(s, 0) >= 0 {
			return value{}, pgErr("22021", `invalid byte sequence for encoding "UTF8": 0x00`)
		}
		return textValue(s), nil
	case typInt4, typInt8:
		trimmed := strings.Trim(s, " \t\n\r\v\f")
		digits := strings.TrimLeft(trimmed, "+-")
		if len(trimmed)-len(digits) > 1 || digits == "" || strings.Trim(digits, "0123456789") != "" {
			return value{}, pgErr(codeBadText, `invalid input syntax for type %s: "%s"`, t, s)
		}
		bits := 64
		if t == typInt4 {
			bits = 32
		}
		n, err := strconv.ParseInt(trimmed, 10, bits)
		if err != nil {
			return value{}, pgErr(codeOutOfRange, `value "%s" is out of range for type %s`, s, t)
		}
		return intValue(n), nil
	}
	return value{}, pgErr(codeBadText, `invalid input syntax for type %s: "%s"`, t, s)
}

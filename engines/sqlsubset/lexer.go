package sqlsubset

import (
	"strings"
)

type tokenKind uint8

const (
	tokEnd tokenKind = iota
	tokWord
	tokQuoted // "identifier"
	tokNumber
	tokString
	tokParam
	tokOp
)

type token struct {
	kind tokenKind
	text string // folded for words, unquoted for strings and identifiers, digits for params
	pos  int
}

func isWordStart(c byte) bool { return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isDigit(c byte) bool     { return c >= '0' && c <= '9' }
func isWordPart(c byte) bool  { return isWordStart(c) || isDigit(c) || c == '$' }

// opChars are the characters PostgreSQL builds operators from. A run of them is
// one operator, so that "||" or "->>" is refused by its own name.
const opChars = "+-*/<>=~!@#%^&|`?"

// lex splits a statement into tokens, comments left out. The last token is tokEnd.
func lex(sql string) ([]token, error) {
	toks := make([]token, 0, 32)
	bad := func(what string, pos int) error { return &UnsupportedError{What: what, SQL: sql, Pos: pos} }
	for i := 0; i < len(sql); {
		c := sql[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f':
			i++
		case strings.HasPrefix(sql[i:], "--"):
			if n := strings.IndexByte(sql[i:], '\n'); n >= 0 {
				i += n + 1
			} else {
				i = len(sql)
			}
		case strings.HasPrefix(sql[i:], "/*"):
			depth := 0 // block comments nest in PostgreSQL
			for {
				if i >= len(sql) {
					return nil, bad("unterminated comment", start)
				}
				if strings.HasPrefix(sql[i:], "/*") {
					depth++
					i += 2
				} else if strings.HasPrefix(sql[i:], "*/") {
					depth--
					i += 2
				} else {
					i++
				}
				if depth == 0 {
					break
				}
			}
		case isWordStart(c):
			for i < len(sql) && isWordPart(sql[i]) {
				i++
			}
			if i < len(sql) && (sql[i] == '\'' || strings.HasPrefix(sql[i:], "&'") || strings.HasPrefix(sql[i:], `&"`)) {
				return nil, bad("string prefix "+strings.ToUpper(sql[start:i])+"'…'", start)
			}
			if i < len(sql) && sql[i] >= 0x80 {
				return nil, bad("identifier with a non-ASCII letter", start)
			}
			toks = append(toks, token{tokWord, strings.ToLower(sql[start:i]), start})
		case isDigit(c) || c == '.' && i+1 < len(sql) && isDigit(sql[i+1]):
			for i < len(sql) && (isWordPart(sql[i]) || sql[i] == '.') {
				if !isDigit(sql[i]) {
					return nil, bad("number that is not a plain integer", start)
				}
				i++
			}
			toks = append(toks, token{tokNumber, sql[start:i], start})
		case c == '\'' || c == '"':
			var b strings.Builder
			for i++; ; i++ {
				if i >= len(sql) {
					return nil, bad("unterminated quote", start)
				}
				if sql[i] == 0 {
					return nil, bad("zero byte", i)
				}
				if sql[i] == c {
					if i+1 < len(sql) && sql[i+1] == c {
						i++
					} else {
						break
					}
				}
				b.WriteByte(sql[i])
			}
			i++
			kind := tokString
			if c == '"' {
				kind = tokQuoted
				if b.Len() == 0 || b.Len() > 63 {
					return nil, bad("identifier of no or more than 63 bytes", start)
				}
			}
			toks = append(toks, token{kind, b.String(), start})
		case c == '$':
			for i++; i < len(sql) && isDigit(sql[i]); i++ {
			}
			if i == start+1 || i < len(sql) && isWordPart(sql[i]) {
				return nil, bad("dollar quoting", start)
			}
			toks = append(toks, token{tokParam, sql[start+1 : i], start})
		case strings.IndexByte("(),;.[]:", c) >= 0:
			i++
			if c == ':' && i < len(sql) && (sql[i] == ':' || sql[i] == '=') {
				i++
			}
			toks = append(toks, token{tokOp, sql[start:i], start})
		case strings.IndexByte(opChars, c) >= 0:
			for i < len(sql) && strings.IndexByte(opChars, sql[i]) >= 0 &&
				!strings.HasPrefix(sql[i:], "--") && !strings.HasPrefix(sql[i:], "/*") {
				i++
			}
			// As in PostgreSQL: an operator of more than one character does not
			// end in + or - unless it holds one of ~ ! @ # % ^ & | ` ?.
			op := sql[start:i]
			for len(op) > 1 && (op[len(op)-1] == '+' || op[len(op)-1] == '-') && !strings.ContainsAny(op, "~!@#%^&|`?") {
				op = op[:len(op)-1]
			}
			i = start + len(op)
			toks = append(toks, token{tokOp, op, start})
		default:
			return nil, bad("character "+quoteByte(sql[i:]), start)
		}
	}
	for _, t := range toks {
		if t.kind == tokWord && len(t.text) > 63 {
			return nil, bad("identifier of no or more than 63 bytes", t.pos)
		}
	}
	return append(toks, token{tokEnd, "", len(sql)}), nil
}

func quoteByte(s string) string {
	for _, r := range s {
		return "'" + string(r) + "'"
	}
	return ""
}

// canonical writes tokens so that statements that differ only in spacing, case
// and comments read the same. It goes into DB.Key for statements that wait.
func canonical(toks []token) string {
	var b strings.Builder
	for i, t := range toks {
		if t.kind == tokEnd {
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		switch t.kind {
		case tokString:
			b.WriteString("'" + strings.ReplaceAll(t.text, "'", "''") + "'")
		case tokQuoted:
			b.WriteString(`"` + strings.ReplaceAll(t.text, `"`, `""`) + `"`)
		case tokParam:
			b.WriteString("$" + t.text)
		default:
			b.WriteString(t.text)
		}
	}
	return b.String()
}

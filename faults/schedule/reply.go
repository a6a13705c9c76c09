package schedule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// ReplyKind says what a reply is.
type ReplyKind uint8

// The kinds of reply, of Redis, of PostgreSQL, or of both.
const (
	None    ReplyKind = iota
	Nil               // nil; in a row, null
	Int               // 3
	Text              // "1", a bulk string; in a row, any value that is neither a number, a boolean nor null
	Status            // OK
	Bool              // true, false: only in a row
	Error             // error NOSCRIPT, error 23505: only the code, since servers word the rest differently
	List              // [1 "a" nil]
	Row               // (1, "a", null)
	Rows              // (1, 0) (2, 0), or no rows
	Count             // 2 rows: how many a statement without a result changed
	Tag               // COMMIT: what PostgreSQL answers to a statement that has no rows to count
	Blocked           // the statement waits for another transaction
)

// Reply is a server's answer as a person would write it. Two replies are the
// same when their String is.
type Reply struct {
	Kind  ReplyKind
	Int   int64   // Int and Count
	Text  string  // Text, Status, Error and Tag; "true" or "false" for Bool
	Items []Reply // of a List, a Row, or the Row replies of Rows
}

var (
	statusWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9_-]*$`)
	codeWord   = regexp.MustCompile(`^[A-Za-z0-9_]+$`)
	tagWord    = regexp.MustCompile(`^[A-Z][A-Z ]*[A-Z]$`)
)

func (r Reply) String() string {
	switch r.Kind {
	case Nil:
		return "nil"
	case Int:
		return strconv.FormatInt(r.Int, 10)
	case Text:
		return strconv.Quote(r.Text)
	case Bool:
		return r.Text
	case Status:
		if statusWord.MatchString(r.Text) {
			return r.Text
		}
		return "status " + strconv.Quote(r.Text)
	case Error:
		if codeWord.MatchString(r.Text) {
			return "error " + r.Text
		}
		return "error " + strconv.Quote(r.Text)
	case List:
		return "[" + join(r.Items, " ") + "]"
	case Row:
		return "(" + strings.ReplaceAll(join(r.Items, "\x00"), "\x00", ", ") + ")"
	case Rows:
		if len(r.Items) == 0 {
			return "no rows"
		}
		return join(r.Items, " ")
	case Count:
		if r.Int == 1 {
			return "1 row"
		}
		return strconv.FormatInt(r.Int, 10) + " rows"
	case Tag:
		return r.Text
	case Blocked:
		return "blocked"
	}
	return ""
}

func join(items []Reply, by string) string {
	words := make([]string, len(items))
	for i, item := range items {
		words[i] = item.String()
		if item.Kind == Nil && by == "\x00" {
			words[i] = "null"
		}
	}
	return strings.Join(words, by)
}

// cutReply reads a reply off the beginning of a line.
func cutReply(line string, server Server) (r Reply, rest string, err error) {
	first, rest := cutToken(line)
	if first == "" {
		return Reply{}, "", fmt.Errorf("=> without a reply")
	}
	switch {
	case first == "error":
		var code string
		if code, rest = cutToken(rest); code == "" || slices.Contains(separators, code) {
			return Reply{}, "", fmt.Errorf("error without its code")
		}
		if code[0] == '"' {
			if code, err = strconv.Unquote(code); err != nil {
				return Reply{}, "", fmt.Errorf("bad quotes in the code of an error")
			}
		} else if !codeWord.MatchString(code) {
			return Reply{}, "", fmt.Errorf("%q is no code of an error", code)
		}
		return Reply{Kind: Error, Text: code}, rest, nil
	case server == SQL:
		return cutSQLReply(line)
	case first == "status":
		text, rest := cutToken(rest)
		text, err := strconv.Unquote(text)
		if err != nil {
			return Reply{}, "", fmt.Errorf("status without a text in quotes")
		}
		return Reply{Kind: Status, Text: text}, rest, nil
	}
	return cutValue(line)
}

// cutValue reads a value of Redis.
func cutValue(line string) (r Reply, rest string, err error) {
	line = trimBlank(line)
	if strings.HasPrefix(line, "[") {
		r, rest = Reply{Kind: List}, trimBlank(line[1:])
		for {
			if rest == "" {
				return Reply{}, "", fmt.Errorf("a list without its ]")
			}
			if rest[0] == ']' {
				return r, rest[1:], nil
			}
			var item Reply
			if item, rest, err = cutReply(rest, Redis); err != nil {
				return Reply{}, "", err
			}
			r.Items, rest = append(r.Items, item), trimBlank(rest)
		}
	}
	token, rest := cutToken(line)
	switch {
	case token == "nil":
		return Reply{Kind: Nil}, rest, nil
	case strings.HasPrefix(token, `"`):
		text, err := strconv.Unquote(token)
		if err != nil {
			return Reply{}, "", fmt.Errorf("bad quotes: %s", token)
		}
		return Reply{Kind: Text, Text: text}, rest, nil
	case isInteger(token):
		n, err := strconv.ParseInt(token, 10, 64)
		if err != nil {
			return Reply{}, "", fmt.Errorf("%s is too large a number", token)
		}
		return Reply{Kind: Int, Int: n}, rest, nil
	case statusWord.MatchString(token):
		return Reply{Kind: Status, Text: token}, rest, nil
	}
	return Reply{}, "", fmt.Errorf(`%q is no reply; there are nil, 3, "text", OK, [1 "a"], error NOSCRIPT`, token)
}

func cutSQLReply(line string) (r Reply, rest string, err error) {
	line = trimBlank(line)
	if strings.HasPrefix(line, "(") {
		r, rest = Reply{Kind: Rows}, line
		for strings.HasPrefix(rest, "(") {
			var row Reply
			if row, rest, err = cutRow(rest[1:]); err != nil {
				return Reply{}, "", err
			}
			r.Items, rest = append(r.Items, row), trimBlank(rest)
		}
		return r, rest, nil
	}
	token, rest := cutToken(line)
	if token == "blocked" {
		return Reply{Kind: Blocked}, rest, nil
	}
	second, after := cutToken(rest)
	switch {
	case token == "no" && second == "rows":
		return Reply{Kind: Rows}, after, nil
	case isInteger(token) && (token == "1" && second == "row" || token != "1" && second == "rows"):
		n, err := strconv.ParseInt(token, 10, 64)
		if err != nil || n < 0 {
			return Reply{}, "", fmt.Errorf("%s is no number of rows", token)
		}
		return Reply{Kind: Count, Int: n}, after, nil
	case statusWord.MatchString(token):
		tag := token
		for {
			word, after := cutToken(rest)
			if !tagWord.MatchString(tag + " " + word) {
				break
			}
			tag, rest = tag+" "+word, after
		}
		if tagWord.MatchString(tag) {
			return Reply{Kind: Tag, Text: tag}, rest, nil
		}
	}
	return Reply{}, "", fmt.Errorf(`%q is no reply of the database; there are (1, "a"), no rows, 2 rows, COMMIT, blocked, error 23505`, token)
}

// cutRow reads the values of a row after its opening bracket.
func cutRow(line string) (r Reply, rest string, err error) {
	r, rest = Reply{Kind: Row}, trimBlank(line)
	if strings.HasPrefix(rest, ")") {
		return r, rest[1:], nil
	}
	for {
		token, after := cutToken(rest)
		var v Reply
		switch {
		case token == "null":
			v.Kind = Nil
		case token == "true" || token == "false":
			v = Reply{Kind: Bool, Text: token}
		default:
			if v, after, err = cutValue(rest); err != nil || v.Kind != Int && v.Kind != Text {
				return Reply{}, "", fmt.Errorf("%q is no value of a row", token)
			}
		}
		r.Items, rest = append(r.Items, v), trimBlank(after)
		switch {
		case strings.HasPrefix(rest, ","):
			rest = trimBlank(rest[1:])
		case strings.HasPrefix(rest, ")"):
			return r, rest[1:], nil
		default:
			return Reply{}, "", fmt.Errorf("a row without its )")
		}
	}
}

// cutToken takes one token off the beginning of a line: a text in quotes, or
// what reaches to a blank or a bracket or comma that closes.
func cutToken(line string) (token, rest string) {
	line = trimBlank(line)
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		return quoted, line[len(quoted):]
	}
	for i := range len(line) {
		if isBlank(line[i]) || i > 0 && strings.IndexByte("]),", line[i]) >= 0 {
			return line[:i], line[i:]
		}
	}
	return line, ""
}

func trimBlank(s string) string { return strings.TrimLeft(s, " \t") }

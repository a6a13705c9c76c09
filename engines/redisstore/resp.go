package redisstore

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// AppendCommand appends args as a RESP array of bulk strings, the form in
// which clients send commands.
func AppendCommand(b []byte, args []string) []byte {
	b = append(b, '*')
	b = strconv.AppendInt(b, int64(len(args)), 10)
	b = append(b, "\r\n"...)
	for _, a := range args {
		b = append(b, '$')
		b = strconv.AppendInt(b, int64(len(a)), 10)
		b = append(b, "\r\n"...)
		b = append(b, a...)
		b = append(b, "\r\n"...)
	}
	return b
}

// ReadCommand reads one command as clients send it. io.EOF means that the
// stream ended between two commands.
func ReadCommand(r *bufio.Reader) ([]string, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	n, err := length(head, '*')
	if err != nil {
		return nil, err
	}
	args := make([]string, 0, min(n, 64))
	for range n {
		head, err := r.ReadString('\n')
		if err != nil {
			return nil, noEOF(err)
		}
		size, err := length(head, '$')
		if err != nil {
			return nil, err
		}
		arg, err := io.ReadAll(io.LimitReader(r, int64(size)))
		if err != nil || len(arg) < size {
			return nil, noEOF(err)
		}
		if crlf, err := r.ReadString('\n'); err != nil || crlf != "\r\n" {
			return nil, fmt.Errorf("argument of %d bytes is not followed by CRLF", size)
		}
		args = append(args, string(arg))
	}
	return args, nil
}

func noEOF(err error) error {
	if err == nil || err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

const maxLength = 64 << 20

func length(head string, kind byte) (int, error) {
	head = strings.TrimSuffix(head, "\r\n")
	if head == "" || head[0] != kind {
		return 0, fmt.Errorf("expected %q and a length, got %q", kind, head)
	}
	n, err := strconv.Atoi(head[1:])
	if err != nil || n < 0 || n > maxLength {
		return 0, fmt.Errorf("bad length %q", head)
	}
	return n, nil
}

// ReadReply reads one RESP2 reply and returns its bytes as they came.
func ReadReply(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	if len(line) < 3 || !strings.HasSuffix(line, "\r\n") {
		return "", fmt.Errorf("malformed reply %q", line)
	}
	switch line[0] {
	case '+', '-', ':':
		return line, nil
	case '$', '*':
	default:
		return "", fmt.Errorf("reply of unknown type %q", line)
	}
	n, err := strconv.Atoi(line[1 : len(line)-2])
	if err != nil || n < -1 || n > maxLength {
		return "", fmt.Errorf("bad length %q", line)
	}
	if n < 0 {
		return line, nil
	}
	if line[0] == '$' {
		body, err := io.ReadAll(io.LimitReader(r, int64(n)+2))
		if err != nil || len(body) < n+2 {
			return "", noEOF(err)
		}
		return line + string(body), nil
	}
	var b strings.Builder
	b.WriteString(line)
	for range n {
		part, err := ReadReply(r)
		if err != nil {
			return "", noEOF(err)
		}
		b.WriteString(part)
	}
	return b.String(), nil
}

// value is a parsed reply: string, int64, nil, error or []any.
func parseReply(raw string) (any, error) {
	r := bufio.NewReader(strings.NewReader(raw))
	return parseFrom(r)
}

// replyError is an error reply, which is a value and not a failure here.
type replyError string

func parseFrom(r *bufio.Reader) (any, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return nil, noEOF(err)
	}
	body := strings.TrimSuffix(line, "\r\n")
	if body == "" {
		return nil, fmt.Errorf("empty reply")
	}
	switch body[0] {
	case '+':
		return body[1:], nil
	case '-':
		return replyError(body[1:]), nil
	case ':':
		return strconv.ParseInt(body[1:], 10, 64)
	case '$':
		n, err := strconv.Atoi(body[1:])
		if err != nil || n < 0 {
			return nil, err
		}
		text := make([]byte, n+2)
		if _, err := io.ReadFull(r, text); err != nil {
			return nil, noEOF(err)
		}
		return string(text[:n]), nil
	case '*':
		n, err := strconv.Atoi(body[1:])
		if err != nil || n < 0 {
			return nil, err
		}
		list := make([]any, n)
		for i := range list {
			if list[i], err = parseFrom(r); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	return nil, fmt.Errorf("reply of unknown type %q", body)
}

// Pretty shows a raw reply as a person would write it: nil, 1, "text", OK,
// (error) …, [a b].
func Pretty(raw string) string {
	v, err := parseReply(raw)
	if err != nil {
		return strconv.Quote(raw)
	}
	if strings.HasPrefix(raw, "+") {
		return fmt.Sprint(v)
	}
	return pretty(v)
}

func pretty(v any) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case int64:
		return strconv.FormatInt(v, 10)
	case replyError:
		return "(error) " + string(v)
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = pretty(v[i])
		}
		return "[" + strings.Join(parts, " ") + "]"
	case string:
		return strconv.Quote(v)
	}
	return fmt.Sprint(v)
}

// ErrorClass is a reply as far as a scheme may look: of an error only the code,
// the first word, since servers word the rest differently.
func ErrorClass(raw string) string {
	if !strings.HasPrefix(raw, "-") {
		return raw
	}
	code, _, _ := strings.Cut(strings.TrimSuffix(raw, "\r\n"), " ")
	return code
}

// RenameReply applies f to every text of a raw reply and keeps it well formed.
func RenameReply(raw string, f func(string) string) string {
	if raw == "" {
		return raw
	}
	v, err := parseReply(raw)
	if err != nil {
		return raw
	}
	return string(appendReply(nil, raw[0], v, f))
}

func appendReply(b []byte, kind byte, v any, f func(string) string) []byte {
	switch v := v.(type) {
	case nil:
		if kind == '*' {
			return append(b, "*-1\r\n"...)
		}
		return append(b, "$-1\r\n"...)
	case int64:
		return append(strconv.AppendInt(append(b, ':'), v, 10), "\r\n"...)
	case replyError:
		return append(append(append(b, '-'), f(string(v))...), "\r\n"...)
	case []any:
		b = append(strconv.AppendInt(append(b, '*'), int64(len(v)), 10), "\r\n"...)
		for _, item := range v {
			b = appendReply(b, '$', item, f)
		}
		return b
	case string:
		text := f(v)
		if kind == '+' {
			return append(append(append(b, '+'), text...), "\r\n"...)
		}
		return append(append(append(strconv.AppendInt(append(b, '$'), int64(len(text)), 10), "\r\n"...), text...), "\r\n"...)
	}
	return b
}

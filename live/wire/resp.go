package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/redcon"

	"stockproof/faults/schedule"
)

// Limits on one RESP value, besides maxMessage. Redis itself takes no more
// arguments than this, and nothing we know nests deeper.
const (
	maxLine     = 64 << 10
	maxDepth    = 64
	maxElements = 1 << 20
)

// respScanner finds the end of the next RESP 2 or 3 value in bytes that arrive
// in pieces. It looks at each byte of structure once, however the pieces are
// cut, and allocates nothing that a length in the stream asks for.
//
// It exists because no maintained Go library does this for all of RESP 3 with
// the bytes kept: go-redis and rueidis keep theirs internal, redcon knows RESP
// 2, miniredis/proto lacks five types, and radix has had no release since 2023.
// What it finds is decoded by redcon, as far as that knows the type.
type respScanner struct {
	pos  int   // end of what is complete
	line int   // where to go on looking for the end of a line
	open []int // values missing in each aggregate under way, outermost first
}

// scan returns the length of the value at the start of b, 0 when it is not
// complete. After a 0 it must be called with the same bytes and more.
func (s *respScanner) scan(b []byte) (int, error) {
	for {
		from := max(s.line, s.pos)
		i := bytes.IndexByte(b[min(from, len(b)):], '\n')
		if i < 0 {
			s.line = len(b)
			if len(b)-s.pos > maxLine {
				return 0, fmt.Errorf("line of more than %d bytes", maxLine)
			}
			return 0, nil
		}
		end := from + i + 1
		if end-s.pos < 3 || b[end-2] != '\r' {
			return 0, fmt.Errorf("bad line %.40q", b[s.pos:end])
		}
		body := b[s.pos+1 : end-2]
		children := 0
		switch kind := b[s.pos]; kind {
		case '+', '-', ':', ',', '#', '(', '_':
			// A line is all there is to it.
		case '$', '!', '=':
			n, err := length(body, maxMessage)
			if err != nil {
				return 0, err
			}
			if n < 0 {
				if kind != '$' {
					return 0, fmt.Errorf("null of type %q", kind)
				}
				break
			}
			if len(b)-end < n+2 {
				if n > maxMessage-end {
					return 0, fmt.Errorf("value of more than %d bytes", maxMessage)
				}
				// The length line is read again when there is more; that is
				// a few bytes.
				s.line = end - 1
				return 0, nil
			}
			if b[end+n] != '\r' || b[end+n+1] != '\n' {
				return 0, errors.New("bulk string without its CRLF")
			}
			end += n + 2
		case '*', '~', '>', '%', '|':
			n, err := length(body, maxElements)
			if err != nil {
				return 0, err
			}
			if n < 0 && kind != '*' {
				return 0, fmt.Errorf("null of type %q", kind)
			}
			children = max(n, 0)
			switch kind {
			case '%':
				children *= 2
			case '|':
				children = children*2 + 1 // and the value it is an attribute of
			}
		default:
			return 0, fmt.Errorf("unknown type %q", kind)
		}
		if end > maxMessage {
			return 0, fmt.Errorf("value of more than %d bytes", maxMessage)
		}
		s.pos, s.line = end, end
		if children > 0 {
			if len(s.open) == maxDepth {
				return 0, fmt.Errorf("nested more than %d deep", maxDepth)
			}
			s.open = append(s.open, children)
			continue
		}
		for len(s.open) > 0 {
			s.open[len(s.open)-1]--
			if s.open[len(s.open)-1] > 0 {
				break
			}
			s.open = s.open[:len(s.open)-1]
		}
		if len(s.open) == 0 {
			n := s.pos
			*s = respScanner{open: s.open}
			return n, nil
		}
	}
}

// length reads a decimal length; -1 is null.
func length(b []byte, limit int) (int, error) {
	n, err := strconv.Atoi(string(b))
	if err != nil || n < -1 || (len(b) > 0 && b[0] == '+') {
		return 0, fmt.Errorf("bad length %.40q", b)
	}
	if n > limit {
		return 0, fmt.Errorf("length %d is more than %d", n, limit)
	}
	return n, nil
}

// parseCommand decodes one complete command; nil for the empty ones that
// servers pass over.
func parseCommand(raw []byte) (argv []string, err error) {
	// redcon indexes with a length that it has not looked at ("$-2"). The
	// scanner lets no such length through; this is for what it may miss.
	defer func() {
		if p := recover(); p != nil {
			argv, err = nil, fmt.Errorf("command %.40q: %v", raw, p)
		}
	}()
	if bytes.Equal(raw, []byte("*-1\r\n")) {
		return nil, nil
	}
	if bytes.Contains(raw, []byte("$-")) && hasNullArgument(raw) {
		return nil, errors.New("null as an argument")
	}
	complete, args, kind, rest, err := redcon.ReadNextCommand(raw, nil)
	switch {
	case err != nil:
		return nil, fmt.Errorf("command: %w", err)
	case !complete || kind != redcon.Redis || len(rest) > 0:
		return nil, fmt.Errorf("not one command: %.40q", raw)
	}
	for _, a := range args {
		argv = append(argv, string(a))
	}
	return argv, nil
}

// hasNullArgument walks the elements of a command without redcon.
func hasNullArgument(raw []byte) bool {
	b := raw[bytes.IndexByte(raw, '\n')+1:]
	for len(b) > 0 && b[0] == '$' {
		end := bytes.IndexByte(b, '\n') + 1
		n, err := length(b[1:end-2], maxMessage)
		if err != nil || n < 0 {
			return true
		}
		b = b[end+n+2:]
	}
	return false
}

// value is a decoded view of one complete RESP value.
type value struct {
	kind     byte // of the value itself, behind any attributes
	data     []byte
	null     bool
	children []value
	attrs    bool
}

// parseValue decodes what the scanner found complete, and returns what is
// behind it. Depth is bounded by the scanner.
func parseValue(b []byte) (value, []byte) {
	end := bytes.IndexByte(b, '\n') + 1
	v := value{kind: b[0], data: b[1 : end-2]}
	switch v.kind {
	case '+', '-', ':':
		_, r := redcon.ReadNextRESP(b[:end])
		if r.Type != 0 {
			v.data = r.Data
		}
		return v, b[end:]
	case ',', '#', '(':
		return v, b[end:]
	case '_':
		v.null = true
		return v, b[end:]
	case '$', '!', '=':
		n, _ := length(v.data, maxMessage)
		if n < 0 {
			v.null = true
			return v, b[end:]
		}
		v.data = b[end : end+n]
		return v, b[end+n+2:]
	}
	n, _ := length(v.data, maxElements)
	if n < 0 {
		v.null = true
		return v, b[end:]
	}
	rest := b[end:]
	if v.kind == '%' || v.kind == '|' {
		n *= 2
	}
	for range n {
		var c value
		c, rest = parseValue(rest)
		v.children = append(v.children, c)
	}
	if v.kind == '|' {
		v, rest = parseValue(rest)
		v.attrs = true
	}
	return v, rest
}

// text is the value as a person would write it.
func (v value) text() string {
	var b strings.Builder
	v.write(&b)
	return b.String()
}

func (v value) write(b *strings.Builder) {
	if b.Len() > 64*maxText {
		b.WriteString("…")
		return
	}
	switch {
	case v.null:
		b.WriteString("nil")
	case v.kind == '$':
		b.WriteString(quote(string(v.data)))
	case v.kind == '=':
		// A verbatim string begins with its format: txt:
		d := v.data
		if len(d) >= 4 && d[3] == ':' {
			d = d[4:]
		}
		b.WriteString(quote(string(d)))
	case v.kind == '#':
		b.WriteString(map[string]string{"t": "true", "f": "false"}[string(v.data)])
	case v.kind == '%':
		b.WriteByte('{')
		for i, c := range v.children {
			if i > 0 {
				b.WriteString(map[bool]string{true: ", ", false: ": "}[i%2 == 0])
			}
			c.write(b)
		}
		b.WriteByte('}')
	case v.kind == '*' || v.kind == '~' || v.kind == '>':
		b.WriteByte('[')
		for i, c := range v.children {
			if i > 0 {
				b.WriteString(", ")
			}
			c.write(b)
		}
		b.WriteByte(']')
	default:
		b.Write(v.data[:min(len(v.data), maxText)])
	}
}

// isError tells whether the reply is an error.
func (v value) isError() bool { return v.kind == '-' || v.kind == '!' }

// inPairs is the reply to a command as RESP 2 would nest it. Most maps of RESP 3
// were flat lists before; what streams hold was a list of pairs.
func (v value) inPairs(argv []string) value {
	if v.kind != '%' || len(argv) == 0 || !strings.EqualFold(argv[0], "XREAD") && !strings.EqualFold(argv[0], "XREADGROUP") {
		return v
	}
	list := value{kind: '*'}
	for i := 0; i+1 < len(v.children); i += 2 {
		list.children = append(list.children, value{kind: '*', children: v.children[i : i+2]})
	}
	return list
}

// answer is the value as a schedule writes it: what RESP 3 has more types for
// stands as RESP 2 would send it, of an error the code alone.
func (v value) answer() schedule.Reply {
	switch {
	case v.null:
		return schedule.Reply{Kind: schedule.Nil}
	case v.isError():
		code, _, _ := strings.Cut(string(v.data), " ")
		return schedule.Reply{Kind: schedule.Error, Text: code}
	case v.kind == '+':
		return schedule.Reply{Kind: schedule.Status, Text: string(v.data)}
	case v.kind == '#':
		return schedule.Reply{Kind: schedule.Int, Int: map[string]int64{"t": 1}[string(v.data)]}
	case v.kind == '=' && len(v.data) >= 4:
		return schedule.Reply{Kind: schedule.Text, Text: string(v.data[4:])}
	case v.kind == ':':
		if n, err := strconv.ParseInt(string(v.data), 10, 64); err == nil {
			return schedule.Reply{Kind: schedule.Int, Int: n}
		}
	case v.kind == '*' || v.kind == '~' || v.kind == '>' || v.kind == '%':
		list := schedule.Reply{Kind: schedule.List}
		for _, c := range v.children {
			list.Items = append(list.Items, c.answer())
		}
		return list
	}
	return schedule.Reply{Kind: schedule.Text, Text: string(v.data)}
}

package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a file: of one line in bytes, and of units, so that no sum over a
// schedule wraps around and makes a wrong amount look right.
const (
	maxLine  = 1 << 20
	maxUnits = 1 << 40
)

// ReadFile reads a schedule. The error of a bad line is a *LineError.
func ReadFile(path string) (*Schedule, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return Parse(f, path)
}

// Parse reads a schedule; name stands for the file in errors. The error of a
// bad line is a *LineError. What it accepts makes sense in itself: clients are
// declared, a paused one does nothing until it resumes, only what was delayed
// arrives. Whether it is what happens, a replay tells.
func Parse(r io.Reader, name string) (*Schedule, error) {
	p := &parser{name: name, s: &Schedule{Notes: map[string]Note{}}, asked: map[string]asked{}, begun: map[string]int{}}
	if err := p.read(r); err != nil {
		return nil, err
	}
	if err := p.parse(); err != nil {
		return nil, err
	}
	return p.s, nil
}

type sourceLine struct {
	text string
	note Note
}

type parser struct {
	name  string
	lines []sourceLine
	after Note // what follows the last line
	last  int  // number of the last line
	at    int
	s     *Schedule
	asked map[string]asked // by client

	servers servers
	begun   map[string]int // operations of jobs, by client
}

func (p *parser) errorAt(line int, format string, args ...any) error {
	return &LineError{p.name, line, fmt.Sprintf(format, args...)}
}

// read splits the input into lines and takes comments off the whole ones.
func (p *parser) read(r io.Reader) error {
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 64*1024), maxLine)
	var above []string
	n := 0
	for in.Scan() {
		n++
		text := in.Text()
		if n == 1 {
			text = strings.TrimPrefix(text, "\ufeff") // editors on Windows
		}
		text = strings.TrimRight(text, " \t\r")
		if !utf8.ValidString(text) {
			return p.errorAt(n, "not UTF-8")
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\t' }) {
			return p.errorAt(n, "a control character in it")
		}
		bare := trimBlank(text)
		if bare == "" || bare[0] == '#' {
			above = append(above, bare)
			continue
		}
		p.lines = append(p.lines, sourceLine{bare, Note{Line: n, Above: above}})
		above = nil
	}
	if errors.Is(in.Err(), bufio.ErrTooLong) {
		return p.errorAt(n+1, "longer than %d bytes", maxLine)
	}
	p.after, p.last = Note{Above: above}, n
	return in.Err()
}

// next takes a line that is not a step: its keyword and the rest.
func (p *parser) next(part, keyword string) (rest string, n int, err error) {
	if p.at == len(p.lines) {
		return "", p.last + 1, p.errorAt(p.last+1, "the file ends where %q was due", keyword)
	}
	l := &p.lines[p.at]
	text, comment := cutComment(l.text)
	word, rest := cutWord(text)
	if word != keyword {
		return "", l.note.Line, p.errorAt(l.note.Line, "%q where %q was due", word, keyword)
	}
	l.note.Beside = comment
	p.s.Notes[part] = l.note
	p.at++
	return trimBlank(rest), l.note.Line, nil
}

// peek is the keyword of the line to come, empty at the end.
func (p *parser) peek() string {
	if p.at == len(p.lines) {
		return ""
	}
	word, _ := cutWord(p.lines[p.at].text)
	return word
}

// cutComment takes the comment off the end of a line without texts in quotes.
func cutComment(text string) (before, comment string) {
	for i := 1; i < len(text); i++ {
		if text[i] == '#' && isBlank(text[i-1]) {
			return strings.TrimRight(text[:i], " \t"), text[i:]
		}
	}
	return text, ""
}

// cutWord takes a word off a line: a text in quotes, or what reaches to a
// blank.
func cutWord(line string) (word, rest string) {
	line = trimBlank(line)
	if quoted, err := strconv.QuotedPrefix(line); err == nil && line[0] == '"' {
		return quoted, line[len(quoted):]
	}
	if i := strings.IndexAny(line, " \t"); i >= 0 {
		return line[:i], line[i:]
	}
	return line, ""
}

// unword undoes word.
func unword(s string) (string, error) {
	if !strings.HasPrefix(s, `"`) {
		return s, nil
	}
	text, err := strconv.Unquote(s)
	if err != nil {
		return "", fmt.Errorf("bad quotes: %s", s)
	}
	return text, nil
}

func (p *parser) parse() error {
	for _, part := range []func() error{p.header, p.steps, p.footer} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

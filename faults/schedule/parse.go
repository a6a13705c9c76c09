package schedule

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"stockproof/model"
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
	p := &parser{name: name, s: &Schedule{Notes: map[string]Note{}}, asked: map[string]asked{}}
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

func (p *parser) header() error {
	rest, n, err := p.next(PartVersion, "schedule")
	if err != nil {
		return err
	}
	if rest != "v"+strconv.Itoa(Version) {
		return p.errorAt(n, "version %q; this program reads v%d", rest, Version)
	}
	if rest, n, err = p.next(PartScheme, "scheme"); err != nil {
		return err
	}
	if p.s.Scheme, err = unword(rest); err != nil || p.s.Scheme == "" || !strings.HasPrefix(rest, `"`) && strings.ContainsAny(rest, " \t") {
		return p.errorAt(n, "scheme: want one name")
	}
	if err := p.config(); err != nil {
		return err
	}
	if rest, n, err = p.next(PartStock, "stock"); err != nil {
		return err
	}
	article, units, _ := strings.Cut(rest, " ")
	sku, ok := strings.CutPrefix(article, "goods:")
	if !ok || sku == "" || word(sku) != sku {
		return p.errorAt(n, "stock: want goods:SKU and a number of units")
	}
	p.s.SKU = sku
	if p.s.Stock, err = parseUnits(trimBlank(units), 0); err != nil {
		return p.errorAt(n, "stock: %v", err)
	}
	for p.peek() == "client" {
		if err := p.client(); err != nil {
			return err
		}
	}
	if len(p.s.Clients) == 0 {
		_, n, err = p.next("", "client")
		if err == nil {
			err = p.errorAt(n, "no client")
		}
		return err
	}
	return p.rule(PartSteps)
}

func (p *parser) rule(part string) error {
	rest, n, err := p.next(part, rule)
	if err == nil && rest != "" {
		err = p.errorAt(n, "%q after %s", rest, rule)
	}
	return err
}

func (p *parser) config() error {
	rest, n, err := p.next(PartConfig, "config")
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(rest) {
		key, value, _ := strings.Cut(field, "=")
		var d time.Duration
		var into *time.Duration
		switch key {
		case "lease":
			into = &p.s.Times.Lease
		case "wait":
			into = &p.s.Times.Wait
		case "retry":
			into = &p.s.Times.Retry
		case "retries":
			if value != "off" && value != "default" {
				return p.errorAt(n, "config: retries=%s; there are off and default", value)
			}
			if p.s.Retries != "" {
				return p.errorAt(n, "config: retries twice")
			}
			p.s.Retries = value
			continue
		default:
			return p.errorAt(n, "config: %q; there are lease, wait, retry and retries", key)
		}
		if d, err = duration(value); err != nil {
			return p.errorAt(n, "config: %s: %v", key, err)
		}
		if *into != 0 {
			return p.errorAt(n, "config: %s twice", key)
		}
		*into = d
	}
	if p.s.Retries == "" {
		return p.errorAt(n, "config: retries is missing")
	}
	return nil
}

// duration is a time of at least one millisecond.
func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no time; write it as 300ms", text)
	case d < time.Millisecond || d%time.Millisecond != 0:
		return 0, fmt.Errorf("%s: want whole milliseconds, at least one", text)
	}
	return d, nil
}

func parseUnits(text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > maxUnits {
		return 0, fmt.Errorf("%q is no number of units from %d to %d", text, least, int64(maxUnits))
	}
	return n, nil
}

var (
	clientName  = regexp.MustCompile(`^[a-z][0-9]*$`)
	requestName = regexp.MustCompile(`^[a-z][0-9]*\.[1-9][0-9]*$`)
)

func (p *parser) client() error {
	name, _ := cutWord(strings.TrimPrefix(p.lines[p.at].text, "client"))
	rest, n, err := p.next(PartClient+name, "client")
	if err != nil {
		return err
	}
	c := Client{Name: name}
	if !clientName.MatchString(name) {
		return p.errorAt(n, "client %q: a name is a letter, or a letter and digits", name)
	}
	if _, taken := p.s.Client(name); taken {
		return p.errorAt(n, "client %s is there twice", name)
	}
	p.s.Clients = append(p.s.Clients, c) // its own requests can be submitted again
	at := len(p.s.Clients) - 1
	for _, text := range strings.Split(strings.TrimPrefix(rest, name), ",") {
		call, err := p.call(strings.Fields(text))
		if err != nil {
			return p.errorAt(n, "client %s: %v", name, err)
		}
		p.s.Clients[at].Calls = append(p.s.Clients[at].Calls, call)
	}
	return nil
}

func (p *parser) call(words []string) (Call, error) {
	const want = "want deduct N, restock N or read, and perhaps as another's request"
	var c Call
	if len(words) >= 2 && words[len(words)-2] == "as" {
		c.As = words[len(words)-1]
		words = words[:len(words)-2]
		if _, ok := p.request(c.As); !ok {
			return c, fmt.Errorf("there is no request %q above", c.As)
		}
	}
	if len(words) == 0 {
		return c, errors.New(want)
	}
	c.Op = model.Op(words[0])
	switch {
	case c.Op == model.Read && len(words) == 1:
		return c, nil
	case (c.Op == model.Deduct || c.Op == model.Restock) && len(words) == 2:
		var err error
		c.Qty, err = parseUnits(words[1], 1)
		return c, err
	}
	return c, errors.New(want)
}

// request finds the operation that is the owner of a request id.
func (p *parser) request(id string) (Call, bool) {
	if !requestName.MatchString(id) {
		return Call{}, false
	}
	name, number, _ := strings.Cut(id, ".")
	n, _ := strconv.Atoi(number)
	c, ok := p.s.Client(name)
	if !ok || n > len(c.Calls) || n < 1 {
		return Call{}, false
	}
	return c.Calls[n-1], c.Calls[n-1].As == ""
}

func (p *parser) footer() error {
	if err := p.rule(PartEnd); err != nil {
		return err
	}
	rest, n, err := p.next(PartOutcome, "outcome")
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(rest) {
		a, err := p.answer(field)
		if err != nil {
			return p.errorAt(n, "outcome: %v", err)
		}
		if slices.ContainsFunc(p.s.Outcomes, func(b Answer) bool { return a.Client == b.Client && a.N == b.N }) {
			return p.errorAt(n, "outcome: %s twice", p.s.Label(a))
		}
		p.s.Outcomes = append(p.s.Outcomes, a)
	}
	if rest, n, err = p.next(PartFinal, "stock"); err != nil {
		return err
	}
	if p.s.Final, err = parseStock(rest); err != nil {
		return p.errorAt(n, "%v", err)
	}
	if p.peek() == "orders" {
		if err := p.orders(); err != nil {
			return err
		}
	}
	if err := p.violates(); err != nil {
		return err
	}
	if p.at < len(p.lines) {
		return p.errorAt(p.lines[p.at].note.Line, "%q after the end", p.lines[p.at].text)
	}
	p.s.Notes[PartAfter] = p.after
	return nil
}

func parseStock(text string) (Stock, error) {
	if text == "unknown" {
		return Stock{}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxUnits || n < -maxUnits {
		return Stock{}, fmt.Errorf("stock %q: want a number of units, or unknown", text)
	}
	return Stock{true, n}, nil
}

func (p *parser) orders() error {
	rest, n, err := p.next(PartOrders, "orders")
	if err != nil {
		return err
	}
	list := []model.Order{}
	for rest != "" && rest != "none" {
		var field string
		field, rest = cutWord(rest)
		rest = trimBlank(rest)
		text, err := unword(field)
		i := strings.LastIndexByte(text, '=')
		if err != nil || i < 1 {
			return p.errorAt(n, "orders: %q: want request=units, or none", field)
		}
		o := model.Order{Request: text[:i]}
		if o.Qty, err = parseUnits(text[i+1:], 1); err != nil {
			return p.errorAt(n, "orders: %v", err)
		}
		list = append(list, o)
	}
	p.s.Orders = &list
	return nil
}

func (p *parser) violates() error {
	rest, n, err := p.next(PartViolates, "violates")
	if err != nil {
		return err
	}
	if rest == "nothing" {
		return nil
	}
	for _, field := range strings.Fields(rest) {
		name, amount, given := strings.Cut(field, "=")
		v := Violation{Property: model.Property(name), Amount: 1}
		if _, ok := v.Property.Info(); !ok {
			return p.errorAt(n, "violates: there is no property %q", name)
		}
		if given {
			if v.Amount, err = strconv.ParseInt(amount, 10, 64); err != nil {
				return p.errorAt(n, "violates: %s=%s: want a number", name, amount)
			}
		}
		if slices.ContainsFunc(p.s.Violates, func(w Violation) bool { return v.Property == w.Property }) {
			return p.errorAt(n, "violates: %s twice", name)
		}
		p.s.Violates = append(p.s.Violates, v)
	}
	if len(p.s.Violates) == 0 {
		return p.errorAt(n, "violates what? Write nothing if no law is broken")
	}
	return nil
}

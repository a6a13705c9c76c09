package live

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/wire"
	"stockproof/model"
)

// article is the SKU of a run in its schedule: every run has one of its own,
// and every schedule the same.
const article = "1001"

// Draft is the run as its proxies saw it, for explore.Fit to complete. Call it after
// Check. The error is a reply that no schedule can say.
func (r *Run) Draft() (*schedule.Draft, error) {
	d := &schedule.Draft{Before: map[int][]schedule.Event{}, At: map[int]time.Duration{}, Schedule: &schedule.Schedule{
		Scheme: r.Case.Entry.Scheme.Name(), Times: r.times, Retries: r.Case.Retries,
		SKU: article, Stock: r.Case.Workload.Stock,
	}}
	for i, calls := range r.Case.Workload.Clients {
		c := schedule.Client{Name: faults.ClientName(i)}
		for _, call := range calls {
			c.Calls = append(c.Calls, schedule.Call{Op: call.Op, Qty: call.Qty})
		}
		if len(c.Calls) > 0 { // one that came when the sale was over did nothing
			d.Clients = append(d.Clients, c)
		}
	}
	t := newTranslation(r.sku, r.Case.Placement.ThenCrash)
	if err := t.steps(d, r.Steps, r.marks); err != nil {
		return nil, fmt.Errorf("schedule of run %s: %w", r.Case.Name(), err)
	}
	ops := map[int]int{}
	for _, o := range r.answers() {
		ops[o.Client]++
		d.Outcomes = append(d.Outcomes, schedule.Answer{Client: faults.ClientName(o.Client), N: ops[o.Client], Outcome: o.Outcome, Value: o.Value})
	}
	d.Outcomes = append(d.Outcomes, r.Worked...)
	if r.Rest.Counter != nil {
		d.Final = schedule.Stock{Known: true, Units: *r.Rest.Counter}
	}
	d.Orders = t.orders(r.Rest.Orders)
	for _, f := range r.Findings {
		if f.Broken {
			d.Violates = append(d.Violates, schedule.Violation{Property: f.Property, Amount: f.Amount})
		}
	}
	return d, nil
}

// translation puts what crossed the wire into the words of schedules.
type translation struct {
	names  *strings.Replacer
	killed bool // who stands still is killed there
	conns  map[connKey]int
	opened map[string]int // connections by request
}

type connKey struct {
	request string
	conn    int
}

// newTranslation knows how a run names its article, its clients (a-SKU) and its
// requests (a.1@SKU).
func newTranslation(sku string, killed bool) *translation {
	return &translation{names: strings.NewReplacer("-"+sku, "", "@"+sku, "", sku, article), killed: killed,
		conns: map[connKey]int{}, opened: map[string]int{}}
}

// steps writes the log down. A statement that was blocked is two lines: where
// it was sent, and where it went on.
func (t *translation) steps(d *schedule.Draft, log []Step, marks []mark) error {
	was := schedule.Stock{Known: true, Units: d.Stock}
	add := func(st *Step, line schedule.Step) {
		if st.Counter != nil && line.Reply.Kind != schedule.Blocked {
			if is := (schedule.Stock{Known: true, Units: *st.Counter}); is != was {
				line.Stock, was = &is, is
			}
		}
		d.At[len(d.Steps)] = st.began
		if line.Kind == schedule.GoesOn {
			d.At[len(d.Steps)] = st.At
		}
		d.Steps = append(d.Steps, line)
	}
	var blocked []*Step // by the time at which they went on
	goOn := func(before time.Duration) error {
		for len(blocked) > 0 && blocked[0].At < before {
			st := blocked[0]
			blocked = blocked[1:]
			line, err := t.line(st)
			if err != nil {
				return err
			}
			line.Kind, line.Words, line.Statement = schedule.GoesOn, nil, ""
			add(st, line)
		}
		return nil
	}
	markUpTo := func(step int) error {
		for len(marks) > 0 && marks[0].steps <= step {
			if err := goOn(marks[0].at); err != nil {
				return err
			}
			t.mark(d, marks[0])
			marks = marks[1:]
		}
		return nil
	}
	for i := range log {
		st := &log[i]
		if err := errors.Join(markUpTo(i), goOn(st.began)); err != nil {
			return err
		}
		line, err := t.line(st)
		if err != nil {
			return err
		}
		// Where nobody did anything while it waited, it waited for the server to
		// notice that a client is gone, which takes a schedule no time.
		alone := st.reply.Text != "" && (i+1 == len(log) || st.At < log[i+1].began)
		if st.Blocked && !alone {
			blocked = append(blocked, st)
			slices.SortStableFunc(blocked, func(a, b *Step) int { return cmp.Compare(a.At, b.At) })
			line.Reply, line.Fault = schedule.Reply{Kind: schedule.Blocked}, ""
		}
		add(st, line)
	}
	if err := errors.Join(markUpTo(len(log)), goOn(math.MaxInt64)); err != nil {
		return err
	}
	// Time after everything is not part of a schedule: it ends at rest.
	if end := d.Before[len(d.Steps)]; len(end) > 0 && end[len(end)-1].LeasesOver {
		d.Before[len(d.Steps)] = end[:len(end)-1]
	}
	return nil
}

func (t *translation) mark(d *schedule.Draft, m mark) {
	if m.resume > 0 {
		d.Steps = append(d.Steps, schedule.Step{Kind: schedule.Resume, Client: faults.ClientName(m.resume - 1)})
		return
	}
	d.Before[len(d.Steps)] = append(d.Before[len(d.Steps)], m.event)
}

func (t *translation) line(st *Step) (schedule.Step, error) {
	line := schedule.Step{Kind: schedule.Command, Client: faults.ClientName(st.Client), Fault: st.Fault}
	switch {
	case st.Fault == faults.ClientPauseShort, st.Fault == faults.ClientPause:
		line.Fault = faults.ClientPause
		if t.killed {
			line.Fault = faults.ClientCrash
		}
	}
	var err error
	if st.sent.Server == wire.Redis {
		line.Server = schedule.Redis
		for _, w := range schedule.RedisWords(st.sent.Argv) {
			line.Words = append(line.Words, t.names.Replace(w))
		}
		if st.Fault != faults.RequestLost {
			line.Reply, err = redisReply(st.reply, t.names)
		}
		return line, err
	}
	line.Server, line.Conn = schedule.SQL, t.conn(st)
	args := make([]string, len(st.sent.Args))
	for i, a := range st.sent.Args {
		if args[i] = t.names.Replace(a); a == "NULL" {
			args[i] = schedule.Null
		}
	}
	line.Statement = schedule.StatementText(st.sent.SQL, args)
	if st.Fault != faults.RequestLost {
		line.Reply, err = sqlReply(st.reply, t.names)
	}
	return line, err
}

// conn numbers the connections that an operation uses in the order in which it
// comes to them.
func (t *translation) conn(st *Step) int {
	key := connKey{st.Request, st.sent.Conn}
	n, known := t.conns[key]
	if !known {
		n = t.opened[st.Request]
		t.opened[st.Request]++
		t.conns[key] = n
	}
	return n
}

func (t *translation) orders(list *[]model.Order) *[]model.Order {
	if list == nil {
		return nil
	}
	named := []model.Order{}
	for _, o := range *list {
		o.Request = t.names.Replace(o.Request)
		named = append(named, o)
	}
	return &named
}

// redisReply reads a reply of Redis as the proxy tells it.
func redisReply(r wire.Reply, names *strings.Replacer) (schedule.Reply, error) {
	if r.Text == "" {
		return schedule.Reply{}, nil
	}
	if r.Err {
		code, _, _ := strings.Cut(r.Text, " ")
		return schedule.Reply{Kind: schedule.Error, Text: code}, nil
	}
	v, rest, err := cutReply(r.Text, names)
	if err == nil && rest != "" {
		err = fmt.Errorf("reply %s of redis: cannot be told", r.Text)
	}
	return v, err
}

func cutReply(text string, names *strings.Replacer) (v schedule.Reply, rest string, err error) {
	if strings.HasPrefix(text, "[") {
		v, rest = schedule.Reply{Kind: schedule.List}, text[1:]
		for !strings.HasPrefix(rest, "]") {
			var item schedule.Reply
			if item, rest, err = cutReply(strings.TrimPrefix(rest, ", "), names); err != nil {
				return v, "", err
			}
			v.Items = append(v.Items, item)
		}
		return v, rest[1:], nil
	}
	if quoted, err := strconv.QuotedPrefix(text); err == nil {
		s, err := strconv.Unquote(quoted)
		return schedule.Reply{Kind: schedule.Text, Text: names.Replace(s)}, text[len(quoted):], err
	}
	end := strings.IndexAny(text, ",])")
	if end < 0 {
		end = len(text)
	}
	word, rest := text[:end], text[end:]
	if n, err := strconv.ParseInt(word, 10, 64); err == nil {
		return schedule.Reply{Kind: schedule.Int, Int: n}, rest, nil
	}
	switch {
	case word == "nil", word == "NULL":
		return schedule.Reply{Kind: schedule.Nil}, rest, nil
	case word == "true", word == "false":
		return schedule.Reply{Kind: schedule.Bool, Text: word}, rest, nil
	case statusWord.MatchString(word):
		return schedule.Reply{Kind: schedule.Status, Text: word}, rest, nil
	}
	return v, "", fmt.Errorf("reply %q: cannot be told", text)
}

var statusWord = regexp.MustCompile(`^[A-Z][A-Za-z0-9_-]*$`)

var (
	sqlCode  = regexp.MustCompile(`^ERROR ([0-9A-Z]{5})`)
	sqlCount = regexp.MustCompile(`^[A-Z ]+?(?: 0)? ([0-9]+)$`)
)

// sqlReply reads a reply of PostgreSQL as the proxy tells it.
func sqlReply(r wire.Reply, names *strings.Replacer) (schedule.Reply, error) {
	switch {
	case r.Text == "":
		return schedule.Reply{}, nil
	case r.Err:
		if m := sqlCode.FindStringSubmatch(r.Text); m != nil {
			return schedule.Reply{Kind: schedule.Error, Text: m[1]}, nil
		}
	case r.Text == "no rows":
		return schedule.Reply{Kind: schedule.Rows}, nil
	case strings.HasPrefix(r.Text, "row ("):
		rows, rest := schedule.Reply{Kind: schedule.Rows}, r.Text
		for {
			row := schedule.Reply{Kind: schedule.Row}
			rest = strings.TrimPrefix(rest, "row (")
			for !strings.HasPrefix(rest, ")") {
				item, after, err := cutReply(strings.TrimPrefix(rest, ", "), names)
				if err != nil || item.Kind == schedule.Status {
					return rows, fmt.Errorf("reply %s of the database: cannot be told", r.Text)
				}
				row.Items, rest = append(row.Items, item), after
			}
			rows.Items, rest = append(rows.Items, row), rest[1:]
			if rest == "" {
				return rows, nil
			}
			if !strings.HasPrefix(rest, "; row (") {
				break
			}
			rest = rest[2:]
		}
	default:
		if m := sqlCount.FindStringSubmatch(r.Text); m != nil {
			n, err := strconv.ParseInt(m[1], 10, 64)
			return schedule.Reply{Kind: schedule.Count, Int: n}, err
		}
		if !strings.Contains(r.Text, ";") {
			return schedule.Reply{Kind: schedule.Tag, Text: r.Text}, nil
		}
	}
	return schedule.Reply{}, fmt.Errorf("reply %s of the database: cannot be told", r.Text)
}

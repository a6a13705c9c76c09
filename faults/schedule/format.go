package schedule

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"stockproof/model"
)

// columns at which the parts of a step begin, if what is before them leaves
// room.
const (
	clientColumn = 3
	replyColumn  = 52
)

// String is the schedule as a file.
func (s *Schedule) String() string { return s.print().b.String() }

// Number sets the line of every part and step to where String puts it.
func (s *Schedule) Number() {
	lines := s.print().lines
	if s.Notes == nil {
		s.Notes = map[string]Note{}
	}
	for i := range s.Steps {
		s.Steps[i].Note.Line = lines[stepPart(i)]
		delete(lines, stepPart(i))
	}
	for part, line := range lines {
		n := s.Notes[part]
		n.Line = line
		s.Notes[part] = n
	}
}

// stepPart keeps the i-th step apart from the parts that are no steps.
func stepPart(i int) string { return "step " + strconv.Itoa(i) }

func (s *Schedule) print() *printer {
	p := &printer{notes: s.Notes, lines: map[string]int{}}
	p.line(PartVersion, "schedule v"+strconv.Itoa(Version))
	p.line(PartScheme, "scheme   "+word(s.Scheme))
	config := "config   "
	if s.Times.Lease > 0 {
		config += "lease=" + s.Times.Lease.String() + " "
	}
	if s.Times.Wait > 0 {
		config += "wait=" + s.Times.Wait.String() + " "
	}
	if s.Times.Retry > 0 {
		config += "retry=" + s.Times.Retry.String() + " "
	}
	if s.Times.Replicas > 0 {
		config += "replicas=" + strconv.Itoa(s.Times.Replicas) + " "
	}
	if s.Times.Record > 0 {
		config += "record=" + s.Times.Record.String() + " "
	}
	p.line(PartConfig, config+"retries="+s.Retries)
	p.line(PartStock, "stock    goods:"+s.SKU+" "+strconv.FormatInt(s.Stock, 10))
	for _, c := range s.Clients {
		p.line(PartClient+c.Name, "client   "+c.Name+" "+c.calls())
	}
	p.line(PartSteps, rule)
	for i := range s.Steps {
		p.put(stepPart(i), s.Steps[i].Note, s.Text(i))
	}
	p.line(PartEnd, rule)
	p.line(PartOutcome, strings.TrimRight("outcome  "+s.answers(s.Outcomes, " "), " "))
	p.line(PartFinal, "stock    "+s.Final.String())
	if s.Orders != nil {
		p.line(PartOrders, "orders   "+orders(*s.Orders))
	}
	p.line(PartViolates, "violates "+violations(s.Violates))
	for _, above := range s.Notes[PartAfter].Above {
		p.b.WriteString(above + "\n")
	}
	return p
}

const rule = "---"

type printer struct {
	b     strings.Builder
	n     int // lines written
	notes map[string]Note
	lines map[string]int // where each part and step stands
}

func (p *printer) line(part, text string) { p.put(part, p.notes[part], text) }

func (p *printer) put(part string, n Note, text string) {
	p.n += len(n.Above) + 1
	p.lines[part] = p.n
	for _, above := range n.Above {
		p.b.WriteString(above + "\n")
	}
	p.b.WriteString(text)
	if n.Beside != "" {
		p.b.WriteString("  " + n.Beside)
	}
	p.b.WriteByte('\n')
}

func (c Client) calls() string {
	words := make([]string, len(c.Calls))
	for i, call := range c.Calls {
		words[i] = string(call.Op)
		if call.Op != model.Read && call.Op != model.Work {
			words[i] += " " + strconv.FormatInt(call.Qty, 10)
		}
		if call.As != "" {
			words[i] += " as " + call.As
		}
	}
	return strings.Join(words, ", ")
}

// Text is the i-th step, from 0, without its notes.
func (s *Schedule) Text(i int) string {
	st := &s.Steps[i]
	var b strings.Builder
	b.WriteString(st.Client)
	if st.Client != "" {
		b.WriteByte(' ')
	}
	pad(&b, clientColumn)
	b.WriteString(st.Action())
	var parts []string
	if st.Reply.Kind != None {
		parts = append(parts, "=> "+st.Reply.String())
	}
	if st.Fault != "" {
		parts = append(parts, "! "+st.faultWord())
	}
	var after []string
	if st.Stock != nil {
		after = append(after, "stock "+st.Stock.String())
	}
	if len(st.Answers) > 0 {
		after = append(after, s.answers(st.Answers, ", "))
	}
	if len(st.Wakes) > 0 {
		after = append(after, "wakes "+strings.Join(st.Wakes, " "))
	}
	if len(after) > 0 {
		parts = append(parts, "; "+strings.Join(after, ", "))
	}
	if len(parts) > 0 {
		pad(&b, replyColumn-1)
		b.WriteString(" " + strings.Join(parts, "  "))
	}
	return b.String()
}

// Action is what happens in a step, without who does it and what comes of it.
func (st *Step) Action() string {
	switch st.Kind {
	case Arrives:
		return "arrives: " + st.what()
	case Never:
		return "never arrives: " + st.what()
	case GoesOn, Deadlock:
		return st.sql() + " " + string(st.Kind)
	case Resume:
		return "resume"
	case Submits:
		return "submits " + st.Request + " again"
	case Wait:
		return "wait " + st.Wait.String()
	case Loses:
		return "store loses " + strconv.Itoa(st.Lost)
	case Flush:
		return "script flush"
	case Restarts:
		return restart(st)
	case FallsBehind:
		return "replica falls behind"
	case Refuses:
		return "primary refuses writes"
	case TakesOver:
		return "replica takes over " + strconv.Itoa(st.Lost)
	case Freezes:
		return "redis freezes"
	case Thaws:
		return "redis goes on"
	case Evicts:
		return "redis evicts " + word(st.Key)
	case Expires:
		return "stock expires"
	case Loads, Reconciles:
		return string(st.Kind)
	}
	return st.what()
}

func (st *Step) sql() string {
	if st.Conn == 0 {
		return "SQL"
	}
	return "SQL/" + strconv.Itoa(st.Conn+1)
}

// what is the command or the statement.
func (st *Step) what() string {
	if st.Server == SQL {
		return st.sql() + " " + statement(st.Statement)
	}
	words := make([]string, len(st.Words))
	for i, w := range st.Words {
		words[i] = word(w)
	}
	return strings.Join(words, " ")
}

// pad fills up to a column, counted in characters.
func pad(b *strings.Builder, column int) {
	for n := utf8.RuneCountInString(b.String()); n < column; n++ {
		b.WriteByte(' ')
	}
}

// Label names the operation that was answered; see Client.Label.
func (s *Schedule) Label(a Answer) string {
	if c, ok := s.Client(a.Client); ok {
		return c.Label(a.N)
	}
	return RequestID(a.Client, a.N)
}

// AnswersText is a list of answers in any order, as a schedule writes them.
func (s *Schedule) AnswersText(list []Answer) string {
	if len(list) == 0 {
		return "none"
	}
	return s.answers(sortedAnswers(list), " ")
}

func (s *Schedule) answers(list []Answer, by string) string {
	words := make([]string, len(list))
	for i, a := range list {
		words[i] = s.Label(a) + "=" + a.word()
	}
	return strings.Join(words, by)
}

// word is the answer alone.
func (a Answer) word() string {
	if a.Outcome == model.Value {
		return strconv.FormatInt(a.Value, 10)
	}
	return a.Outcome.String()
}

func orders(list []model.Order) string {
	if len(list) == 0 {
		return "none"
	}
	words := make([]string, len(list))
	for i, o := range list {
		words[i] = word(o.Request + "=" + strconv.FormatInt(o.Qty, 10))
	}
	return strings.Join(words, " ")
}

// ViolatesText is what the schedule violates, as it writes it.
func (s *Schedule) ViolatesText() string { return violations(s.Violates) }

func violations(list []Violation) string {
	if len(list) == 0 {
		return "nothing"
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = string(v.Property) + "=" + strconv.FormatInt(v.Amount, 10)
	}
	return strings.Join(words, " ")
}

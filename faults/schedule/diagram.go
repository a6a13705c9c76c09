package schedule

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/faults"
)

// Lanes of the servers in diagrams.
const (
	laneRedis = "Redis"
	laneSQL   = "PostgreSQL"
)

// picture is a schedule as arrows and notes, apart from how they are drawn.
type picture struct {
	title string
	lanes []string // clients, then servers
	marks []mark
}

// mark is one arrow, or a note over lanes.
type mark struct {
	from, to string // of an arrow; from is empty for a note
	over     []string
	text     string
	reply    bool // drawn dashed
	broken   bool // it does not get there
	ends     bool // after it the lane of over[0] has no life any more
	pauses   bool // after it the lane of over[0] stands still
	resumes  bool
	stock    string // of the counter afterwards, where it changed
}

func (s *Schedule) picture() picture {
	p := picture{title: s.Scheme + ": violates " + violations(s.Violates)}
	for _, c := range s.Clients {
		p.lanes = append(p.lanes, c.Name)
	}
	for _, server := range []Server{Redis, SQL} {
		uses := slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Server == server })
		if server == Redis { // faults of Redis alone would need it too
			uses = uses || slices.ContainsFunc(s.Steps, func(st Step) bool { return st.Kind == Loses || st.Kind == Flush })
		}
		if uses {
			p.lanes = append(p.lanes, lane(server))
		}
	}
	for i := range s.Steps {
		p.draw(s, &s.Steps[i])
	}
	return p
}

func lane(server Server) string {
	if server == SQL {
		return laneSQL
	}
	return laneRedis
}

func (p *picture) add(m mark) { p.marks = append(p.marks, m) }

func (p *picture) note(text string, over ...string) { p.add(mark{over: over, text: text}) }

func (p *picture) draw(s *Schedule, st *Step) {
	first := len(p.marks)
	server := lane(st.Server)
	reply := func() {
		p.add(mark{from: server, to: st.Client, text: st.Reply.String(), reply: true,
			broken: st.Fault == faults.ReplyLost || st.Fault == faults.CommitReplyLost || st.Fault == faults.ClientCrash})
	}
	switch st.Kind {
	case Command:
		lost := st.Fault == faults.RequestLost || st.Fault == faults.RequestDelayed
		text := st.label()
		if lost {
			text += " (" + strings.TrimPrefix(faultWords[st.Fault], "request-") + ")"
		}
		p.add(mark{from: st.Client, to: server, text: text, broken: lost})
		if st.Reply.Kind == Blocked {
			p.note(st.Client+"'s statement waits", server)
		} else if !lost {
			reply()
		}
	case GoesOn, Deadlock:
		if st.Reply.Kind == None || st.Reply.Kind == Blocked {
			p.note(st.Client+"'s statement goes on", server)
		} else {
			reply()
		}
	case Arrives:
		p.add(mark{from: st.Client, to: server, text: st.label() + " (arrives late)"})
		p.add(mark{from: server, to: st.Client, text: st.Reply.String(), reply: true, broken: true})
	case Never:
		p.note(st.Client+"'s never arrives", server)
	case Resume:
		p.add(mark{over: []string{st.Client}, text: "resumes", resumes: true})
	case Submits:
		p.note("submits "+st.Request+" again", st.Client)
	case Wait:
		p.note(st.Wait.String()+" pass", p.lanes...)
	case Loses:
		p.note(fmt.Sprintf("loses its last %d writes", st.Lost), laneRedis)
	case Flush:
		p.note("forgets its scripts", laneRedis)
	}
	if st.Stock != nil && len(p.marks) > first {
		p.marks[first].stock = st.Stock.String()
	}
	switch st.Fault {
	case faults.ClientCrash:
		p.add(mark{over: []string{st.Client}, text: "crashes", ends: true})
	case faults.ClientPause:
		text := "stands still"
		if st.Unread {
			text += ", the reply unread"
		}
		p.add(mark{over: []string{st.Client}, text: text, pauses: true})
	}
	for _, name := range st.Wakes {
		p.note("gets a message", name)
	}
	for _, a := range st.Answers {
		p.note(s.Label(a)+" = "+a.word(), a.Client)
	}
}

// label is a command without what a diagram has no room for: of a script only
// the name.
func (st *Step) label() string {
	if st.Server == Redis && len(st.Words) > 1 && strings.HasPrefix(st.Words[0], "EVAL") {
		return st.Words[0] + " " + word(st.Words[1])
	}
	if st.Server == SQL {
		return st.Statement
	}
	return st.what()
}

// Mermaid is the schedule as a Mermaid sequence diagram.
func (s *Schedule) Mermaid() string {
	p := s.picture()
	var b strings.Builder
	fmt.Fprintf(&b, "sequenceDiagram\n    title %s\n", mermaidText(p.title))
	for _, l := range p.lanes {
		fmt.Fprintf(&b, "    participant %s\n", l)
	}
	for _, m := range p.marks {
		if m.from == "" {
			over := m.over
			if len(over) > 2 {
				over = []string{over[0], over[len(over)-1]}
			}
			fmt.Fprintf(&b, "    Note over %s: %s\n", strings.Join(over, ","), mermaidText(m.text))
		} else {
			arrow := "->>"
			switch {
			case m.reply && m.broken:
				arrow = "--x"
			case m.reply:
				arrow = "-->>"
			case m.broken:
				arrow = "-x"
			}
			fmt.Fprintf(&b, "    %s%s%s: %s\n", m.from, arrow, m.to, mermaidText(m.text))
		}
		if m.stock != "" {
			fmt.Fprintf(&b, "    Note right of %s: stock %s\n", p.lanes[len(p.lanes)-1], m.stock)
		}
	}
	return b.String()
}

// mermaidText escapes what ends a statement or begins an entity.
func mermaidText(s string) string {
	return strings.NewReplacer("#", "#35;", ";", "#59;").Replace(s)
}

// The distance of two lanes in characters: as wide as the labels need, within
// bounds. An arrow takes 9 characters beside its label.
const (
	leastGap  = 20
	mostGap   = 44
	arrowRoom = 9
)

func (p *picture) gap() int {
	gap := leastGap
	for _, m := range p.marks {
		spans := 1
		if m.from != "" {
			spans = slices.Index(p.lanes, m.to) - slices.Index(p.lanes, m.from)
			spans = max(spans, -spans, 1)
		}
		if len(m.over) < 2 {
			gap = max(gap, (len([]rune(m.text))+arrowRoom+spans-1)/spans)
		}
	}
	return min(gap, mostGap)
}

// ASCII is the schedule as a sequence diagram of plain characters.
func (s *Schedule) ASCII() string {
	p := s.picture()
	c := &canvas{gap: p.gap(), lanes: p.lanes, life: make([]rune, len(p.lanes))}
	var b strings.Builder
	b.WriteString(p.title + "\n\n")
	heads := c.row()
	for i, l := range p.lanes {
		heads.put(c.x(i), l)
	}
	b.WriteString(heads.String() + "\n")
	for i := range c.life {
		c.life[i] = '|'
	}
	for _, m := range p.marks {
		row := c.row()
		if m.from == "" {
			c.note(row, m)
		} else {
			c.arrow(row, m)
		}
		text := row.String()
		if m.stock != "" {
			text += "   stock " + m.stock
		}
		b.WriteString(text + "\n")
	}
	return b.String()
}

type canvas struct {
	gap   int
	lanes []string
	life  []rune // what each lane looks like now
}

type line []rune

func (l line) put(x int, text string) {
	for i, r := range []rune(text) {
		if x+i >= 0 && x+i < len(l) {
			l[x+i] = r
		}
	}
}

func (l line) String() string { return strings.TrimRight(string(l), " ") }

func (c *canvas) x(i int) int { return 1 + i*c.gap }

func (c *canvas) lane(name string) int { return slices.Index(c.lanes, name) }

// row is an empty row, with room for a note at the last lane.
func (c *canvas) row() line {
	row := line(strings.Repeat(" ", c.x(len(c.lanes)-1)+c.gap))
	for i, r := range c.life {
		if r != 0 {
			row[c.x(i)] = r
		}
	}
	return row
}

func (c *canvas) note(row line, m mark) {
	if len(m.over) > 1 {
		for i := c.x(0); i <= c.x(len(c.lanes)-1); i++ {
			row[i] = '~'
		}
		row.put(c.x(0)+3, " "+m.text+" ")
		return
	}
	i := c.lane(m.over[0])
	row.put(c.x(i), "* "+cutTo(m.text, c.gap-3))
	switch {
	case m.ends:
		row.put(c.x(i), "X")
		c.life[i] = ' '
	case m.pauses:
		c.life[i] = ':'
	case m.resumes:
		c.life[i] = '|'
	}
}

func (c *canvas) arrow(row line, m mark) {
	from, to := c.x(c.lane(m.from)), c.x(c.lane(m.to))
	left, right := min(from, to), max(from, to)
	dash := '-'
	if m.reply {
		dash = '.'
	}
	for x := left + 1; x < right; x++ {
		row[x] = dash
	}
	label := " " + cutTo(m.text, right-left-arrowRoom) + " "
	head := ">"
	at := left + 3
	if to < from {
		head, at = "<", right-3-len([]rune(label))
	}
	if m.broken {
		head = "x"
	}
	row.put(at, label)
	if to > from {
		row.put(right-1, head)
	} else {
		row.put(left+1, head)
	}
}

// cutTo shortens a text to n characters.
func cutTo(text string, n int) string {
	r := []rune(text)
	if len(r) <= n {
		return text
	}
	return string(r[:max(n-1, 0)]) + "…"
}

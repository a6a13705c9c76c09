package evidence

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stockproof/faults"
)

// Formats lists the output formats of Render.
func Formats() []string { return []string{"text", "json", "markdown", "junit"} }

// Render writes the report in one of Formats.
func (r Report) Render(w io.Writer, format string) error {
	switch format {
	case "json":
		return r.JSON(w)
	case "junit":
		return r.junit(w)
	case "markdown":
		_, err := fmt.Fprintf(w, "%s\n\n%s\n%s\n", r.matrix().RenderMarkdown(), strings.Join(legend(), "  \n"), r.summary())
		return err
	case "text":
		_, err := fmt.Fprintf(w, "%s\n\n%s\n\n%s\n", r.matrix().Render(), strings.Join(legend(), "\n"), r.summary())
		return err
	}
	return fmt.Errorf("unknown format %q; there are %s", format, strings.Join(Formats(), ", "))
}

// Matrix is the table of Render alone, as text.
func (r Report) Matrix() string { return r.matrix().Render() }

// matrix has a row for each scheme × fault × world and a column for each
// workload × retry setting.
func (r Report) matrix() table.Writer {
	type column struct{ workload, retries string }
	type row struct {
		scheme string
		fault  string
		world  string
	}
	var columns []column
	var rows []row
	seenColumn, seenRow := map[column]bool{}, map[row]bool{}
	grouped := map[Group][]Cell{}
	for _, c := range r.Cells {
		g := c.GroupOf()
		grouped[g] = append(grouped[g], c)
		if col := (column{g.Workload, g.Retries}); !seenColumn[col] {
			seenColumn[col] = true
			columns = append(columns, col)
		}
		if at := (row{g.Scheme, g.Fault, g.World}); !seenRow[at] {
			seenRow[at] = true
			rows = append(rows, at)
		}
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	head := table.Row{"scheme", "fault", "world"}
	for _, c := range columns {
		head = append(head, c.workload+"\nretries "+c.retries)
	}
	t.AppendHeader(head)
	last := ""
	for _, at := range rows {
		if last != "" && at.scheme != last {
			t.AppendSeparator()
		}
		last = at.scheme
		line := table.Row{at.scheme, at.fault, at.world}
		for _, c := range columns {
			cells := grouped[Group{at.scheme, at.fault, c.workload, c.retries, at.world}]
			if len(cells) == 0 {
				line = append(line, "")
				continue
			}
			line = append(line, letters(cells))
		}
		t.AppendRow(line)
	}
	return t
}

// mostLines bounds the list of surprises in text for people.
const mostLines = 20

const nothingJudged = "nothing was judged"

// listed writes the first lines of a list.
func listed(b *strings.Builder, what string, lines []string) {
	for i, line := range lines {
		if i == mostLines {
			fmt.Fprintf(b, "  … and %d more\n", len(lines)-i)
			break
		}
		fmt.Fprintf(b, "  %s: %s\n", what, line)
	}
}

// summary counts the cells and lists what is not as declared.
func (r Report) summary() string {
	count := map[Verdict]int{}
	for _, c := range r.Cells {
		count[c.Verdict]++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d cells: %d violated, %d hold, %d inconclusive, %d not applicable\n",
		len(r.Cells), count[Violated], count[Holds], count[Inconclusive], count[NotApplicable])
	if r.Bounds.Incomplete != "" {
		fmt.Fprintf(&b, "INCOMPLETE: %s\n", r.Bounds.Incomplete)
	}
	if c := r.Bounds.Confirmed; c != nil {
		fmt.Fprintf(&b, "%d of %d witnesses of explore came out the same on real servers\n", c.AsFound, c.Witnesses)
		listed(&b, "NOT THE SAME", c.Otherwise)
		listed(&b, "not decided", c.Open)
	}
	if why := r.Bounds.Unconfirmed; why != "" && HasWitness(r.Cells) {
		fmt.Fprintf(&b, "nothing that explore found was replayed on real servers: %s\n", strings.ReplaceAll(why, "\n", " "))
	}
	listed(&b, "steps differ", r.Bounds.Differences)
	surprises := r.Surprises()
	if len(r.Cells) == 0 {
		b.WriteString(nothingJudged)
		return b.String()
	}
	if len(surprises) == 0 {
		b.WriteString("every verdict is as the scheme declares it")
		return b.String()
	}
	fmt.Fprintf(&b, "%d verdicts are not as declared:", len(surprises))
	for i, c := range surprises {
		if i == mostLines {
			fmt.Fprintf(&b, "\n  … and %d more, in evidence.json", len(surprises)-i)
			break
		}
		fmt.Fprintf(&b, "\n  %s", c.line())
	}
	return b.String()
}

// line is one cell in words.
func (c Cell) line() string {
	s := fmt.Sprintf("%s × %s × %s, retries %s, %s: %s %s, declared %s",
		c.Scheme, faults.Row(c.Fault, c.Setting), c.Workload, c.ClientRetries, c.World, c.Property, c.Verdict, c.Declared)
	if c.Reason != "" {
		s += " — " + c.Reason
	}
	return s
}

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

// junit makes each cell a test case: a verdict that is not the declared one is
// a failure, an inconclusive one an error. So is what was not looked at.
func (r Report) junit(w io.Writer) error {
	var out junitSuites
	for _, g := range Groups(r.Cells) {
		suite := junitSuite{Name: fmt.Sprintf("%s/%s/%s/retries-%s/%s", g.Scheme, g.Fault, g.Workload, g.Retries, g.World)}
		for _, c := range inGroup(r.Cells, g) {
			jc := junitCase{Class: suite.Name, Name: string(c.Property)}
			message := &junitMessage{c.line()}
			switch {
			case c.Verdict == NotApplicable:
				jc.Skipped = message
				suite.Skipped++
			case c.AsDeclared():
			case c.Verdict == Inconclusive:
				jc.Error = message
				suite.Errors++
			default:
				jc.Failure = message
				suite.Failures++
			}
			suite.Tests++
			suite.Cases = append(suite.Cases, jc)
		}
		out.Suites = append(out.Suites, suite)
	}
	if r.Bounds.Incomplete != "" || len(r.Cells) == 0 {
		why := cmp.Or(r.Bounds.Incomplete, nothingJudged)
		out.Suites = append(out.Suites, junitSuite{Name: "complete", Tests: 1, Errors: 1, Cases: []junitCase{
			{Class: "complete", Name: "everything was looked at", Error: &junitMessage{why}},
		}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

package evidence

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stockproof/faults"
)

// Formats lists the output formats of Render.
func Formats() []string { return []string{"text", "json", "markdown", "junit", "github"} }

// Render writes the report in one of Formats.
func (r Report) Render(w io.Writer, format string) error {
	switch format {
	case "json":
		return r.JSON(w)
	case "junit":
		return r.junit(w)
	case "github":
		return r.github(w)
	case "markdown":
		return r.markdown(w)
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

// counts says how many cells have which verdict.
func (r Report) counts() string {
	count := map[Verdict]int{}
	for _, c := range r.Cells {
		count[c.Verdict]++
	}
	return fmt.Sprintf("%d cells: %d violated, %d hold, %d inconclusive, %d not applicable",
		len(r.Cells), count[Violated], count[Holds], count[Inconclusive], count[NotApplicable])
}

// unlooked says why not everything was looked at, empty when it was.
func (r Report) unlooked() string {
	if len(r.Cells) == 0 {
		return cmp.Or(r.Bounds.Incomplete, nothingJudged)
	}
	return r.Bounds.Incomplete
}

// summary counts the cells and lists what is not as declared.
func (r Report) summary() string {
	var b strings.Builder
	b.WriteString(r.counts() + "\n")
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
	b.WriteString(claimCounts(r.Claims))
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

package evidence

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"stockproof/model"
)

// Change is one difference between two reports. An empty Old is something new,
// an empty New something that is not there any more.
type Change struct {
	What  string `json:"what"` // a cell as scheme × fault × …, a claim, or the bounds
	Field string `json:"field"`
	Old   string `json:"old"`
	New   string `json:"new"`
}

// Difference lists what changed between two reports, in the order of the newer
// one and what is gone after it: verdicts, amounts, what is declared, what was
// confirmed, bounds, claims, cells that are new or gone. Counts of states and
// executions and the words of reasons are not verdicts, and are left out.
func Difference(before, after Report) []Change {
	changes := []Change{}
	note := func(what, field, was, is string) {
		if was != is {
			changes = append(changes, Change{what, field, was, is})
		}
	}
	note("report", "complete", complete(before), complete(after))
	note("report", "assumptions", strings.Join(before.Bounds.Assumptions, "\n"), strings.Join(after.Bounds.Assumptions, "\n"))
	was := map[cellKey]Cell{}
	for _, c := range before.Cells {
		was[c.key()] = c
	}
	for _, c := range after.Cells {
		old, there := was[c.key()]
		delete(was, c.key())
		if !there {
			changes = append(changes, Change{What: c.name(), Field: "cell", New: string(c.Verdict)})
			continue
		}
		note(c.name(), "verdict", string(old.Verdict), string(c.Verdict))
		note(c.name(), "amount", fmt.Sprint(old.Amount), fmt.Sprint(c.Amount))
		note(c.name(), "declared", string(old.Declared), string(c.Declared))
		note(c.name(), "confirmed live", confirmed(old), confirmed(c))
		note(c.name(), "bound", old.bound(), c.bound())
	}
	for _, c := range before.Cells {
		if _, gone := was[c.key()]; gone {
			changes = append(changes, Change{What: c.name(), Field: "cell", Old: string(c.Verdict)})
		}
	}
	for _, c := range after.Claims {
		i := slices.IndexFunc(before.Claims, func(old Claim) bool { return old.ID == c.ID })
		if i < 0 {
			changes = append(changes, Change{What: "claim " + c.ID, Field: "claim", New: string(c.Verdict)})
			continue
		}
		note("claim "+c.ID, "verdict", string(before.Claims[i].Verdict), string(c.Verdict))
	}
	for _, c := range before.Claims {
		if !slices.ContainsFunc(after.Claims, func(now Claim) bool { return now.ID == c.ID }) {
			changes = append(changes, Change{What: "claim " + c.ID, Field: "claim", Old: string(c.Verdict)})
		}
	}
	return changes
}

// cellKey is what makes two cells verdicts about the same.
type cellKey struct {
	group    Group
	property model.Property
}

func (c Cell) key() cellKey { return cellKey{c.GroupOf(), c.Property} }

func (c Cell) name() string {
	return fmt.Sprintf("%s × %s × %s, retries %s, %s: %s", c.Scheme, c.GroupOf().Fault, c.Workload, c.ClientRetries, c.GroupOf().World, c.Property)
}

// bound is what a verdict was reached for.
func (c Cell) bound() string {
	s := fmt.Sprintf("%d clients, %d faults, stock %d", c.Clients, c.MaxFaults, c.Stock)
	if c.Clients == AnyNumber {
		s = strings.Replace(s, "-1 clients", "any number of clients", 1)
	}
	if c.Exhaustive {
		s += ", all executions"
	}
	return s
}

func confirmed(c Cell) string {
	switch {
	case c.ConfirmedLive == nil:
		return "not tried or not decided"
	case *c.ConfirmedLive:
		return "yes"
	}
	return "no"
}

func complete(r Report) string {
	if r.Bounds.Incomplete != "" {
		return "no: " + r.Bounds.Incomplete
	}
	return "yes"
}

// DiffFormats lists the formats of RenderDifference.
func DiffFormats() []string { return []string{"text", "json", "markdown"} }

// RenderDifference writes changes in one of DiffFormats.
func RenderDifference(w io.Writer, changes []Change, format string) error {
	switch format {
	case "json":
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		return enc.Encode(changes)
	case "text", "markdown":
	default:
		return fmt.Errorf("unknown format %q; there are %s", format, strings.Join(DiffFormats(), ", "))
	}
	if len(changes) == 0 {
		_, err := fmt.Fprintln(w, "nothing changed")
		return err
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Format.Header = text.FormatDefault
	t.AppendHeader(table.Row{"what", "field", "old", "new"})
	for _, c := range changes {
		t.AppendRow(table.Row{c.What, c.Field, dash(c.Old), dash(c.New)})
	}
	out := t.Render()
	if format == "markdown" {
		out = t.RenderMarkdown()
	}
	_, err := fmt.Fprintf(w, "%s\n\n%d changes\n", out, len(changes))
	return err
}

func dash(s string) string {
	if s == "" {
		return "–"
	}
	return s
}

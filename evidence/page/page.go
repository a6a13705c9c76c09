// Package page writes a report as one self-contained HTML file: it needs no
// network and works from file://. What is large lies in it compressed and is
// unpacked by the page itself when it is asked for.
package page

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
)

var (
	//go:embed page.html
	layout string
	//go:embed page.css
	style string
	//go:embed page.js
	script string
	//go:embed diagram.js
	diagram string
	//go:embed cell.js
	cellScript string
)

// MostBytes is the size a report must stay below. Pictures of porcupine and then
// witnesses are left out, and said to be, before it is passed.
const MostBytes = 5 << 20

// Name of the file beside evidence.json.
const Name = "report.html"

// WriteFile writes the report beside its evidence, below dir, where the
// witnesses lie.
func WriteFile(dir string, r evidence.Report) (path string, err error) {
	var b bytes.Buffer
	if err := Write(&b, r, os.DirFS(dir)); err != nil {
		return "", err
	}
	path = filepath.Join(dir, Name)
	return path, os.WriteFile(path, b.Bytes(), 0o644)
}

// Write writes the report. files has the witnesses that the cells name; one that
// is not there is said to be missing.
func Write(w io.Writer, r evidence.Report, files fs.FS) error {
	var b bytes.Buffer
	for _, keep := range []detail{everything, withoutPictures, withoutWitnesses} {
		b.Reset()
		if err := write(&b, r, files, keep); err != nil {
			return fmt.Errorf("report: %w", err)
		}
		if b.Len() < MostBytes {
			break
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}

// detail says what a report has of its witnesses.
type detail int

const (
	everything detail = iota
	withoutPictures
	withoutWitnesses
)

// view is what the layout is filled from.
type view struct {
	Style         template.CSS
	Chunks        template.HTML
	Script        template.JS
	LegendClasses []string
	// MostThroughput is the length of a bar, in requests per second.
	MostThroughput float64
	Report         evidence.Report
	Headline       []headline
	Properties     []model.PropertyInfo
	Kinds          []named
	Workloads      []named
	Rows           []row
	Claims         []evidence.Claim
	Bounds         []string
	Assumptions    []evidence.Text
	NotCovered     []evidence.Text
	Left           string // what is left out to stay small
	Any            bool   // there are verdicts for any number of clients
	Counts         map[evidence.ClaimVerdict]int
}

// row is a scheme in the first table.
type row struct {
	Scheme  string
	Summary evidence.Text
	Cells   []glance
}

// glance is a scheme × property in the first table.
type glance struct {
	Property model.PropertyInfo
	evidence.Glance
	Class string
}

func write(w io.Writer, r evidence.Report, files fs.FS, keep detail) error {
	pack, err := pack(r, files, keep)
	if err != nil {
		return err
	}
	v := view{
		Style: template.CSS(style), Script: template.JS(script + diagram + cellScript), Chunks: pack.html(), Report: r,
		Headline: headlines(r), Properties: model.Properties(), Kinds: pack.index.Faults, Workloads: pack.index.Workloads, Claims: r.Claims,
		LegendClasses: []string{"always", "some", "never", "open", "none"},
		Bounds:        r.Bounds.Lines(), NotCovered: r.NotCovered(), Left: pack.left, Counts: map[evidence.ClaimVerdict]int{},
	}
	for _, a := range r.Bounds.Assumptions {
		v.Assumptions = append(v.Assumptions, translated(assumptions, a, a))
	}
	for _, c := range r.Cost {
		v.MostThroughput = max(v.MostThroughput, c.Throughput.Median)
	}
	for _, c := range r.Claims {
		v.Counts[c.Verdict]++
	}
	for _, c := range r.Cells {
		v.Any = v.Any || c.Clients == evidence.AnyNumber
	}
	glances := r.Glances()
	for _, name := range r.Schemes() {
		row := row{Scheme: name, Summary: schemeText(name)}
		for _, p := range model.Properties() {
			g := glances[name][p.ID]
			row.Cells = append(row.Cells, glance{p, g, class(g)})
		}
		v.Rows = append(v.Rows, row)
	}
	t, err := template.New("page").Funcs(template.FuncMap{
		"t": tell, "both": both, "property": propertyText, "propertyName": propertyName,
		"deref": func(x *float64) float64 { return *x },
		"kinds": func(ks []faults.Kind) string {
			var names []string
			for _, k := range ks {
				names = append(names, string(k))
			}
			return strings.Join(names, ", ")
		},
		"percent": func(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) },
		"number":  func(x float64) string { return fmt.Sprintf("%.0f", x) },
		"short":   func(x float64) string { return fmt.Sprintf("%.2f", x) },
		"links":   links,
	}).Parse(layout)
	if err != nil {
		return err
	}
	return t.Execute(w, v)
}

// class is the look of a glance, which its word says as well.
func class(g evidence.Glance) string {
	switch {
	case g.Alone:
		return "always"
	case g.Broken():
		return "some"
	case g.Open:
		return "open"
	case g.Held:
		return "never"
	}
	return "none"
}

// link leads to a cell.
type link struct{ Scheme, Fault string }

// mostLinks bounds how many cells one piece of evidence links to.
const mostLinks = 6

// links are the cells that a piece of evidence rests on, as far as it names them.
func links(s evidence.Support) []link {
	kinds := s.Faults
	if len(kinds) == 0 {
		kinds = []string{string(faults.None)}
	}
	var out []link
	for _, scheme := range s.Schemes {
		for _, kind := range kinds {
			if len(out) < mostLinks {
				out = append(out, link{scheme, kind})
			}
		}
	}
	return out
}

// headline is one sentence of the answer, with the schemes it is about.
type headline struct {
	Class   string
	Says    evidence.Text
	Schemes []string
}

// hitClients says whether a scheme was judged under every fault of clients and of the
// wire that explore places: what was not looked at is nothing that was kept.
func hitClients(r evidence.Report, scheme string) bool {
	return !slices.ContainsFunc(faults.Kinds(), func(k faults.Info) bool {
		return k.Explore && !faults.HitsServer(k.ID) && !slices.ContainsFunc(r.Cells, func(c evidence.Cell) bool {
			return c.Scheme == scheme && c.Fault == k.ID
		})
	})
}

// headlines say which scheme breaks the first law, overselling, and when; and
// which ones keep every law that is about safety.
func headlines(r evidence.Report) []headline {
	var always, some, never, open, clean, onlyServers []string
	glances := r.Glances()
	for _, name := range r.Schemes() {
		g := glances[name][model.Oversell]
		switch {
		case g.Alone:
			always = append(always, name)
		case g.Broken():
			some = append(some, name)
		case g.Open || !g.Held:
			open = append(open, name)
		default:
			never = append(never, name)
		}
		broken := slices.ContainsFunc(model.Properties(), func(p model.PropertyInfo) bool {
			g := glances[name][p.ID]
			return p.ID != model.Unsold && (g.Broken() || g.Open)
		})
		if !broken && g.Held {
			clean = append(clean, name)
		}
		byOthers := slices.ContainsFunc(model.Properties(), func(p model.PropertyInfo) bool {
			g := glances[name][p.ID]
			return p.ID != model.Unsold && (g.Alone || g.Open || slices.ContainsFunc(g.Faults, func(k faults.Kind) bool { return !faults.HitsServer(k) }))
		})
		if !byOthers && g.Held && broken && hitClients(r, name) {
			onlyServers = append(onlyServers, name)
		}
	}
	var all []headline
	add := func(class, word string, names []string) {
		if len(names) > 0 {
			all = append(all, headline{class, words[word], names})
		}
	}
	add("always", "oversells-always", always)
	add("some", "oversells-some", some)
	add("never", "oversells-never", never)
	add("open", "oversells-open", open)
	if len(clean) > 0 {
		add("never", "keeps-all", clean)
	} else if len(glances) > 0 {
		add("never", "keeps-clients", onlyServers)
		all = append(all, headline{"some", words["keeps-none"], nil})
	}
	return all
}

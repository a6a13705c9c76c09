package histories

import (
	"fmt"
	"io"
	"time"

	"stockproof/histories/foreign"
	"stockproof/model"
)

// Options say how a file is judged.
type Options struct {
	Limits    model.Limits
	Timeout   time.Duration // porcupine's, for one history
	Porcupine int           // most operations porcupine is asked about; its memory is n²/8 bytes
	Resubmits bool          // a request id may come more than once
	Audits    map[string]*Audit
	Save      string // folder for a history the checkers disagree on
	// Log says how a file of others is read; empty: it is one of ours.
	Log     foreign.Format
	Foreign foreign.Options
}

// Law is a broken law in a report.
type Law struct {
	Property model.Property `json:"property"`
	Amount   int64          `json:"amount"`
	Detail   string         `json:"detail"`
}

// Explanation says why a history is not linearizable.
type Explanation struct {
	Operation int    `json:"operation"` // from 1, in the order of the file, after settling
	Lowest    int64  `json:"lowest"`    // units that may have been in stock when it returned
	Highest   int64  `json:"highest"`
	Text      string `json:"text"`
	// Needed are operations that already are impossible together, whatever the
	// others did; Minimal says that none of them can be left out.
	Needed  []int `json:"needed"`
	Minimal bool  `json:"minimal"`
}

// Report is the verdict on one history.
type Report struct {
	File        string       `json:"file"`
	Name        string       `json:"name,omitempty"`
	SKU         string       `json:"sku"`
	Verdict     Verdict      `json:"verdict"`
	Operations  int          `json:"operations"`
	Initial     int64        `json:"initial"`
	Settled     int          `json:"settled"` // unknowns the orders decided
	Open        int          `json:"open"`    // unknowns that are left
	Method      string       `json:"method"`
	Porcupine   Verdict      `json:"porcupine"` // empty: not asked
	Confirmed   bool         `json:"confirmed"` // a linearization was found and porcupine's Step accepts it
	Laws        []Law        `json:"broken_laws"`
	Explanation *Explanation `json:"explanation,omitempty"`
	Resisted    string       `json:"resisted,omitempty"` // what was not decided

	checked Checked
	needed  []model.Operation
}

// Most operations of a window that is drawn. A picture of more says nothing to
// the eye, and porcupine would need long for it.
const mostDrawn = 300

// Picture writes porcupine's picture of the history, or, where it is too large for
// porcupine, of a window of it that is impossible by itself. It answers what is
// in the picture.
func (r Report) Picture(path string, timeout time.Duration) (what string, err error) {
	why := r.checked.Exact.Refutation
	if r.Porcupine == Linearizable || r.Porcupine == NonLinearizable || r.Porcupine != "" && why == nil {
		return fmt.Sprintf("all %d operations", len(r.checked.history.Ops)), r.checked.Picture(path)
	}
	if why == nil {
		return "", fmt.Errorf("picture %s: %s has too many operations for porcupine, %d, and no window of it that is impossible by itself", path, r.File, r.Operations)
	}
	h := r.checked.history
	w, ok := model.WindowOf(h.Initial, h.Ops, *why, mostDrawn)
	if !ok {
		return "", fmt.Errorf("picture %s: %s has too many operations for porcupine, %d, and no window of at most %d is impossible without what came before it", path, r.File, r.Operations, mostDrawn)
	}
	h.Initial, h.Ops = w.Initial, w.Ops
	c, err := Check(h, timeout, "")
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("operations %d to %d of %d, and what was pending before them, from %d units on", w.First+1, w.Last+1, r.Operations, w.Initial), c.Picture(path)
}

// section is what the first pass finds out about one history of a file.
type section struct {
	History
	shape   model.Shape
	n, open int
	audit   *Audit
}

// mostLoaded is how many operations are kept in memory at once; longer
// histories are decided while they are read.
var mostLoaded = 1 << 20

// scan reads a whole file once: a bad line must not hide behind a verdict.
func scan(path string, o Options) (sections []section, err error) {
	err = walk(path, o, func(h History, r *Reader) error {
		s := section{History: h}
		err := each(r, func(op model.Operation) {
			s.shape.Add(op)
			s.n++
			if op.Outcome == model.Unknown {
				s.open++
			}
		})
		sections = append(sections, s)
		return err
	})
	return sections, err
}

func walk(path string, o Options, visit func(History, *Reader) error) error {
	f, err := Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	r := NewReader(f, path)
	if o.Log != "" {
		log, err := foreign.NewTranslator(f, o.Log, o.Foreign)
		if err != nil {
			return err
		}
		r = NewReader(log, path)
		r.origin = log.Line
	}
	r.Resubmits = o.Resubmits
	for {
		h, err := r.NextHistory()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(h, r)
		}
		if err != nil {
			return err
		}
	}
}

func each(r *Reader, use func(model.Operation)) error {
	for {
		switch o, err := r.NextOperation(); {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		default:
			use(o)
		}
	}
}

// File is a history file that was read once and found well formed.
type File struct {
	path     string
	options  Options
	sections []section
}

// Scan reads a file to its end and refuses it when a line is bad.
func Scan(path string, o Options) (*File, error) {
	sections, err := scan(path, o)
	if err != nil {
		return nil, err
	}
	for i := range sections {
		s := &sections[i]
		if o.Audits == nil {
			continue
		}
		if s.audit = o.Audits[s.SKU]; s.audit == nil && len(sections) == 1 {
			s.audit = o.Audits[""]
		}
		if s.audit == nil {
			s.audit = new(Audit) // the truth is known, and knows no order of this SKU
		}
	}
	return &File{path, o, sections}, nil
}

// Judge judges every history of the file, in its order.
func (f *File) Judge() (reports []Report, err error) {
	at := 0
	err = walk(f.path, f.options, func(_ History, r *Reader) error {
		s := f.sections[at]
		at++
		report, err := f.judge(s, r)
		reports = append(reports, report)
		return err
	})
	return reports, err
}

func (f *File) judge(s section, r *Reader) (Report, error) {
	report := Report{File: f.path, Name: s.Name, SKU: s.SKU, Operations: s.n, Initial: s.Initial, Open: s.open, Laws: []Law{}}
	if s.n > mostLoaded && s.audit == nil {
		limits := f.options.Limits
		limits.Brief = true
		c := model.NewChecker(s.Initial, s.shape, limits)
		if err := each(r, c.Add); err != nil {
			return report, err
		}
		// A linearizable history keeps every law that answers alone can show
		// broken; of any other one the amounts are wanted.
		if j := c.Judge(); j.Ruling == model.Legal {
			report.Verdict, report.Method = j.Ruling, j.Method
			return report, nil
		}
		return report, f.reload(s, &report)
	}
	h := s.History
	h.Ops = make([]model.Operation, 0, s.n)
	if err := each(r, func(o model.Operation) { h.Ops = append(h.Ops, o) }); err != nil {
		return report, err
	}
	return report, report.fill(h, s.audit, f.options)
}

// reload reads one history again, into memory.
func (f *File) reload(s section, report *Report) error {
	return walk(f.path, f.options, func(h History, r *Reader) error {
		err := each(r, func(o model.Operation) {
			if h.SKU == s.SKU {
				h.Ops = append(h.Ops, o)
			}
		})
		if err != nil || h.SKU != s.SKU {
			return err
		}
		return report.fill(h, s.audit, f.options)
	})
}

// fill judges a history in memory.
func (r *Report) fill(h History, audit *Audit, o Options) (err error) {
	rest := model.Rest{Initial: h.Initial}
	if audit != nil {
		if h, r.Settled, rest, err = h.Settle(*audit); err != nil {
			return err
		}
		r.Open -= r.Settled
	}
	if len(h.Ops) <= o.Porcupine {
		r.checked, err = Check(h, o.Timeout, o.Save)
		r.Porcupine = r.checked.Porcupine
	} else {
		limits := o.Limits
		limits.Order = true
		r.checked = CheckExactly(h, limits)
		err = r.checked.settle(o.Save)
	}
	if err != nil {
		return err
	}
	j := r.checked.Exact
	r.Verdict, r.Method, r.Confirmed = r.checked.Verdict, j.Method, j.Ruling == model.Legal
	for _, f := range model.Laws(h.Ops, rest) {
		if f.Broken {
			r.Laws = append(r.Laws, Law{f.Property, f.Amount, f.Detail})
		}
	}
	if j.Ruling == model.Undecided {
		r.Method = "porcupine"
		if r.Verdict == model.Undecided {
			r.Method = ""
			r.Resisted = fmt.Sprintf("operations %d to %d", j.Resisted[0]+1, j.Resisted[1]+1)
		}
	}
	if j.Refutation != nil {
		r.explain(h, *j.Refutation)
	}
	return nil
}

// decisions bounds the search for a minimal part, in operations looked at.
const decisions = 20_000_000

func (r *Report) explain(h History, why model.Refutation) {
	e := &Explanation{Operation: why.Op + 1, Lowest: why.Lowest, Highest: why.Highest, Text: model.Explain(h.Initial, h.Ops, why)}
	needed, minimal := model.Minimal(h.Initial, h.Ops, why, decisions/(len(h.Ops)+1))
	for _, i := range needed {
		e.Needed = append(e.Needed, i+1)
		r.needed = append(r.needed, h.Ops[i])
	}
	e.Minimal = minimal
	r.Explanation = e
}

// mostShown bounds how many operations of an explanation are printed.
const mostShown = 12

// Text writes the report for people.
func (r Report) Text(w io.Writer) {
	fmt.Fprintf(w, "%s: %s, %d operations, %d units", r.File, r.Verdict, r.Operations, r.Initial)
	if r.Name != "" || r.SKU != "" {
		fmt.Fprintf(w, " of %s", r.SKU)
	}
	if r.Settled+r.Open > 0 {
		fmt.Fprintf(w, ", unknowns: %d settled, %d open", r.Settled, r.Open)
	}
	fmt.Fprintln(w)
	if r.Resisted != "" {
		fmt.Fprintf(w, "  %s were not decided with the work and time allowed\n", r.Resisted)
	}
	for _, l := range r.Laws {
		fmt.Fprintf(w, "  %s = %d: %s\n", l.Property, l.Amount, l.Detail)
	}
	if e := r.Explanation; e != nil {
		fmt.Fprintf(w, "  %s\n", e.Text)
		kind := "these are impossible together, whatever the others did, and none can be left out:"
		if !e.Minimal {
			kind = "these are impossible together, whatever the others did:"
		}
		fmt.Fprintf(w, "  %s\n", kind)
		for k, o := range r.needed {
			if k == mostShown {
				fmt.Fprintf(w, "    … and %d more\n", len(r.needed)-k)
				break
			}
			fmt.Fprintf(w, "    %5d  %s … %s  %s\n", e.Needed[k], model.Time(o.Call), model.Time(o.Return), o)
		}
	}
}

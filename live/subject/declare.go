package subject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// Declared is what a subject's owner says of it: the weaknesses that are known.
// Everything else is promised.
type Declared struct {
	Subject    string // the name, without the version
	Guarantees schemes.Guarantees
}

// DeclareError says what is wrong with a declaration, and where.
type DeclareError struct {
	Path string
	Line int // 0: the file as a whole
	Err  error
}

func (e *DeclareError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %v", e.Path, e.Err)
	}
	return fmt.Sprintf("%s:%d: %v", e.Path, e.Line, e.Err)
}
func (e *DeclareError) Unwrap() error { return e.Err }

// Undeclared is what is assumed of a subject of which nothing was declared: every
// law is promised; that units stay unsold is a cost, which either way is as declared.
func Undeclared() schemes.Guarantees {
	var g schemes.Guarantees
	for _, k := range faults.Kinds() {
		g.Weaknesses = append(g.Weaknesses, schemes.Weakness{
			Fault: string(k.ID), Breaks: []model.Property{model.Unsold},
			World: "explore", // so that in the other world it may show
			Why:   "a cost, not a law of safety",
		})
	}
	return g
}

// ReadDeclared reads a declaration; the error is a *DeclareError.
func ReadDeclared(path string) (Declared, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		var reason error = err
		if p, ok := err.(*os.PathError); ok {
			reason = p.Err
		}
		return Declared{}, &DeclareError{Path: path, Err: reason}
	}
	return parseDeclared(path, raw)
}

// weakness is one entry of the file.
type weakness struct {
	Fault     string   `json:"fault"`
	Workloads []string `json:"workloads"`
	Breaks    []string `json:"breaks"`
	Why       string   `json:"why"`
}

func parseDeclared(path string, raw []byte) (d Declared, err error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	// line is where the value begins that follows an offset.
	line := func(offset int64) int {
		for int(offset) < len(raw) && bytes.IndexByte([]byte(" \t\r\n,:"), raw[offset]) >= 0 {
			offset++
		}
		return 1 + bytes.Count(raw[:offset], []byte("\n"))
	}
	at := int64(0)
	bad := func(format string, args ...any) (Declared, error) {
		return Declared{}, &DeclareError{Path: path, Line: line(at), Err: fmt.Errorf(format, args...)}
	}
	open := func(want json.Delim) error {
		t, err := dec.Token()
		if err == nil && t != want {
			err = fmt.Errorf("want %v", want)
		}
		return err
	}
	if err := open('{'); err != nil {
		return bad("a declaration is a JSON object with subject and weaknesses: %v", err)
	}
	listed := false
	for dec.More() {
		at = dec.InputOffset()
		t, err := dec.Token()
		if err != nil {
			return bad("%v", err)
		}
		switch t {
		case "subject":
			if err := dec.Decode(&d.Subject); err != nil {
				return bad("subject: %v", err)
			}
		case "weaknesses":
			listed = true
			if err := open('['); err != nil {
				return bad("weaknesses: %v", err)
			}
			for dec.More() {
				at = dec.InputOffset()
				var w weakness
				if err := dec.Decode(&w); err != nil {
					return bad("weakness: %v", err)
				}
				known, err := w.known()
				if err != nil {
					return bad("weakness: %v", err)
				}
				d.Guarantees.Weaknesses = append(d.Guarantees.Weaknesses, known)
			}
			at = dec.InputOffset()
			if err := open(']'); err != nil {
				return bad("weaknesses: %v", err)
			}
		default:
			return bad("unknown field %q; there are subject, weaknesses", t)
		}
	}
	at = dec.InputOffset()
	if err := open('}'); err != nil {
		return bad("%v", err)
	}
	if dec.More() {
		return bad("something behind the declaration")
	}
	switch {
	case !nameWord.MatchString(d.Subject):
		return bad("subject %q: want the name that the subject gives itself, without the version", d.Subject)
	case !listed:
		return bad("weaknesses is missing; an empty list promises everything")
	}
	return d, nil
}

func (w weakness) known() (schemes.Weakness, error) {
	known := schemes.Weakness{Fault: w.Fault, Workloads: w.Workloads, Why: w.Why}
	kind, err := faults.ParseKind(w.Fault)
	if err != nil {
		return known, err
	}
	if !faults.PlacedLive(kind) || faults.HitsServer(kind) {
		return known, fmt.Errorf("fault %s is not placed for subjects, so nothing could show it", kind)
	}
	for _, name := range w.Workloads {
		if _, err := faults.WorkloadByName(name); err != nil {
			return known, err
		}
	}
	for _, p := range w.Breaks {
		if !slices.ContainsFunc(model.Properties(), func(i model.PropertyInfo) bool { return string(i.ID) == p }) {
			return known, fmt.Errorf("unknown property %q; stockproof list properties shows what there is", p)
		}
		known.Breaks = append(known.Breaks, model.Property(p))
	}
	switch {
	case len(w.Breaks) == 0:
		return known, fmt.Errorf("breaks is missing: which properties?")
	case w.Why == "":
		return known, fmt.Errorf("why is missing: one sentence")
	}
	return known, nil
}

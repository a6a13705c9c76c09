package evidence

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"stockproof/model"
)

// Schema names the format of evidence.json.
const Schema = "stockproof/evidence/v1"

// Report is evidence.json.
type Report struct {
	Schema string  `json:"schema"`
	Bounds Bounds  `json:"bounds"`
	Cells  []Cell  `json:"cells"`
	Facts  []Fact  `json:"facts"`
	Claims []Claim `json:"claims"` // package claims judges them
	Cost   []Cost  `json:"cost"`   // empty where nothing was measured
}

// Exit statuses of the command.
const (
	ExitOK           = 0 // as declared, or linearizable
	ExitBroken       = 1 // a verdict that differs from the declared one, or a property broken
	ExitUsage        = 2 // bad usage or bad input
	ExitNoBackend    = 3
	ExitInconclusive = 4
)

// Exit is the status the cells lead to: a verdict that differs weighs more than
// one that is missing.
func (r Report) Exit() int {
	status := ExitOK
	for _, c := range r.Claims {
		if c.Verdict == ClaimContradicted {
			return ExitBroken // what the ledger says of it is not so
		}
	}
	for _, c := range r.Cells {
		if c.ConfirmedLive != nil && !*c.ConfirmedLive {
			return ExitBroken // one of the worlds is wrong
		}
		if c.AsDeclared() {
			continue
		}
		if c.Verdict != Inconclusive {
			return ExitBroken
		}
		status = ExitInconclusive
	}
	if len(r.Cells) == 0 || r.Bounds.Incomplete != "" {
		return ExitInconclusive // not everything was looked at
	}
	return status
}

// Surprises lists the cells whose verdict is not the declared one.
func (r Report) Surprises() []Cell {
	var out []Cell
	for _, c := range r.Cells {
		if !c.AsDeclared() {
			out = append(out, c)
		}
	}
	return out
}

// JSON writes evidence.json.
func (r Report) JSON(w io.Writer) error {
	// [] rather than null
	r.Cells, r.Facts = append([]Cell{}, r.Cells...), append([]Fact{}, r.Facts...)
	r.Claims, r.Cost = append([]Claim{}, r.Claims...), append([]Cost{}, r.Cost...)
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(r)
}

// WriteFile writes evidence.json into a folder, making it.
func (r Report) WriteFile(dir string) (path string, err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	path = filepath.Join(dir, "evidence.json")
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	if err := r.JSON(f); err != nil {
		f.Close()
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, f.Close()
}

// letters is the compact form of a group's verdicts: the letter of each
// violated property, "–" when all hold, "?" when something is inconclusive,
// "!" when a verdict is not the declared one, and nothing when the fault has no
// place.
func letters(cells []Cell) string {
	var text string
	applies, doubt, surprise := false, false, false
	for _, c := range cells {
		applies = applies || c.Verdict != NotApplicable
		switch c.Verdict {
		case Violated:
			info, _ := c.Property.Info()
			text += info.Letter
		case Inconclusive:
			doubt = true
		}
		surprise = surprise || !c.AsDeclared()
	}
	if !applies {
		return ""
	}
	if text == "" && !doubt {
		text = "–"
	}
	if doubt {
		text += "?"
	}
	if surprise {
		text += " !"
	}
	return text
}

func inGroup(cells []Cell, g Group) []Cell {
	var out []Cell
	for _, c := range cells {
		if c.GroupOf() == g {
			out = append(out, c)
		}
	}
	return out
}

// legend explains the letters.
func legend() []string {
	var lines []string
	for _, p := range model.Properties() {
		lines = append(lines, fmt.Sprintf("%s %s: %s", p.Letter, p.ID, p.BrokenWhen))
	}
	return append(lines, "– everything holds, ? something is inconclusive, ! not as declared, empty: the fault has no place there")
}

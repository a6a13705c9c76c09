package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// BadEvidenceError says which line of an evidence file cannot be used, and why.
type BadEvidenceError struct {
	File   string
	Line   int // from 1; 0 where no line is to blame
	Reason string
}

func (e *BadEvidenceError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Reason)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason)
}

// ReadFile reads an evidence.json. What this program does not know is refused,
// so that nothing is left out in silence: the error is a *BadEvidenceError, or
// an *fs.PathError.
func ReadFile(path string) (Report, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return Report{}, err
	}
	return Parse(raw, path)
}

// Parse reads the text of an evidence.json; name is for errors.
func Parse(raw []byte, name string) (r Report, err error) {
	bad := func(offset int64, format string, args ...any) (Report, error) {
		line := 0
		if offset >= 0 {
			line = 1 + bytes.Count(raw[:min(offset, int64(len(raw)))], []byte("\n"))
		}
		return Report{}, &BadEvidenceError{name, line, fmt.Sprintf(format, args...)}
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		var syntax *json.SyntaxError
		var kind *json.UnmarshalTypeError
		switch {
		case errors.As(err, &syntax):
			return bad(syntax.Offset, "%v", err)
		case errors.As(err, &kind):
			return bad(kind.Offset, "%s: %s where %s is due", kind.Field, kind.Value, kind.Type)
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return bad(int64(len(raw)), "the file ends too early")
		}
		return bad(-1, "%v", err)
	}
	if dec.More() {
		return bad(dec.InputOffset(), "something follows the report")
	}
	if r.Schema != Schema {
		return bad(-1, "schema %q, this program reads %q", r.Schema, Schema)
	}
	for i, c := range r.Cells {
		if err := c.check(); err != nil {
			return bad(-1, "cell %d (%s × %s): %v", i+1, c.Scheme, c.Fault, err)
		}
	}
	return r, nil
}

// check refuses a cell whose words mean nothing. Schemes, faults and workloads
// may be other people's.
func (c Cell) check() error {
	switch c.Verdict {
	case Violated, Holds, Inconclusive, NotApplicable:
	default:
		return fmt.Errorf("unknown verdict %q", c.Verdict)
	}
	if _, ok := c.Property.Info(); !ok {
		return fmt.Errorf("unknown property %q", c.Property)
	}
	if c.Scheme == "" || c.Fault == "" || c.World == "" {
		return errors.New("scheme, fault or world is missing")
	}
	return nil
}

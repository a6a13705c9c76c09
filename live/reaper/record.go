package reaper

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// maxLine bounds one registration, in bytes: what a pipe writes in one piece.
const maxLine = 4096

const (
	kindProcess    = "process"
	kindGroup      = "group"
	kindFamily     = "family"
	kindDir        = "dir"
	kindContainers = "containers"
	kindMemory     = "memory"
	kindDone       = "done" // takes the record with this id off the list
)

// record is one line on the pipe.
type record struct {
	ID      int           `json:"id"`
	Kind    string        `json:"kind"`
	PID     int           `json:"pid,omitempty"`
	Start   uint64        `json:"start,omitempty"` // clock ticks since boot, from /proc
	Session int           `json:"session,omitempty"`
	Signal  int           `json:"signal,omitempty"`
	Grace   time.Duration `json:"grace,omitempty"` // ns
	Path    string        `json:"path,omitempty"`
	Host    string        `json:"host,omitempty"`
	Label   string        `json:"label,omitempty"`
	Segment int           `json:"segment,omitempty"`
}

// valid rejects a record that could make the reaper act on something that is not
// ours. The parent checks too; what kills and deletes does not rely on that.
func (r record) valid() error {
	switch r.Kind {
	case kindDone:
		return nil
	case kindFamily:
		if r.PID <= 1 || r.Start == 0 || !validMark(r.Label) {
			return fmt.Errorf("record %d: family of %d started at %d, marked %q, is not one to kill", r.ID, r.PID, r.Start, r.Label)
		}
		return nil
	case kindProcess, kindGroup:
		if r.PID <= 1 || r.Start == 0 {
			return fmt.Errorf("record %d: %s %d started at %d is not one to kill", r.ID, r.Kind, r.PID, r.Start)
		}
		if r.Signal < 0 || r.Signal > 64 || r.Grace < 0 {
			return fmt.Errorf("record %d: signal %d, grace %v", r.ID, r.Signal, r.Grace)
		}
		return nil
	case kindDir:
		return checkDir(r.Path)
	case kindContainers:
		if key, value, ok := strings.Cut(r.Label, "="); !ok || key == "" || value == "" {
			return fmt.Errorf("record %d: label %q is not key=value", r.ID, r.Label)
		}
		return nil
	case kindMemory:
		if r.Segment < 0 || r.PID <= 1 {
			return fmt.Errorf("record %d: segment %d of process %d", r.ID, r.Segment, r.PID)
		}
		return nil
	default:
		return fmt.Errorf("record %d: unknown kind %q", r.ID, r.Kind)
	}
}

// readRecords reads registrations until the pipe closes and returns what is still
// registered, in order. A bad line is reported through complain and left out: the
// rest must still be cleaned up. The last line counts only when it is whole.
func readRecords(in io.Reader, complain func(error)) []record {
	var live []record
	lines := newLineReader(in, maxLine)
	for {
		line, err := lines.next()
		if err == io.EOF {
			return live
		}
		if err != nil {
			complain(err)
			continue
		}
		var rec record
		if err := json.Unmarshal(line, &rec); err != nil {
			complain(fmt.Errorf("registration %.80q: %w", line, err))
			continue
		}
		if err := rec.valid(); err != nil {
			complain(err)
			continue
		}
		if rec.Kind == kindDone {
			live = slices.DeleteFunc(live, func(r record) bool { return r.ID == rec.ID })
			continue
		}
		live = append(live, rec)
	}
}

package histories

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"stockproof/model"
)

// saved is a history file that is written while its history is recorded. Each
// operation has its line from its call on, as an open unknown; its return is
// written over the blanks at the end of that line. So the file is a history at any moment,
// and a program that is killed, even with SIGKILL, leaves what it had seen:
// nothing is kept back in the program.
type saved struct {
	file  *os.File
	end   int64
	lines []savedLine // by handle
	err   error
}

type savedLine struct {
	at    int64 // in the file
	width int   // without the line's end
}

// answerRoom is how many bytes an answer needs more than no answer: a return of
// 19 digits for null, "value":n of as many, and longer words.
const answerRoom = 64

// SaveTo writes the history to a file from now on, making its folder. Close the
// recorder afterwards. An error of a later write is told by Close.
func (r *Recorder) SaveTo(path string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// Under its name there is never a file without a header.
	file, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	header, err := json.Marshal(headerLine{r.h.Name, r.h.SKU, &r.h.Initial})
	if err != nil {
		file.Close()
		return err
	}
	r.saved = &saved{file: file}
	r.saved.write(0, header, len(header))
	r.saved.end = int64(len(header)) + 1
	for _, o := range r.h.Ops {
		r.saved.call(o)
	}
	if err := os.Rename(file.Name(), path); err != nil {
		r.saved.fail(err)
	}
	return r.saved.err
}

// Close ends the file of SaveTo; without one it does nothing.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.saved == nil {
		return nil
	}
	s := r.saved
	r.saved = nil
	if err := s.file.Close(); s.err == nil {
		s.err = err
	}
	return s.err
}

// write puts a text into its place, filled up with blanks, in one call: what is
// killed in between has written all or nothing of it.
func (s *saved) write(at int64, text []byte, width int) {
	if len(text) > width {
		s.fail(fmt.Errorf("history line of %d bytes does not fit into %d", len(text), width))
		return
	}
	line := append(append(bytes.Clone(text), bytes.Repeat([]byte{' '}, width-len(text))...), '\n')
	if _, err := s.file.WriteAt(line, at); err != nil {
		s.fail(err)
	}
}

func (s *saved) fail(err error) {
	if s.err == nil {
		s.err = fmt.Errorf("save the history: %w", err)
	}
}

// call appends an operation; nil-safe as return is, since most histories are
// written when they are complete.
func (s *saved) call(o model.Operation) {
	if s == nil {
		return
	}
	text := s.text(o)
	l := savedLine{s.end, len(text) + answerRoom}
	s.write(l.at, text, l.width)
	s.lines, s.end = append(s.lines, l), s.end+int64(l.width)+1
}

func (s *saved) answered(handle int, o model.Operation) {
	if s == nil {
		return
	}
	l := s.lines[handle]
	s.write(l.at, s.text(o), l.width)
}

func (s *saved) text(o model.Operation) []byte {
	text, err := json.Marshal(lineOf(&o))
	if err != nil {
		s.fail(err)
	}
	return text
}

// Package tail keeps the last lines of what a process writes, in bounded memory.
package tail

import (
	"bytes"
	"strings"
	"sync"
)

// Limits of what is kept.
const (
	keptLines = 25
	keptWidth = 500 // bytes of one line
)

// Log takes what a process writes, keeps the last lines, and tells when the line
// that means "ready" has come. It is an io.Writer that never fails.
type Log struct {
	isReady func(line string) bool // called for each line in order, until it says true

	mu      sync.Mutex
	partial []byte
	lines   []string
	ready   chan struct{}
	done    bool
}

// New asks isReady about each line until it says true; nil: nobody waits for one.
func New(isReady func(string) bool) *Log {
	return &Log{isReady: isReady, ready: make(chan struct{})}
}

// Write implements io.Writer.
func (t *Log) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := keptWidth - len(t.partial); room > 0 {
			t.partial = append(t.partial, line[:min(room, len(line))]...)
		}
		rest = after
		if !whole {
			break
		}
		t.add(strings.TrimRight(string(t.partial), "\r "))
		t.partial = t.partial[:0]
	}
	return len(p), nil
}

func (t *Log) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > keptLines {
		t.lines = t.lines[len(t.lines)-keptLines:]
	}
	if !t.done && t.isReady != nil && t.isReady(line) {
		t.done = true
		close(t.ready)
	}
}

// Ready is closed when the line that means "ready" has come.
func (t *Log) Ready() <-chan struct{} { return t.ready }

// Last returns the lines kept, the unfinished one included.
func (t *Log) Last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.lines...)
	if rest := strings.TrimSpace(string(t.partial)); rest != "" {
		lines = append(lines, rest)
	}
	return lines
}

package servers

import (
	"bytes"
	"strings"
	"sync"
)

// Limits of what is kept of a server's log.
const (
	tailLines = 25
	tailWidth = 500 // bytes of one line
)

// tail takes a server's log, keeps the last lines, and tells when the line that
// means "ready" has come. It is an io.Writer that never fails.
type tail struct {
	isReady func(line string) bool // called for each line in order, until it says true

	mu      sync.Mutex
	partial []byte
	lines   []string
	ready   chan struct{}
	done    bool
}

func newTail(isReady func(string) bool) *tail {
	return &tail{isReady: isReady, ready: make(chan struct{})}
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for rest := p; len(rest) > 0; {
		line, after, whole := bytes.Cut(rest, []byte("\n"))
		if room := tailWidth - len(t.partial); room > 0 {
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

func (t *tail) add(line string) {
	if strings.TrimSpace(line) == "" {
		return
	}
	t.lines = append(t.lines, line)
	if len(t.lines) > tailLines {
		t.lines = t.lines[len(t.lines)-tailLines:]
	}
	if !t.done && t.isReady(line) {
		t.done = true
		close(t.ready)
	}
}

// last returns the lines kept, the unfinished one included.
func (t *tail) last() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := append([]string(nil), t.lines...)
	if rest := strings.TrimSpace(string(t.partial)); rest != "" {
		lines = append(lines, rest)
	}
	return lines
}

// redisReady recognises the line after which Redis accepts connections.
func redisReady() func(string) bool {
	return func(line string) bool { return strings.Contains(line, "Ready to accept connections") }
}

// sentinelReady recognises the line that a sentinel writes when it listens: it has
// none about connections.
func sentinelReady() func(string) bool {
	return func(line string) bool { return strings.Contains(line, "Sentinel ID is") }
}

// postgresReady recognises the line after which PostgreSQL accepts connections on
// TCP. The official image first runs a server without TCP to set itself up, and
// that one says "ready" as well, so a line about the address must have come before.
func postgresReady() func(string) bool {
	listens := false
	return func(line string) bool {
		if strings.Contains(line, "listening on IPv4 address") {
			listens = true
		}
		return listens && strings.Contains(line, "database system is ready to accept connections")
	}
}

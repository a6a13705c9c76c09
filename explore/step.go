package explore

import (
	"fmt"
	"strconv"
	"strings"

	"stockproof/model"
)

// step is one command to Redis or one SQL statement. It is comparable.
type step struct {
	sql  bool
	args string // see joinArgs; for SQL the statement and its arguments
	conn int    // SQL connection of the client it goes over
	// Redis: the connection it goes over plus one, where the server may know
	// something of it (see redisstore.Session), and whether it must.
	on    int
	holds bool
}

func (s step) less(t step) bool {
	if s.sql != t.sql {
		return !s.sql
	}
	if s.args != t.args {
		return s.args < t.args
	}
	if s.conn != t.conn {
		return s.conn < t.conn
	}
	return s.on < t.on
}

// joinArgs packs words into one comparable string; splitArgs undoes it.
func joinArgs(args []string) string {
	var b strings.Builder
	size := 0
	for _, a := range args {
		size += len(a) + 4
	}
	b.Grow(size)
	for _, a := range args {
		b.WriteString(strconv.Itoa(len(a)))
		b.WriteByte(':')
		b.WriteString(a)
	}
	return b.String()
}

func splitArgs(s string) []string {
	var args []string
	for s != "" {
		i := strings.IndexByte(s, ':')
		n, _ := strconv.Atoi(s[:i])
		args = append(args, s[i+1:i+1+n])
		s = s[i+1+n:]
	}
	return args
}

// renamed is the step with other names in its words.
func (s step) renamed(r *strings.Replacer) step {
	words := splitArgs(s.args)
	for i := range words {
		words[i] = r.Replace(words[i])
	}
	s.args = joinArgs(words)
	return s
}

func (s step) String() string { return strings.Join(splitArgs(s.args), " ") }

// eventKind is what can happen to a client.
type eventKind uint8

const (
	replied eventKind = iota + 1 // a parked step is answered
	cut                          // the connection of a parked step breaks
	told                         // a message arrives on a subscription
	elapsed                      // time passes
)

// event is one thing that happens to a client. It is comparable, so a node can
// find the child it leads to.
type event struct {
	kind    eventKind
	index   int    // of the parked step
	text    string // raw reply, or channel and payload
	advance int64  // milliseconds
}

func (e event) String() string {
	switch e.kind {
	case replied:
		return fmt.Sprintf("reply %q to step %d", e.text, e.index)
	case cut:
		return fmt.Sprintf("connection of step %d cut", e.index)
	case told:
		return fmt.Sprintf("message %q", splitArgs(e.text))
	}
	return fmt.Sprintf("%d ms pass", e.advance)
}

// action is what a client is asked to run: an operation, or one of the
// scheme's other methods.
type action string

const (
	deduct  = action(model.Deduct)
	restock = action(model.Restock)
	read    = action(model.Read)
	load    = action("load")

	reconcile = action("reconcile")
	orders    = action("orders")
	work      = action(model.Work)
)

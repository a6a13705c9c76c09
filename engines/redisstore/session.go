package redisstore

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
)

// Session is what a server knows of one connection beyond its last command: the
// keys it watches, whether one of them was touched, and what it has queued
// since MULTI. A connection of which there is nothing to know has none.
type Session struct {
	Name    string   // the caller's name for the connection
	Watched []string // sorted
	Dirty   bool     // a watched key was touched: EXEC will do nothing
	Multi   bool
	Queue   [][]string // since MULTI; refused ones too, they make EXEC refuse
}

func (c Session) encode(b *strings.Builder) {
	fmt.Fprintf(b, "session %q dirty=%t multi=%t", c.Name, c.Dirty, c.Multi)
	for _, k := range c.Watched {
		b.WriteString(" watch " + strconv.Quote(k))
	}
	for _, args := range c.Queue {
		b.WriteString(" queued")
		for _, a := range args {
			b.WriteString(" " + strconv.Quote(a))
		}
	}
	b.WriteByte('\n')
}

func (c Session) renamed(r *strings.Replacer) Session {
	all := func(words []string) (list []string) {
		for _, w := range words {
			list = append(list, r.Replace(w))
		}
		return list
	}
	c.Name, c.Watched = r.Replace(c.Name), all(c.Watched)
	slices.Sort(c.Watched)
	queue := c.Queue
	c.Queue = nil
	for _, args := range queue {
		c.Queue = append(c.Queue, all(args))
	}
	return c
}

// Session finds what the server knows of a connection.
func (s State) Session(name string) (Session, bool) {
	for _, c := range s.Sessions {
		if c.Name == name {
			return c, true
		}
	}
	return Session{}, false
}

// WithoutSessions is the state after the connections ended that a function
// chooses by name.
func (s State) WithoutSessions(ended func(name string) bool) State {
	s.Sessions = slices.DeleteFunc(slices.Clone(s.Sessions), func(c Session) bool { return ended(c.Name) })
	if len(s.Sessions) == 0 {
		s.Sessions = nil
	}
	return s
}

// touched are sessions after a key was touched.
func touched(sessions []Session, key string) []Session {
	sessions = slices.Clone(sessions)
	for i := range sessions {
		sessions[i].Dirty = sessions[i].Dirty || slices.Contains(sessions[i].Watched, key)
	}
	return sessions
}

// talk is a question that involves sessions. Each is put on a connection of its
// own in the way it came about, by WATCH, MULTI and the queued commands, and what
// became of it is asked of the server afterwards: whether a key counts as
// touched is the server's to say.
type talk struct {
	main    func(args []string) (string, error) // a connection without a session
	dial    func() (net.Conn, error)
	conns   []net.Conn
	acting  *line
	watches []*line // of the others that are not dirty yet
	kept    []Session
	command string
	reply   string
	args    []string
}

// line is a connection with its session.
type line struct {
	conn    net.Conn
	r       *bufio.Reader
	session Session
}

func (l *line) do(args ...string) (string, error) { return roundTrip(l.conn, l.r, args) }

func newTalk(main func([]string) (string, error), dial func() (net.Conn, error)) *talk {
	return &talk{main: main, dial: dial}
}

func (t *talk) close() {
	for _, c := range t.conns {
		c.Close() // nothing is in flight on it
	}
}

func (t *talk) open(c Session) (*line, error) {
	conn, err := t.dial()
	if err != nil {
		return nil, fmt.Errorf("connection for session %s: %w", c.Name, err)
	}
	t.conns = append(t.conns, conn)
	return &line{conn: conn, r: bufio.NewReader(conn), session: c}, nil
}

// mark is a key that no scheme has; touching it makes a session dirty.
const mark = "\x00stockproof:touched"

// unlike are the commands inside of a transaction that servers treat
// differently: Redis 7 refuses WATCH and MULTI and makes EXEC refuse, Redis 6 does
// not; miniredis obeys UNWATCH at once.
var unlike = set("WATCH UNWATCH MULTI")

// ask brings the sessions about and sends the command on the one named.
func (t *talk) ask(s State, name string, args []string) (string, error) {
	if c, _ := s.Session(name); c.Multi && unlike[strings.ToUpper(args[0])] {
		return "", fmt.Errorf("%w: command %s inside of a transaction", ErrOutside, strings.ToUpper(args[0]))
	}
	for _, c := range s.Sessions {
		if c.Name == name {
			continue
		}
		if c.Dirty || len(c.Watched) == 0 {
			t.kept = append(t.kept, c) // no command of others can change it
			continue
		}
		l, err := t.open(c)
		if err != nil {
			return "", err
		}
		if err := expect(l, "+OK\r\n", append([]string{"WATCH"}, c.Watched...)...); err != nil {
			return "", err
		}
		t.watches = append(t.watches, l)
	}
	t.args, t.command = args, strings.ToUpper(args[0])
	if name == "" {
		var err error
		t.reply, err = t.main(args)
		return t.reply, err
	}
	c, known := s.Session(name)
	if !known {
		c = Session{Name: name}
	}
	l, err := t.open(c)
	if err != nil {
		return "", err
	}
	t.acting = l
	if len(c.Watched) > 0 {
		err = expect(l, "+OK\r\n", append([]string{"WATCH"}, c.Watched...)...)
	}
	if c.Dirty && err == nil {
		err = errors.Join(expect(l, "+OK\r\n", "WATCH", mark), t.touch())
	}
	if c.Multi && err == nil {
		err = expect(l, "+OK\r\n", "MULTI")
		for _, queued := range c.Queue {
			if _, e := l.do(queued...); e != nil {
				err = errors.Join(err, e)
			}
		}
	}
	if err != nil {
		return "", err
	}
	t.reply, err = l.do(args...)
	return t.reply, err
}

// touch makes who watches the mark dirty and leaves nothing behind.
func (t *talk) touch() error {
	for _, args := range [][]string{{"SET", mark, "1"}, {"DEL", mark}} {
		if _, err := t.main(args); err != nil {
			return err
		}
	}
	return nil
}

func expect(l *line, want string, args ...string) error {
	reply, err := l.do(args...)
	if err == nil && reply != want {
		err = fmt.Errorf("%s answered %s", args[0], Pretty(reply))
	}
	return err
}

// after answers what the server knows of the connections now. Call it last: it
// ends what they were in the middle of.
func (t *talk) after() ([]Session, error) {
	sessions := t.kept
	if l := t.acting; l != nil {
		c := l.session.told(t.command, t.args, t.reply)
		if !c.Multi && len(c.Watched) > 0 && !c.Dirty {
			if err := l.isDirty(&c); err != nil {
				return nil, err
			}
		}
		if c.Multi || len(c.Watched) > 0 {
			sessions = append(sessions, c)
		}
	}
	for _, l := range t.watches {
		c := l.session
		if err := l.isDirty(&c); err != nil {
			return nil, err
		}
		sessions = append(sessions, c)
	}
	return sessions, nil
}

// isDirty asks by an empty transaction.
func (l *line) isDirty(c *Session) error {
	if err := expect(l, "+OK\r\n", "MULTI"); err != nil {
		return err
	}
	reply, err := l.do("EXEC")
	switch {
	case err != nil:
		return err
	case reply == "*-1\r\n":
		c.Dirty = true
	case reply != "*0\r\n":
		return fmt.Errorf("an empty transaction answered %s", Pretty(reply))
	}
	return nil
}

// told is a session after a command of its own and the reply to it.
func (c Session) told(command string, args []string, reply string) Session {
	failed := strings.HasPrefix(reply, "-")
	switch {
	case c.Multi && (command == "EXEC" || command == "DISCARD") && len(args) == 1:
		return Session{Name: c.Name} // whatever came of it
	case c.Multi:
		// Queued, or refused, which makes EXEC refuse: sent again, either comes out again.
		c.Queue = append(slices.Clone(c.Queue), args)
	case failed:
	case command == "MULTI":
		c.Multi = true
	case command == "WATCH":
		c.Watched = append(slices.Clone(c.Watched), args[1:]...)
		slices.Sort(c.Watched)
		c.Watched = slices.Compact(c.Watched)
	case command == "UNWATCH":
		c.Watched, c.Dirty = nil, false
	}
	return c
}

package redisstore

import (
	"bufio"
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"

	"github.com/alicebob/miniredis/v2"
)

// Mini is miniredis, embedded: no process, no socket.
type Mini struct {
	mu     sync.Mutex
	server *miniredis.Miniredis
	conn   net.Conn
	r      *bufio.Reader

	listener *miniredis.Subscriber
	messages chan Message
	ended    chan struct{}

	// Connections are opened by a goroutine of the engine's own: who asks may be
	// in a synctest bubble, and the server is not.
	dials   chan struct{}
	dialled chan dialled

	scripts string // the SHAs the server has loaded, joined
	ends    int
}

// NewMini starts an embedded Redis.
func NewMini() (*Mini, error) {
	server := miniredis.NewMiniRedis()
	conn, err := server.Dial()
	if err != nil {
		return nil, fmt.Errorf("start miniredis: %w", err)
	}
	m := &Mini{server: server, conn: conn, r: bufio.NewReader(conn),
		messages: make(chan Message, 1024), ended: make(chan struct{}), dials: make(chan struct{}), dialled: make(chan dialled)}
	go func() {
		for range m.dials {
			conn, err := server.Dial()
			m.dialled <- dialled{conn, err}
		}
	}()
	m.listener = server.NewSubscriber()
	m.listener.Psubscribe("*")
	go func() {
		defer close(m.ended)
		for msg := range m.listener.Pmessages() {
			m.messages <- Message{msg.Channel, msg.Message}
		}
	}()
	return m, nil
}

// Close ends the server.
func (m *Mini) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	close(m.dials)
	err := m.conn.Close()
	m.server.Close()
	m.listener.Close()
	<-m.ended
	return err
}

// Exec implements Engine.
func (m *Mini) Exec(s State, args []string) (Result, error) { return m.ExecOn(s, "", args) }

// ExecOn implements Engine.
func (m *Mini) ExecOn(s State, session string, args []string) (Result, error) {
	if err := checkOn(session, args); err != nil {
		return Result{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.restore(s); err != nil {
		return Result{}, fmt.Errorf("restore state in miniredis: %w", err)
	}
	m.scripts = "?"
	if session == "" && len(s.Sessions) == 0 {
		reply, err := m.roundTrip(args)
		if err != nil {
			return Result{}, fmt.Errorf("miniredis %s: %w", args[0], err)
		}
		after, err := m.dump(s, args, reply)
		if err != nil {
			return Result{}, err
		}
		return Result{Reply: reply, State: after, Messages: m.published()}, nil
	}
	talk := newTalk(m.roundTrip, m.dial)
	defer talk.close()
	reply, err := talk.ask(s, session, args)
	if err != nil {
		return Result{}, fmt.Errorf("miniredis %s: %w", args[0], err)
	}
	after, err := m.dump(s, args, reply)
	if err != nil {
		return Result{}, err
	}
	sent := m.published()
	if after.Sessions, err = talk.after(); err != nil {
		return Result{}, fmt.Errorf("miniredis %s: %w", args[0], err)
	}
	return Result{Reply: reply, State: after.sorted(), Messages: sent}, nil
}

func (m *Mini) roundTrip(args []string) (string, error) { return roundTrip(m.conn, m.r, args) }

type dialled struct {
	conn net.Conn
	err  error
}

// dial opens one more connection to the server.
func (m *Mini) dial() (net.Conn, error) {
	m.dials <- struct{}{}
	d := <-m.dialled
	return d.conn, d.err
}

// roundTrip sends a command and reads its reply.
func roundTrip(conn net.Conn, r *bufio.Reader, args []string) (string, error) {
	wrote := make(chan error, 1)
	go func() { // net.Pipe has no buffer: the reply must be read meanwhile
		_, err := conn.Write(AppendCommand(nil, args))
		wrote <- err
	}()
	reply, err := ReadReply(r)
	if werr := <-wrote; werr != nil {
		return "", werr
	}
	return reply, err
}

func (m *Mini) restore(s State) error {
	m.server.FlushAll()
	for _, k := range s.Keys {
		switch k.Type {
		case String:
			if err := m.server.Set(k.Name, k.Values[0]); err != nil {
				return err
			}
		case Hash:
			m.server.HSet(k.Name, k.Values...)
		case List:
			if _, err := m.server.RPush(k.Name, k.Values...); err != nil {
				return err
			}
		case Stream:
			for _, command := range k.rebuild() {
				reply, err := m.roundTrip(command)
				if err == nil && strings.HasPrefix(reply, "-") {
					err = fmt.Errorf("%s: %s", command[0], Pretty(reply))
				}
				if err != nil {
					return err
				}
			}
		case Set:
			if _, err := m.server.SAdd(k.Name, k.Values...); err != nil {
				return err
			}
		}
		if k.TTL > 0 {
			m.server.SetTTL(k.Name, k.TTL)
		}
	}
	if want := strings.Join(s.shas(), " "); want != m.scripts {
		if _, err := m.roundTrip([]string{"SCRIPT", "FLUSH"}); err != nil {
			return err
		}
		for _, sha := range s.shas() {
			if _, err := m.roundTrip([]string{"SCRIPT", "LOAD", s.Scripts[sha]}); err != nil {
				return err
			}
		}
		m.scripts = want
	}
	return nil
}

func (m *Mini) dump(before State, args []string, reply string) (State, error) {
	var s State
	for _, name := range m.server.Keys() {
		k := Key{Name: name, Type: Type(m.server.Type(name)), TTL: m.server.TTL(name)}
		switch k.Type {
		case String:
			v, err := m.server.Get(name)
			if err != nil {
				return State{}, err
			}
			k.Values = []string{v}
		case Hash:
			fields, err := m.server.HKeys(name)
			if err != nil {
				return State{}, err
			}
			for _, f := range fields {
				k.Values = append(k.Values, f, m.server.HGet(name, f))
			}
		case List:
			values, err := m.server.List(name)
			if err != nil {
				return State{}, err
			}
			k.Values = append([]string(nil), values...)
		case Set:
			values, err := m.server.SMembers(name)
			if err != nil {
				return State{}, err
			}
			k.Values = append([]string(nil), values...)
		case Stream:
			values, err := m.stream(name)
			if err != nil {
				return State{}, err
			}
			k.Values = values
		default:
			return State{}, fmt.Errorf("%w: %s made key %s of type %s", ErrOutside, args[0], name, k.Type)
		}
		s.Keys = append(s.Keys, k)
	}
	s.Scripts = before.Scripts
	source, loads := loadedBy(args)
	switch {
	case loads:
		sha := SHA1(source)
		// Redis caches a script once it is compiled, also when running it fails;
		// miniredis only when it succeeds. So ask whether it compiles.
		if countsKeys(args) {
			compiled, err := m.roundTrip([]string{"SCRIPT", "LOAD", source})
			if err != nil {
				return State{}, err
			}
			if strings.HasPrefix(compiled, "$") {
				s = s.withScript(sha, source)
			}
		}
	case strings.EqualFold(args[0], "SCRIPT") && len(args) > 1 && strings.EqualFold(args[1], "FLUSH"):
		s.Scripts = nil
	}
	m.scripts = strings.Join(s.shas(), " ")
	return s.sorted(), nil
}

// stream reads a stream.
func (m *Mini) stream(name string) ([]string, error) {
	ask := func(args ...string) (any, error) {
		reply, err := m.roundTrip(args)
		if err != nil {
			return nil, err
		}
		return parseReply(reply)
	}
	entries, err := ask("XRANGE", name, "-", "+")
	if err != nil {
		return nil, err
	}
	groups, err := ask("XINFO", "GROUPS", name)
	if err != nil {
		return nil, err
	}
	var pending []any
	for _, g := range items(groups) {
		p, err := ask("XPENDING", name, fmt.Sprint(items(g)[1]), "-", "+", manyPending)
		if err != nil {
			return nil, err
		}
		pending = append(pending, p)
	}
	s, err := readStream(entries, groups, pending)
	return s.values(), err
}

// published reads what was published since the last call: a message of our own
// marks the end.
func (m *Mini) published() []Message {
	m.ends++
	end := strconv.Itoa(m.ends)
	m.server.Publish(endChannel, end)
	var messages []Message
	for msg := range m.messages {
		if msg == (Message{endChannel, end}) {
			break
		}
		messages = append(messages, msg)
	}
	return messages
}

// endChannel carries our own marks and nothing else.
const endChannel = "\x00stockproof:end"

// SHA1 is the name under which Redis caches a script.
func SHA1(source string) string {
	sum := sha1.Sum([]byte(source))
	return hex.EncodeToString(sum[:])
}

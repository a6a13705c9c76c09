package redisstore

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// ErrNoServer: redis-server could not be found or started.
var ErrNoServer = errors.New("no redis-server")

// Server is the real redis-server as an engine: a process of its own on a Unix
// socket in a temporary folder, without persistence.
//
// A question is one transaction: empty the server, load the state, run the
// command, read everything back, with the clock read at both ends. When the
// clock moved by a millisecond meanwhile the question is asked again, so that
// times to live come out exact.
type Server struct {
	mu    sync.Mutex
	cmd   *exec.Cmd
	stdin io.Closer
	dir   string
	conn  net.Conn
	r     *bufio.Reader
	sub   net.Conn
	subR  *bufio.Reader
	ends  int

	socket string
}

// keeper stands between this process and redis-server: its standard input ends
// when this process does, however that happens, and then it ends the server
// and removes the folder.
const keeper = `"$1" --port 0 --unixsocket "$2" --save "" --appendonly no --dir "$3" >/dev/null 2>&1 &
server=$!
cat >/dev/null
kill -9 $server
wait $server
rm -rf "$3"`

// StartServer starts redis-server from PATH.
func StartServer() (*Server, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	dir, err := os.MkdirTemp("", "stockproof-redis-")
	if err != nil {
		return nil, err
	}
	socket := filepath.Join(dir, "s")
	s := &Server{dir: dir, socket: socket}
	s.cmd = exec.Command("sh", "-c", keeper, "keeper", path, socket, dir)
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for us to pass on
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	if err := s.connect(socket); err != nil {
		s.Close()
		return nil, fmt.Errorf("%w: %w", ErrNoServer, err)
	}
	return s, nil
}

// startupLimit is how long redis-server may take to listen.
const startupLimit = 10 * time.Second

func (s *Server) connect(socket string) error {
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(startupLimit)
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			s.conn, s.r = conn, bufio.NewReader(conn)
			break
		}
		select {
		case <-tick.C:
		case <-limit:
			return fmt.Errorf("redis-server does not listen after %v: %w", startupLimit, err)
		}
	}
	sub, err := net.Dial("unix", socket)
	if err != nil {
		return err
	}
	s.sub, s.subR = sub, bufio.NewReader(sub)
	if _, err := sub.Write(AppendCommand(nil, []string{"PSUBSCRIBE", "*"})); err != nil {
		return err
	}
	_, err = ReadReply(s.subR)
	return err
}

// Close ends the process and removes its folder.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		s.conn.Close()
	}
	if s.sub != nil {
		s.sub.Close()
	}
	s.stdin.Close()
	s.cmd.Wait() // the shell has ended the server and removed the folder by then
	return os.RemoveAll(s.dir)
}

// dumpScript reads a whole data set: for each key name, type, TTL and values.
const dumpScript = `local out = {}
for _, k in ipairs(redis.call('KEYS', '*')) do
  local t = redis.call('TYPE', k).ok
  local v = {}
  if t == 'string' then v = {redis.call('GET', k)}
  elseif t == 'hash' then v = redis.call('HGETALL', k)
  elseif t == 'list' then v = redis.call('LRANGE', k, 0, -1)
  elseif t == 'set' then v = redis.call('SMEMBERS', k)
  elseif t == 'stream' then
    local groups, pending = redis.call('XINFO', 'GROUPS', k), {}
    for i, g in ipairs(groups) do pending[i] = redis.call('XPENDING', k, g[2], '-', '+', ARGV[1]) end
    v = {redis.call('XRANGE', k, '-', '+'), groups, pending}
  end
  out[#out + 1] = {k, t, redis.call('PTTL', k), v}
end
return out`

// attempts bounds how often a question is asked again because the clock moved.
const attempts = 1000

// Exec implements Engine.
func (s *Server) Exec(state State, args []string) (Result, error) { return s.ExecOn(state, "", args) }

// ExecOn implements Engine.
func (s *Server) ExecOn(state State, session string, args []string) (Result, error) {
	if err := checkOn(session, args); err != nil {
		return Result{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	ask := s.ask
	if session != "" || len(state.Sessions) > 0 {
		ask = func(state State, args []string) (Result, bool, error) { return s.askOn(state, session, args) }
	}
	for range attempts {
		r, steady, err := ask(state, args)
		if err != nil {
			return Result{}, fmt.Errorf("redis-server %s: %w", args[0], err)
		}
		if steady {
			return r, nil
		}
	}
	return Result{}, fmt.Errorf("redis-server %s: the clock moved in each of %d attempts", args[0], attempts)
}

func (s *Server) ask(state State, args []string) (r Result, steady bool, err error) {
	source, loads := loadedBy(args)
	sha := SHA1(source)
	s.ends++
	end := strconv.Itoa(s.ends)

	var b []byte
	n := 0
	send := func(words ...string) int {
		b = AppendCommand(b, words)
		n++
		return n - 1
	}
	send("TIME")
	for _, words := range restoring(state) {
		send(words...)
	}
	asked := send(args...)
	exists := send("SCRIPT", "EXISTS", sha)
	dumped := send("EVAL", dumpScript, "0", manyPending)
	send("PUBLISH", endChannel, end)
	clock := send("TIME")

	all := AppendCommand(nil, []string{"MULTI"})
	all = append(all, b...)
	all = AppendCommand(all, []string{"EXEC"})
	wrote := make(chan error, 1)
	go func() { _, err := s.conn.Write(all); wrote <- err }()
	replies, err := s.exec(n)
	if werr := <-wrote; err == nil {
		err = werr
	}
	if err != nil {
		return Result{}, false, err
	}
	if r.Messages, err = s.messages(end); err != nil {
		return Result{}, false, err
	}
	r.Reply = replies[asked]
	if r.State, err = parseDump(replies[dumped]); err != nil {
		return Result{}, false, fmt.Errorf("after %s: %w", args[0], err)
	}
	r.State.Scripts = state.Scripts
	r.State = rescripted(r.State, args, loads && replies[exists] == "*1\r\n:1\r\n", sha, source)
	same, err := sameMillisecond(replies[0], replies[clock])
	return r, same, err
}

// restoring are the commands that make an empty server hold a state.
func restoring(state State) [][]string {
	list := [][]string{{"FLUSHALL"}, {"SCRIPT", "FLUSH"}}
	for _, sha := range state.shas() {
		list = append(list, []string{"SCRIPT", "LOAD", state.Scripts[sha]})
	}
	for _, k := range state.Keys {
		if k.Type == Stream {
			list = append(list, k.rebuild()...)
		} else {
			verb := map[Type]string{String: "SET", Hash: "HSET", List: "RPUSH", Set: "SADD"}[k.Type]
			list = append(list, append([]string{verb, k.Name}, k.Values...))
		}
		if k.TTL > 0 {
			list = append(list, []string{"PEXPIRE", k.Name, strconv.FormatInt(k.TTL.Milliseconds(), 10)})
		}
	}
	return list
}

// rescripted is the script cache of a state after a command.
func rescripted(s State, args []string, loaded bool, sha, source string) State {
	switch {
	case loaded:
		return s.withScript(sha, source)
	case strings.EqualFold(args[0], "SCRIPT") && len(args) > 1 && strings.EqualFold(args[1], "FLUSH"):
		s.Scripts = nil
	}
	return s
}

// askOn asks a question that involves sessions: several connections, so no one
// transaction can hold it all. It is steady when the clock cannot have made a
// difference.
func (s *Server) askOn(state State, session string, args []string) (r Result, steady bool, err error) {
	do := func(words ...string) (reply string) {
		if err == nil {
			reply, err = roundTrip(s.conn, s.r, words)
		}
		return reply
	}
	clock := do("TIME")
	for _, words := range restoring(state) {
		do(words...)
	}
	if err != nil {
		return Result{}, false, err
	}
	talk := newTalk(func(args []string) (string, error) { return roundTrip(s.conn, s.r, args) }, s.dial)
	defer talk.close()
	if r.Reply, err = talk.ask(state, session, args); err != nil {
		return Result{}, false, err
	}
	source, loads := loadedBy(args)
	sha := SHA1(source)
	exists := do("SCRIPT", "EXISTS", sha)
	dumped := do("EVAL", dumpScript, "0")
	s.ends++
	end := strconv.Itoa(s.ends)
	do("PUBLISH", endChannel, end)
	later := do("TIME")
	if err != nil {
		return Result{}, false, err
	}
	if r.Messages, err = s.messages(end); err != nil {
		return Result{}, false, err
	}
	if r.State, err = parseDump(dumped); err != nil {
		return Result{}, false, fmt.Errorf("after %s: %w", args[0], err)
	}
	r.State.Scripts = state.Scripts
	r.State = rescripted(r.State, args, loads && exists == "*1\r\n:1\r\n", sha, source)
	if r.State.Sessions, err = talk.after(); err != nil {
		return Result{}, false, err
	}
	r.State = r.State.sorted()
	_, expires := state.NextExpiry()
	_, will := r.State.NextExpiry()
	if !expires && !will {
		return r, true, nil
	}
	steady, err = sameMillisecond(clock, later)
	return r, steady, err
}

// dial opens one more connection to the server.
func (s *Server) dial() (net.Conn, error) { return net.Dial("unix", s.socket) }

// exec reads the answers to MULTI, to n queued commands, and to EXEC.
func (s *Server) exec(n int) ([]string, error) {
	var refused string
	for range n + 1 {
		reply, err := ReadReply(s.r)
		if err != nil {
			return nil, err
		}
		if strings.HasPrefix(reply, "-") && refused == "" {
			refused = reply
		}
	}
	head, err := s.r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	if refused != "" {
		return nil, fmt.Errorf("%w: refused inside of a transaction: %s", ErrOutside, Pretty(refused))
	}
	if head != fmt.Sprintf("*%d\r\n", n) {
		return nil, fmt.Errorf("EXEC answered %q", head)
	}
	replies := make([]string, n)
	for i := range replies {
		if replies[i], err = ReadReply(s.r); err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// messages reads what was published up to our own mark.
func (s *Server) messages(end string) ([]Message, error) {
	var list []Message
	for {
		raw, err := ReadReply(s.subR)
		if err != nil {
			return nil, err
		}
		v, err := parseReply(raw)
		if err != nil {
			return nil, err
		}
		words, ok := v.([]any)
		if !ok || len(words) != 4 {
			return nil, fmt.Errorf("unexpected message %q", raw)
		}
		m := Message{fmt.Sprint(words[2]), fmt.Sprint(words[3])}
		if m == (Message{endChannel, end}) {
			return list, nil
		}
		list = append(list, m)
	}
}

func parseDump(raw string) (State, error) {
	v, err := parseReply(raw)
	if err != nil {
		return State{}, err
	}
	list, ok := v.([]any)
	if !ok {
		return State{}, fmt.Errorf("dump answered %s", Pretty(raw))
	}
	var s State
	for _, item := range list {
		entry, ok := item.([]any)
		if !ok || len(entry) != 4 {
			return State{}, fmt.Errorf("dump answered %s", Pretty(raw))
		}
		k := Key{Name: fmt.Sprint(entry[0]), Type: Type(fmt.Sprint(entry[1]))}
		switch k.Type {
		case String, Hash, List, Set, Stream:
		default:
			return State{}, fmt.Errorf("%w: key %s of type %s", ErrOutside, k.Name, k.Type)
		}
		if ttl, ok := entry[2].(int64); ok && ttl > 0 {
			k.TTL = time.Duration(ttl) * time.Millisecond
		}
		values, _ := entry[3].([]any)
		if k.Type == Stream {
			if len(values) != 3 {
				return State{}, fmt.Errorf("dump answered %s", Pretty(raw))
			}
			stream, err := readStream(values[0], values[1], items(values[2]))
			if err != nil {
				return State{}, err
			}
			k.Values, values = stream.values(), nil
		}
		for _, value := range values {
			k.Values = append(k.Values, fmt.Sprint(value))
		}
		s.Keys = append(s.Keys, k)
	}
	return s.sorted(), nil
}

// sameMillisecond compares two answers to TIME.
func sameMillisecond(a, b string) (bool, error) {
	ms := func(raw string) (string, error) {
		v, err := parseReply(raw)
		if err != nil {
			return "", err
		}
		words, ok := v.([]any)
		if !ok || len(words) != 2 {
			return "", fmt.Errorf("TIME answered %q", raw)
		}
		us, err := strconv.Atoi(fmt.Sprint(words[1]))
		return fmt.Sprintf("%v.%03d", words[0], us/1000), err
	}
	x, err := ms(a)
	if err != nil {
		return false, err
	}
	y, err := ms(b)
	return x == y, err
}

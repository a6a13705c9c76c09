package redisstore

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Message is what a PUBLISH sent, by itself or from a script.
type Message struct{ Channel, Payload string }

// Result is what a command did.
type Result struct {
	Reply    string // raw RESP2
	State    State
	Messages []Message // in the order of publication
}

// Engine answers commands. It is safe for use by several goroutines.
type Engine interface {
	// Exec runs one command on a server that holds exactly s. An error is a
	// failure of the engine or a command outside of what it can model, never
	// an error reply, which is a Result.
	// The connection is one about which the server knows nothing.
	Exec(s State, args []string) (Result, error)
	// ExecOn is Exec on the connection of that name, which may have a Session.
	ExecOn(s State, session string, args []string) (Result, error)
	Close() error
}

// ErrOutside: the command cannot be modelled as a function of state and
// arguments, or makes data of a type State has no room for.
var ErrOutside = errors.New("outside of what explore models")

// allowed are the commands that are functions of the state alone. What is
// missing here is random (SPOP), blocks (BLPOP), reads the clock (TIME), binds
// other state to a connection than a Session holds (SELECT), or makes other types.
var allowed = set(`GET SET SETNX SETEX PSETEX GETSET GETDEL GETEX MGET MSET MSETNX APPEND STRLEN
	INCR DECR INCRBY DECRBY INCRBYFLOAT
	HGET HSET HSETNX HMSET HMGET HGETALL HDEL HEXISTS HINCRBY HINCRBYFLOAT HKEYS HVALS HLEN
	LPUSH RPUSH LPUSHX RPUSHX LPOP RPOP LLEN LRANGE LINDEX LREM LSET LTRIM LINSERT LMOVE RPOPLPUSH
	SADD SREM SCARD SISMEMBER SMISMEMBER SMEMBERS
	XADD XLEN XRANGE XREADGROUP XACK XGROUP
	DEL UNLINK EXISTS TYPE EXPIRE PEXPIRE PERSIST TTL PTTL RENAME RENAMENX KEYS
	EVAL EVALSHA SCRIPT PUBLISH PING ECHO`)

// sessionCommands are those that change what a server knows of a connection.
var sessionCommands = set(`WATCH UNWATCH MULTI EXEC DISCARD`)

// NeedsSession says that a command is about what the server knows of the
// connection it comes over.
func NeedsSession(args []string) bool { return sessionCommands[strings.ToUpper(args[0])] }

func set(words string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(words) {
		m[w] = true
	}
	return m
}

// Check says whether a command can be modelled; the error is ErrOutside with
// its name.
func Check(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("%w: empty command", ErrOutside)
	}
	if name := strings.ToUpper(args[0]); !allowed[name] && !sessionCommands[name] {
		return fmt.Errorf("%w: command %s", ErrOutside, name)
	}
	return checkStream(args)
}

// checkOn is Check for a connection: without a name it cannot have a session.
func checkOn(session string, args []string) error {
	if err := Check(args); err != nil {
		return err
	}
	if session == "" && NeedsSession(args) {
		return fmt.Errorf("%w: command %s on a connection without a name", ErrOutside, args[0])
	}
	return nil
}

// loadedBy is the script a command adds to the cache when it succeeds.
func loadedBy(args []string) (source string, ok bool) {
	switch strings.ToUpper(args[0]) {
	case "EVAL":
		if len(args) > 1 {
			return args[1], true
		}
	case "SCRIPT":
		if len(args) == 3 && strings.EqualFold(args[1], "LOAD") {
			return args[2], true
		}
	}
	return "", false
}

// countsKeys says whether an EVAL gets as far as compiling its script: the
// number of keys must make sense. Other commands do.
func countsKeys(args []string) bool {
	if !strings.EqualFold(args[0], "EVAL") {
		return true
	}
	if len(args) < 3 {
		return false
	}
	n, err := strconv.Atoi(args[2])
	return err == nil && n >= 0 && n <= len(args)-3
}

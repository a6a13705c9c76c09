package live

import (
	"strconv"
	"strings"

	"stockproof/faults"
	"stockproof/live/wire"
	"stockproof/schemes"
)

// Step is one line of a run's log: what a client asked a server, what it was
// told, and what the counter was right after.
type Step struct {
	Client  int
	N       int // the client's own count, from 1
	Server  wire.Server
	Command string
	Reply   string      // empty when no reply came
	Fault   faults.Kind // the fault placed on this step, if any
	Counter *int64      // units; nil when it could not be read
	Blocked bool        // the statement waited for another transaction's lock
}

// commandText is the step as a person would say it: a script by its name
// instead of its SHA-1, and without the number of its keys.
func commandText(s wire.Step) string {
	if s.Server != wire.Redis {
		sql := strings.Join(strings.Fields(s.SQL), " ")
		if len(s.Args) > 0 {
			sql += " [" + strings.Join(s.Args, ", ") + "]"
		}
		return sql
	}
	argv := append([]string(nil), s.Argv...)
	argv[0] = strings.ToUpper(argv[0])
	if argv[0] == "EVALSHA" && len(argv) > 2 {
		if name := schemes.ScriptName(argv[1]); name != "" {
			argv = append([]string{argv[0], name}, argv[3:]...)
		}
	}
	for i, a := range argv {
		if i > 0 && (a == "" || strings.ContainsAny(a, " \t\r\n\"")) {
			argv[i] = strconv.Quote(a)
		}
	}
	return strings.Join(argv, " ")
}

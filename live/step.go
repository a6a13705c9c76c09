package live

import (
	"strconv"
	"strings"
	"time"

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
	Name    string        // the command without what differs from run to run
	Reply   string        // empty when no reply came
	Fault   faults.Kind   // the fault placed on this step, if any
	Counter *int64        // units; nil when it could not be read
	Wrote   bool          // with a fault of a server: it changed what that server holds
	Blocked bool          // the statement waited for another transaction's lock
	Request string        // id of the request it was made for
	At      time.Duration // since the run began, when the step was over

	began time.Duration // since the run began, when it was its turn
	sent  wire.Step     // as it crossed the wire
	reply wire.Reply    // empty when no reply came
}

// commandName is a step's command without what differs from run to run: the
// word, for a script its name, for a statement its verb.
func commandName(s wire.Step) string {
	words := strings.Fields(commandText(s))
	if len(words) > 1 && words[0] == "EVALSHA" {
		return words[0] + " " + words[1]
	}
	if len(words) == 0 {
		return ""
	}
	return words[0]
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

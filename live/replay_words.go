package live

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"stockproof/faults/schedule"
	"stockproof/live/wire"
)

// plain replaces what differs from replay to replay by what the schedule says:
// the article, and request ids, which carry it because an order number is
// unique over all runs.
func (r *replay) plain(text string) string {
	text = strings.ReplaceAll(text, "@"+r.sku, "")
	return strings.ReplaceAll(text, r.sku, r.s.SKU)
}

// asked is a step as a schedule writes it. A connection is counted by the
// client's present operation.
func (r *replay) asked(c *replayClient, s wire.Step) schedule.Step {
	if s.Server == wire.Redis {
		words := schedule.RedisWords(s.Argv)
		for i := range words {
			words[i] = r.plain(words[i])
		}
		if takesTimes(words) {
			for i := range words {
				words[i] = r.shrunk(words[i])
			}
		}
		return schedule.Step{Server: schedule.Redis, Words: words}
	}
	args := make([]string, len(s.Args))
	for i, a := range s.Args {
		if args[i] = r.plain(a); a == "NULL" {
			args[i] = schedule.Null
		}
	}
	conn := slices.Index(c.conns, s.Conn)
	if conn < 0 {
		conn = len(c.conns)
	}
	return schedule.Step{Server: schedule.SQL, Conn: conn, Statement: schedule.StatementText(s.SQL, args)}
}

// takesTimes says whether a command may have a lease among its arguments.
func takesTimes(words []string) bool {
	switch words[0] {
	case "EVAL", "EVALSHA", "SET", "PEXPIRE", "PSETEX", "WAIT":
		return true
	}
	return false
}

// shrunk is a stretched lease, patience or life of a record, in milliseconds, as
// the schedule has it.
func (r *replay) shrunk(word string) string {
	if patience := r.s.Times.Wait; patience > 0 && word == strconv.FormatInt(r.times().Wait.Milliseconds(), 10) {
		return strconv.FormatInt(patience.Milliseconds(), 10)
	}
	for _, life := range []time.Duration{r.s.Times.Lease, r.s.Times.Record} {
		if life > 0 && word == strconv.FormatInt(r.scaled(life).Milliseconds(), 10) {
			return strconv.FormatInt(life.Milliseconds(), 10)
		}
	}
	return word
}

func (r *replay) sameRequest(line, seen *schedule.Step) bool {
	return line.Server == seen.Server && line.Conn == seen.Conn && slices.Equal(line.Words, seen.Words) && line.Statement == seen.Statement
}

// told is a reply in the words of the schedule.
func (r *replay) told(reply schedule.Reply) schedule.Reply {
	reply.Text = r.plain(reply.Text)
	items := reply.Items
	reply.Items = nil
	for _, item := range items {
		reply.Items = append(reply.Items, r.told(item))
	}
	return reply
}

// sameReply says whether a reply is the one of the line. Times are told in
// steps of the schedule's grain: a lease that has been running for a moment is
// as good as new.
func (r *replay) sameReply(line *schedule.Step, seen schedule.Reply) bool {
	if answersTime(line) && line.Reply.Kind == schedule.Int && seen.Kind == schedule.Int && seen.Int > 0 {
		left := time.Duration(seen.Int) * time.Millisecond
		most := r.scaled(time.Duration(line.Reply.Int) * time.Millisecond)
		return left <= most && left > most-r.scaled(r.grain)
	}
	return seen.String() == line.Reply.String()
}

// answersTime says whether a command answers how long a key lives, in
// milliseconds: the lock's script does when somebody else has the lock.
func answersTime(st *schedule.Step) bool {
	return len(st.Words) > 0 && st.Words[0] == "PTTL" || len(st.Words) > 1 && st.Words[1] == "lock-acquire"
}

package schedule

import (
	"fmt"
	"slices"
	"strconv"

	"stockproof/faults"
)

// on is the server that a step without a client befalls; empty for the passing
// of time.
func (st *Step) on() Server {
	switch st.Kind {
	case Restarts:
		return st.Server
	case Loses, Flush, FallsBehind, Refuses, TakesOver, Freezes, Thaws, Evicts, Expires:
		return Redis
	}
	return ""
}

// unseen says that the server does not see the step, at least not now.
func (st *Step) unseen() bool {
	return st.Fault == faults.RequestLost || st.Fault == faults.RequestDelayed || st.Fault == faults.RedisFreeze
}

// restart is the line of a server that restarts.
func restart(st *Step) string {
	text := "redis restarts "
	if st.Server == SQL {
		text = "postgres restarts "
	}
	text += string(st.Setting)
	if losesTail(st.Setting) {
		text += " " + strconv.Itoa(st.Lost)
	}
	return text
}

// losesTail says whether a server with that setting comes back without the last
// of what it had acknowledged.
func losesTail(s faults.Setting) bool { return s == faults.AOFEverySec || s == faults.SyncCommitOff }

// befalls reads a line of a server; known is false for any other.
func befalls(text string, st *Step) (known bool, rest string, err error) {
	first, rest := cutWord(text)
	verb, rest := cutWord(rest)
	switch first + " " + verb {
	case "redis restarts":
		st.Kind, st.Server = Restarts, Redis
		rest, err = cutRestart(rest, faults.RedisRestart, st)
	case "postgres restarts":
		st.Kind, st.Server = Restarts, SQL
		rest, err = cutRestart(rest, faults.PostgresRestart, st)
	case "redis freezes":
		st.Kind = Freezes
	case "redis goes":
		st.Kind = Thaws
		rest, err = cutExactly(rest, "on")
	case "redis evicts":
		st.Kind = Evicts
		var key string
		if key, rest = cutWord(rest); key == "" {
			return true, "", fmt.Errorf("redis evicts which key?")
		}
		st.Key, err = unword(key)
	case "stock expires":
		st.Kind = Expires
	case "replica falls":
		st.Kind = FallsBehind
		rest, err = cutExactly(rest, "behind")
	case "replica takes":
		st.Kind = TakesOver
		if rest, err = cutExactly(rest, "over"); err == nil {
			st.Lost, rest, err = cutCount(rest, 0)
		}
	case "primary refuses":
		st.Kind = Refuses
		rest, err = cutExactly(rest, "writes")
	default:
		return false, "", nil
	}
	if err != nil {
		err = fmt.Errorf("%q: %w", text, err)
	}
	return true, rest, err
}

func cutExactly(text, want string) (rest string, err error) {
	word, rest := cutWord(text)
	if word != want {
		return "", fmt.Errorf("%q where %q was due", word, want)
	}
	return rest, nil
}

func cutCount(text string, least int) (n int, rest string, err error) {
	word, rest := cutWord(text)
	n, err = strconv.Atoi(word)
	if err != nil || n < least || strconv.Itoa(n) != word {
		return 0, "", fmt.Errorf("want a number of writes, at least %d", least)
	}
	return n, rest, nil
}

func cutRestart(text string, kind faults.Kind, st *Step) (rest string, err error) {
	word, rest := cutWord(text)
	st.Setting = faults.Setting(word)
	if !slices.Contains(kind.Settings(), st.Setting) {
		return "", fmt.Errorf("there are the settings %v", kind.Settings())
	}
	if losesTail(st.Setting) {
		st.Lost, rest, err = cutCount(rest, 1)
	}
	return rest, err
}

// servers is where the servers stand.
type servers struct {
	frozen, behind, refuses, alone bool
}

// follow holds a step against what the servers can do.
func (p *servers) follow(st *Step) error {
	switch st.Kind {
	case Command, Arrives:
		if gives := st.Fault == faults.RedisFreeze; gives != (p.frozen && st.Server == Redis && st.Kind == Command) {
			if gives {
				return fmt.Errorf("gives-up has its place at a command to Redis while it stands still")
			}
			return fmt.Errorf("redis stands still: the client can only give up")
		}
		if p.frozen && st.Server == Redis {
			if st.Kind == Arrives {
				return fmt.Errorf("redis stands still")
			}
		}
	case Freezes, Thaws:
		if p.frozen == (st.Kind == Freezes) {
			return fmt.Errorf("that is how redis is already")
		}
		p.frozen = st.Kind == Freezes
	case FallsBehind:
		if p.behind || p.alone {
			return fmt.Errorf("there is no replica that is not behind")
		}
		p.behind = true
	case Refuses:
		if !p.behind || p.refuses {
			return fmt.Errorf("the primary refuses writes once, when its replica has fallen behind")
		}
		p.refuses = true
	case TakesOver:
		if !p.behind {
			return fmt.Errorf("the replica has not fallen behind")
		}
		p.behind, p.alone = false, true
	}
	return nil
}

// isJob says whether the client is no buyer; a job's operation begins with a line
// of its own.
func (c Client) isJob() bool {
	return slices.ContainsFunc(c.Calls, func(call Call) bool { return IsJob(call.Op) })
}

// begins holds the line with which a job begins against what it is to do.
func (p *parser) begins(st *Step) error {
	c, _ := p.s.Client(st.Client)
	n := p.begun[st.Client]
	if n >= len(c.Calls) || string(c.Calls[n].Op)+"s" != string(st.Kind) {
		return fmt.Errorf("client %s is not to %s", st.Client, st.Kind)
	}
	p.begun[st.Client]++
	return nil
}

// befalls draws what befalls a server, or what a job begins.
func (p *picture) befalls(st *Step) {
	switch st.Kind {
	case Restarts:
		text := "restarts, " + string(st.Setting)
		if st.Server == SQL {
			text = "restarts, synchronous_commit " + string(st.Setting)
		}
		if losesTail(st.Setting) {
			text += fmt.Sprintf(", loses %d", st.Lost)
		}
		p.note(text, lane(st.Server))
	case FallsBehind:
		p.note("its replica falls behind", laneRedis)
	case Refuses:
		p.note("refuses writes", laneRedis)
	case TakesOver:
		p.note(fmt.Sprintf("fails over, loses %d writes", st.Lost), laneRedis)
	case Freezes:
		p.note("stands still", laneRedis)
	case Thaws:
		p.note("goes on", laneRedis)
	case Evicts:
		p.note("evicts "+st.Key, laneRedis)
	case Expires:
		p.note("the stock expires", laneRedis)
	case Loads:
		p.note("begins to load again", st.Client)
	case Reconciles:
		p.note("begins to reconcile", st.Client)
	}
}

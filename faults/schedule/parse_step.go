package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"stockproof/faults"
	"stockproof/model"
)

func (p *parser) steps() error {
	for p.at < len(p.lines) && p.peek() != rule {
		l := p.lines[p.at]
		st := Step{Note: l.note}
		if err := p.step(l.text, &st); err != nil {
			return p.errorAt(l.note.Line, "%v", err)
		}
		if err := p.follow(&st); err != nil {
			return p.errorAt(l.note.Line, "%v", err)
		}
		p.s.Steps = append(p.s.Steps, st)
		p.at++
	}
	return nil
}

func (p *parser) step(text string, st *Step) error {
	first, rest := cutWord(text)
	switch {
	case clientName.MatchString(first):
		st.Client = first
		if _, ok := p.s.Client(first); !ok {
			return fmt.Errorf("there is no client %s above", first)
		}
		var err error
		if rest, err = p.act(trimBlank(rest), st); err != nil {
			return err
		}
	case first == "wait":
		st.Kind = Wait
		var err error
		first, rest = cutWord(rest)
		if st.Wait, err = duration(first); err != nil {
			return err
		}
	case first == "store":
		st.Kind = Loses
		verb, after := cutWord(rest)
		count, after := cutWord(after)
		n, err := strconv.Atoi(count)
		if verb != "loses" || err != nil || n < 1 {
			return fmt.Errorf("%q: want store loses N, the number of writes", text)
		}
		st.Lost, rest = n, after
	case first == "script":
		st.Kind = Flush
		verb, after := cutWord(rest)
		if verb != "flush" {
			return fmt.Errorf("%q: want script flush", text)
		}
		rest = after
	default:
		known := false
		var err error
		if known, rest, err = befalls(text, st); err != nil {
			return err
		}
		if !known {
			return fmt.Errorf("%q: want a client and its step, wait, store loses, script flush, redis, postgres, replica, primary, stock or ---", first)
		}
	}
	return p.aftermath(trimBlank(rest), st)
}

var (
	sqlWord     = regexp.MustCompile(`^SQL(/[1-9][0-9]*)?$`)
	commandName = regexp.MustCompile(`^[A-Z][A-Z0-9._-]*$`)
)

// act reads what a client does.
func (p *parser) act(text string, st *Step) (rest string, err error) {
	first, rest := cutWord(text)
	switch first {
	case "":
		return "", fmt.Errorf("client %s does what?", st.Client)
	case "resume":
		st.Kind = Resume
		return rest, nil
	case "submits":
		st.Kind = Submits
		st.Request, rest = cutWord(rest)
		again, rest := cutWord(rest)
		if _, ok := p.request(st.Request); !ok || again != "again" {
			return "", fmt.Errorf("want submits REQUEST again, with a request of a client above")
		}
		return rest, nil
	case string(Loads), string(Reconciles):
		st.Kind = Kind(first)
		return rest, nil
	case "arrives:":
		st.Kind = Arrives
		return p.what(trimBlank(rest), st)
	case "never":
		st.Kind = Never
		if first, rest = cutWord(rest); first != "arrives:" {
			return "", errors.New("want \"never arrives:\" and the command")
		}
		return p.what(trimBlank(rest), st)
	}
	st.Kind = Command
	return p.what(text, st)
}

// what reads a command or a statement.
func (p *parser) what(text string, st *Step) (rest string, err error) {
	first, rest := cutWord(text)
	if sqlWord.MatchString(first) {
		st.Server = SQL
		if len(first) > 3 {
			n, err := strconv.Atoi(first[4:])
			if err != nil {
				return "", fmt.Errorf("%s: too many connections", first)
			}
			st.Conn = n - 1
		}
		if st.sql() != first {
			return "", fmt.Errorf("%s: the first connection is just SQL", first)
		}
		return p.statement(trimBlank(rest), st)
	}
	st.Server = Redis
	if !commandName.MatchString(first) {
		return "", fmt.Errorf("%q is no command of Redis, which is in capitals, nor SQL, resume, submits, loads, reconciles, arrives: or never arrives", first)
	}
	st.Words = []string{first}
	for {
		token, after := cutWord(rest)
		if token == "" || token[0] == '#' || slices.Contains(separators, token) {
			return rest, nil
		}
		w, err := unword(token)
		if err != nil {
			return "", err
		}
		st.Words, rest = append(st.Words, w), after
	}
}

func (p *parser) statement(text string, st *Step) (rest string, err error) {
	if strings.HasPrefix(text, `"`) {
		token, rest := cutWord(text)
		st.Statement, err = unword(token)
		return rest, err
	}
	if st.Statement, rest, err = cutStatement(text); err != nil {
		return "", err
	}
	st.Statement = strings.Join(strings.Fields(st.Statement), " ")
	if st.Statement == "" {
		return "", errors.New("SQL without a statement")
	}
	if kind := Kind(st.Statement); kind == GoesOn || kind == Deadlock {
		if st.Kind != Command {
			return "", fmt.Errorf("want the statement that arrives")
		}
		st.Kind, st.Statement = kind, ""
	}
	return rest, nil
}

// aftermath reads what a step leads to: reply, fault, effects, comment.
func (p *parser) aftermath(rest string, st *Step) (err error) {
	token, after := cutWord(rest)
	if token == "=>" {
		if st.Reply, rest, err = cutReply(after, st.Server); err != nil {
			return err
		}
		token, after = cutWord(rest)
	}
	if token == "!" {
		token, rest = cutWord(after)
		var ok bool
		if st.Fault, ok = faultByWord(token); token == unreadPause {
			st.Fault, st.Unread = faults.ClientPause, true
		} else if !ok {
			return fmt.Errorf("%q is no fault of a step; there are crash, pause, pause-unread, request-lost, reply-lost, request-delayed, commit-reply-lost, gives-up", token)
		}
		token, after = cutWord(rest)
	}
	if token == ";" {
		effects, comment := cutComment(after)
		for _, e := range strings.Split(effects, ",") {
			if err := p.effect(strings.Fields(e), st); err != nil {
				return err
			}
		}
		token, rest = comment, comment
	}
	if token == "" {
		return nil
	}
	if token[0] != '#' {
		return fmt.Errorf("%q: after the step come => and its reply, ! and a fault, ; and what follows, in this order", token)
	}
	st.Note.Beside = trimBlank(rest)
	return nil
}

func (p *parser) effect(words []string, st *Step) error {
	switch {
	case len(words) == 2 && words[0] == "stock":
		s, err := parseStock(words[1])
		if err == nil && st.Stock != nil {
			err = errors.New("stock twice in a line")
		}
		st.Stock = &s
		return err
	case len(words) > 1 && words[0] == "wakes":
		for _, name := range words[1:] {
			if _, ok := p.s.Client(name); !ok {
				return fmt.Errorf("wakes %s, a client that is not there", name)
			}
		}
		st.Wakes = append(st.Wakes, words[1:]...)
		return nil
	case len(words) == 1:
		a, err := p.answer(words[0])
		if err == nil && a.Outcome == Unfinished {
			err = errors.New("unfinished is no answer")
		}
		st.Answers = append(st.Answers, a)
		return err
	}
	return fmt.Errorf("%q: after ; come stock N, answers such as a=sold, and wakes and clients", strings.Join(words, " "))
}

// answer reads a=sold or a.2=sold-out.
func (p *parser) answer(text string) (Answer, error) {
	label, outcome, _ := strings.Cut(text, "=")
	name, number, numbered := strings.Cut(label, ".")
	c, ok := p.s.Client(name)
	if !ok {
		return Answer{}, fmt.Errorf("%q: want an operation of a client above and its outcome, such as a=sold", text)
	}
	a := Answer{Client: name, N: 1}
	if numbered {
		n, err := strconv.Atoi(number)
		if err != nil || n < 1 || n > len(c.Calls) || strconv.Itoa(n) != number {
			return a, fmt.Errorf("%q: client %s has %d operations", label, name, len(c.Calls))
		}
		a.N = n
	} else if len(c.Calls) > 1 {
		return a, fmt.Errorf("%q: client %s has several operations, write %s.1", text, name, name)
	}
	op := c.Calls[a.N-1].Op
	if n, err := strconv.ParseInt(outcome, 10, 64); err == nil && op == model.Read {
		a.Outcome, a.Value = model.Value, n
		return a, nil
	}
	for _, o := range answersTo(op) {
		if o.String() == outcome {
			a.Outcome = o
			return a, nil
		}
	}
	return a, fmt.Errorf("%q is no outcome of a %s", outcome, op)
}

func answersTo(op model.Op) []model.Outcome {
	always := []model.Outcome{model.Busy, model.Failed, model.Unknown, Unfinished}
	switch op {
	case model.Deduct:
		return append(always, model.Sold, model.SoldOut)
	case model.Restock, model.Work, Load, Reconcile:
		return append(always, model.OK)
	}
	return always
}

// asked is where a client stands.
type asked struct {
	crashed, paused bool
	blocked         map[int]bool // connections with a statement that waits
	orphaned        map[int]bool // those whose statement has no client any more
	late            []string     // delayed requests, as what writes them
}

// follow holds a step against those before it.
func (p *parser) follow(st *Step) error {
	if err := p.servers.follow(st); err != nil {
		return err
	}
	a := p.asked[st.Client]
	if a.blocked == nil {
		a.blocked, a.orphaned = map[int]bool{}, map[int]bool{}
	}
	defer func() { p.asked[st.Client] = a }()
	acts := st.Kind == Command || st.Kind == GoesOn || st.Kind == Deadlock
	if !acts && st.Fault != "" {
		return fmt.Errorf("a fault has its place at a client's own step")
	}
	if !acts && st.Kind != Arrives && st.Reply.Kind != None {
		return fmt.Errorf("nobody replies to that")
	}
	switch st.Kind {
	case Command:
		if a.crashed {
			return fmt.Errorf("client %s has crashed", st.Client)
		}
		if a.paused {
			return fmt.Errorf("client %s is paused", st.Client)
		}
		if st.Server == SQL && a.blocked[st.Conn] {
			return fmt.Errorf("the connection has a statement that waits")
		}
	case GoesOn, Deadlock:
		if st.Kind == GoesOn && st.Reply.Kind == None && st.Fault == "" {
			if !a.orphaned[st.Conn] {
				return fmt.Errorf("=> and the reply are missing, or no client is gone that had a statement waiting there")
			}
			return nil
		}
		if !a.blocked[st.Conn] {
			return fmt.Errorf("client %s has no statement that waits on that connection", st.Client)
		}
		delete(a.blocked, st.Conn)
	case Arrives, Never:
		i := slices.Index(a.late, st.what())
		if i < 0 {
			return fmt.Errorf("client %s has no such request delayed", st.Client)
		}
		a.late = slices.Delete(slices.Clone(a.late), i, i+1)
		if st.Kind == Arrives && st.Reply.Kind == None {
			return fmt.Errorf("what arrives has a reply")
		}
		if st.Reply.Kind == Blocked {
			a.orphaned[st.Conn] = true
		}
		return nil
	case Resume:
		if !a.paused {
			return fmt.Errorf("client %s is not paused", st.Client)
		}
		a.paused = false
		return nil
	case Loads, Reconciles:
		return p.begins(st)
	case Restarts:
		if st.Server == SQL { // every connection has ended, and what waited on it
			for name, other := range p.asked {
				other.blocked, other.orphaned = nil, nil
				p.asked[name] = other
			}
			a.blocked, a.orphaned = nil, nil
		}
		return nil
	default:
		return nil
	}
	if c, _ := p.s.Client(st.Client); c.isJob() && p.begun[st.Client] == 0 {
		return fmt.Errorf("the job of client %s begins with a line of its own, loads or reconciles", st.Client)
	}
	return a.hit(st)
}

// hit applies the fault of a step, and checks that it has a place there.
func (a *asked) hit(st *Step) error {
	unseen := st.unseen()
	if unseen != (st.Reply.Kind == None) {
		if unseen {
			return fmt.Errorf("no reply is due: the server does not see the step")
		}
		return fmt.Errorf("=> and the reply are missing")
	}
	blocked := st.Reply.Kind == Blocked
	if blocked {
		a.blocked[st.Conn] = true
	}
	switch st.Fault {
	case faults.ClientCrash:
		a.crashed = true
		for conn := range a.blocked {
			a.orphaned[conn] = true
		}
		a.blocked = map[int]bool{}
	case faults.ClientPause:
		a.paused = true
	case faults.RequestDelayed, faults.RedisFreeze:
		a.late = append(slices.Clone(a.late), st.what())
	case faults.CommitReplyLost:
		if st.Server != SQL || st.Kind == Command && !strings.EqualFold(st.Statement, "commit") {
			return fmt.Errorf("commit-reply-lost has its place at a COMMIT")
		}
	}
	if unseen && st.Kind != Command {
		return fmt.Errorf("%s has its place where the request is sent", faultWords[st.Fault])
	}
	if blocked && st.Fault != "" && st.Fault != faults.ClientCrash {
		return fmt.Errorf("%s has no place where the statement waits", faultWords[st.Fault])
	}
	return nil
}

package explore

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// Names of client processes. A client calls itself self and its requests
// ownRequest, so that all clients share what is known of their code; a client
// that submits another one's request calls that foreignRequest. The stores know
// clients by name, or, under symmetry, by slot tokens numbered as they are met:
// two states that differ only in which client is which are one state.
const (
	clientPrefix   = "client~"
	self           = clientPrefix + "@" // the client that acts
	ownRequest     = self + ".&"        // of its present operation
	foreigner      = clientPrefix + "%" // whose request a client submits again
	foreignRequest = foreigner + ".&"
	prober         = clientPrefix + "?" // who tries after everything is over
	maxSlots       = 8
)

// errForeignName: a scheme was shown another client's name, so clients are not
// interchangeable; Run starts again without symmetry.
var errForeignName = errors.New("a reply names another client")

// errTooManyNames: more clients are named in the stores than there are tokens.
var errTooManyNames = errors.New("too many clients are named in the stores")

// moment is everything the servers hold at one time.
type moment struct {
	redis redisstore.State
	sql   sqlState
	slots int // slot tokens in use

	redisID int32 // equal for equal Redis contents
}

// execKey is a question to the stores. What the command does not mention is
// left out, so that clients share answers as well.
type execKey struct {
	at   int32
	cmd  int32
	slot int8 // of the client that acts, -1 when the stores do not name it yet
	op   int8 // number of its operation
	from int8 // the client whose request it submits again
	orig int8 // and the number of that operation
}

// anybody is the slot where it does not matter who acts.
const anybody = -3

// observer is the slot of who is no client of the sale: it sees all names.
const observer = -2

// effect is the answer.
type effect struct {
	to       int32
	reply    string // raw; the acting client's own name as self
	blocked  bool   // SQL: the statement waits for a row lock
	broken   bool   // Redis: the server has restarted and does not know the connection
	messages int32  // id of a list of messages, 0 for none
	inv      [maxSlots]int8
	slot     int8 // of the acting client afterwards
}

// world holds the moments met and what commands do to them. It is safe for use
// by several goroutines.
type world struct {
	engine   redisstore.Engine
	entry    schemes.Entry
	symmetry bool
	mutant   mutant
	named    bool                                            // clients have names of their own from the start
	solo     func(action, int64, string) (*automaton, error) // automata of actions outside of the search

	mu        sync.Mutex
	moments   []moment
	ids       map[string]int32
	redisIDs  map[string]int32
	effects   map[execKey]effect
	grants    map[grantKey]effect
	ages      map[ageKey]aged
	steps     []step
	mentions  []mentions
	stepIDs   map[step]int32
	messages  [][]redisstore.Message
	counters  map[int32]counter
	commits   map[int32]int32 // see committed
	commitIDs map[string]int32
	asked     []question // every Redis question, for the fidelity check
}

type ageKey struct {
	at int32
	d  int64
}

type aged struct {
	to  int32
	inv [maxSlots]int8
}

type counter struct {
	value int64
	known bool
}

// question is one memoised Redis transition with its answer.
type question struct {
	Before  redisstore.State
	Session string // of the connection, empty where it has none
	Args    []string
	Result  redisstore.Result
}

func newWorld(engine redisstore.Engine, entry schemes.Entry, symmetry, named bool) *world {
	return &world{engine: engine, entry: entry, symmetry: symmetry, named: named, ids: map[string]int32{}, redisIDs: map[string]int32{}, effects: map[execKey]effect{}, grants: map[grantKey]effect{},
		ages: map[ageKey]aged{}, stepIDs: map[step]int32{}, messages: make([][]redisstore.Message, 1), counters: map[int32]counter{},
		commits: map[int32]int32{}, commitIDs: map[string]int32{}}
}

func (w *world) intern(m moment) int32 {
	key := m.redis.Encode() + m.sql.key()
	if id, ok := w.ids[key]; ok {
		return id
	}
	data := m.redis.Data() // what belongs to a connection is no write that could be lost
	redisID, ok := w.redisIDs[data]
	if !ok {
		redisID = int32(len(w.redisIDs))
		w.redisIDs[data] = redisID
	}
	m.redisID = redisID
	id := int32(len(w.moments))
	w.moments = append(w.moments, m)
	w.ids[key] = id
	return id
}

func (w *world) stepID(s step) int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id, ok := w.stepIDs[s]; ok {
		return id
	}
	id := int32(len(w.steps))
	w.steps = append(w.steps, s)
	w.mentions = append(w.mentions, mentions{
		self:    s.sql || s.on > 0 || strings.Contains(s.args, self),
		request: s.sql || s.on > 0 || strings.Contains(s.args, ownRequest),
		foreign: strings.Contains(s.args, foreigner),
	})
	w.stepIDs[s] = id
	return id
}

func (w *world) moment(id int32) moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.moments[id]
}

func (w *world) step(id int32) step {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.steps[id]
}

// exec asks what a command does, once.
func (w *world) exec(k execKey) (effect, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k.slot != observer {
		m := w.mentions[k.cmd]
		if !m.self {
			k.slot = anybody
		}
		if !m.request {
			k.op = 0
		}
		if !m.foreign {
			k.from, k.orig = 0, 0
		}
	}
	if e, ok := w.effects[k]; ok {
		return e, nil
	}
	e, err := w.ask(k)
	if err != nil {
		return effect{}, err
	}
	w.effects[k] = e
	return e, nil
}

func (w *world) ask(k execKey) (effect, error) {
	before := w.moments[k.at]
	s := w.steps[k.cmd]
	next := before.slots
	me := int(k.slot) // without symmetry the client's own number
	switch {
	case k.slot == observer:
		me = maxSlots - 1
	case k.slot == anybody:
		me = 0
	case k.slot == -1:
		me = next
		next++
	}
	most := maxSlots
	if s.sql {
		most-- // the last is the observer's
	}
	if w.symmetry && k.slot != observer && next > most {
		return effect{}, fmt.Errorf("%w: %w: more than %d", ErrScheme, errTooManyNames, maxSlots)
	}
	toStore, fromStore := strings.NewReplacer(), strings.NewReplacer()
	if k.slot != observer && !w.named {
		name, other := w.storeName(k.slot, me), clientPrefix+faults.ClientName(int(k.from))
		op, orig := fmt.Sprintf(".%d", k.op+1), fmt.Sprintf(".%d", k.orig+1)
		toStore = strings.NewReplacer(ownRequest, name+op, foreignRequest, other+orig, foreigner, other, self, name)
		if k.slot != anybody {
			fromStore = strings.NewReplacer(name+op, ownRequest, other+orig, foreignRequest, name, self, other, foreigner)
			if !w.mentions[k.cmd].foreign {
				fromStore = strings.NewReplacer(name+op, ownRequest, name, self)
			}
		}
	}
	after := before
	var reply string
	var sent []redisstore.Message
	e := effect{}
	if s.sql {
		var err error
		if after.sql, reply, e.blocked, err = before.sql.exec(s.renamed(toStore), me, int(k.op)); err != nil {
			return effect{}, err
		}
	} else {
		args := splitArgs(s.args)
		for i := range args {
			args[i] = toStore.Replace(args[i])
		}
		session := ""
		if s.on > 0 {
			session = sessionName(w.storeName(k.slot, me), k.op, s.on)
		}
		if _, known := before.redis.Session(session); s.holds && !known {
			e.broken = true
			e.inv, e.to, e.slot = identity(), k.at, -1
			if w.symmetry && k.slot >= 0 {
				e.slot = k.slot
			}
			return e, nil
		}
		r, err := w.engine.ExecOn(before.redis, session, args)
		if err != nil {
			return effect{}, err
		}
		if redisstore.NeedsSession(args) && strings.HasPrefix(r.Reply, "-") && !s.holds {
			// What its client takes the server to know would no longer be so.
			return effect{}, fmt.Errorf("%w: %s is refused: %s", redisstore.ErrOutside, args[0], redisstore.Pretty(r.Reply))
		}
		w.asked = append(w.asked, question{before.redis, session, args, r})
		after.redis, reply, sent = r.State, r.Reply, r.Messages
		if w.mutant == touchForgotten {
			after.redis = untouched(after.redis)
		}
	}
	reply = fromStore.Replace(reply)
	if w.symmetry && k.slot != observer {
		if mentionsSlot(reply) {
			return effect{}, errForeignName
		}
		for _, m := range sent {
			if mentionsSlot(m.Channel) || mentionsSlot(m.Payload) {
				return effect{}, errForeignName
			}
		}
	}
	e.reply = reply
	if len(sent) > 0 {
		e.messages = w.messageID(sent)
	}
	after, e.inv = w.canonical(after)
	e.slot = -1
	if w.symmetry && k.slot >= -1 {
		e.slot = e.inv[me]
	}
	e.to = w.intern(after)
	return e, nil
}

func (w *world) messageID(list []redisstore.Message) int32 {
	for i, known := range w.messages {
		if len(known) == len(list) {
			same := true
			for j := range list {
				same = same && known[j] == list[j]
			}
			if same {
				return int32(i)
			}
		}
	}
	w.messages = append(w.messages, list)
	return int32(len(w.messages) - 1)
}

func (w *world) messageList(id int32) []redisstore.Message {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.messages[id]
}

// age lets d milliseconds pass on the servers.
func (w *world) age(at int32, d int64) aged {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := ageKey{at, d}
	if a, ok := w.ages[k]; ok {
		return a
	}
	m := w.moments[at]
	m.redis = m.redis.After(time.Duration(d) * time.Millisecond)
	m, inv := w.canonical(m)
	a := aged{w.intern(m), inv}
	w.ages[k] = a
	return a
}

// change makes a moment by f, outside of any client's doing.
func (w *world) change(at int32, f func(moment) moment) (int32, [maxSlots]int8) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var m moment
	if at >= 0 {
		m = w.moments[at]
	}
	m, inv := w.canonical(f(m))
	return w.intern(m), inv
}

// expiry is the time in ms until a key of the moment expires; 0 for never.
func (w *world) expiry(at int32) int64 {
	d, _ := w.moment(at).redis.NextExpiry()
	return d.Milliseconds()
}

// atRest is the moment after every lease is over.
func (w *world) atRest(at int32) int32 {
	for {
		d := w.expiry(at)
		if d == 0 {
			return at
		}
		at = w.age(at, d).to
	}
}

// maxSolo bounds an action that runs alone, in answered steps and waits.
const maxSolo = 1000

// alone runs one action by itself, with nothing going wrong and time passing
// as it needs to. It answers the moment afterwards.
func (w *world) alone(at int32, act action, qty int64, client string) (int32, result, error) {
	a, err := w.solo(act, qty, client)
	if err != nil {
		return 0, result{}, err
	}
	n := a.root
	for range maxSolo {
		if n.done {
			return at, n.result, nil
		}
		if len(n.pending) == 0 {
			d := n.deadline
			if t := w.expiry(at); t > 0 && t < d {
				d = t
			}
			at = w.age(at, d).to
			if n, err = a.step(n, event{kind: elapsed, advance: d}); err != nil {
				return 0, result{}, err
			}
			continue
		}
		e, err := w.exec(execKey{at: at, cmd: w.stepID(n.pending[0]), slot: observer})
		if err != nil {
			return 0, result{}, err
		}
		if e.blocked { // somebody holds a row and nobody is left to let it go
			return at, result{outcome: model.Unknown, err: "blocked for ever"}, nil
		}
		at = e.to
		closed := n.closed
		if n, err = a.step(n, event{kind: replied, text: e.reply}); err != nil {
			return 0, result{}, err
		}
		at, _ = w.hangUp(at, maxSlots-1, newlyClosed(closed, n.closed))
	}
	return at, result{outcome: model.Unknown, err: "does not end"}, nil
}

// count reads the scheme's counter at a moment.
func (w *world) count(at int32) (counter, error) {
	w.mu.Lock()
	c, ok := w.counters[at]
	w.mu.Unlock()
	if ok {
		return c, nil
	}
	if _, reads := w.entry.Scheme.(schemes.Reader); reads {
		_, r, err := w.alone(at, read, 0, prober)
		if err != nil {
			return counter{}, err
		}
		c = counter{r.value, r.outcome == model.Value}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counters[at] = c
	return c, nil
}

package explore

import (
	"fmt"
	"sort"
	"strings"

	"stockproof/model"
	"stockproof/schemes"
)

// judge decides the properties of the executions a search meets. Executions
// that end alike are judged once.
type judge struct {
	s        *searcher
	audited  bool
	profiles []*profile       // by moment
	rests    map[string]int32 // profiles by content
	outlines map[local]uint32 // locals without what no longer matters
	shape    []uint32         // outline of each local, plus one
	kinds    *visited         // kinds of end
	memo     []*sentence      // by kind
	tallies  map[model.Property]*tally
	low      *tally // that of the transient negative counter
}

// profile is what servers at rest show.
type profile struct {
	id      int32
	counter counter
	orders  []model.Order // requests as the stores name them
	probe   model.Outcome
}

// sentence is what the laws say of one kind of end.
type sentence struct {
	findings []model.Finding
	booked   bool
}

// tally collects the findings on one property.
type tally struct {
	evaluated bool
	why       string // when never evaluated
	broken    bool
	first     uint32 // state of the shortest execution that breaks it
	amount    int64
	detail    string
}

func newJudge(s *searcher) *judge {
	_, audited := s.world.entry.Scheme.(schemes.Auditor)
	j := &judge{s: s, audited: audited, rests: map[string]int32{},
		outlines: map[local]uint32{}, kinds: newVisited(), tallies: map[model.Property]*tally{}}
	for _, p := range model.Properties() {
		j.tallies[p.ID] = &tally{why: "no execution came to rest"}
	}
	j.low = j.tallies[model.NegativeTransient]
	return j
}

// worse compares two amounts: further from zero.
func worse(a, b int64) bool {
	if a < 0 {
		a = -a
	}
	if b < 0 {
		b = -b
	}
	return a > b
}

func (j *judge) book(i uint32, f model.Finding) {
	t := j.tallies[f.Property]
	if !f.Evaluated {
		t.why = f.Detail
		return
	}
	t.evaluated = true
	if !f.Broken {
		return
	}
	if !t.broken {
		t.broken, t.first = true, i
	}
	if worse(f.Amount, t.amount) {
		t.amount, t.detail = f.Amount, strings.ReplaceAll(f.Detail, clientPrefix, "")
	}
}

// look judges what has to hold at every moment.
func (j *judge) look(i uint32, x *state) {
	c := j.s.verInfos[x[0]].counter
	t := j.low
	if !c.known {
		t.why = "the counter cannot be read"
		return
	}
	t.evaluated = true
	if c.value < 0 && (!t.broken || c.value < t.amount) {
		if !t.broken {
			t.broken, t.first = true, i
		}
		t.amount, t.detail = c.value, fmt.Sprintf("the counter was at %d", c.value)
	}
}

// rest judges an execution that has come to its end.
func (j *judge) rest(i uint32, x *state) {
	p := j.profile(j.s.vers[x[0]].at[0])
	key := state{uint32(p.id)}
	for c := 2; c < 2+j.s.clients; c++ {
		key[c] = j.outline(x[c])
	}
	kind, fresh := j.kinds.add(&key, key.hash())
	if fresh {
		ops, rest := j.history(x, p)
		j.memo = append(j.memo, &sentence{findings: judgeHistory(ops, rest)})
	}
	verdict := j.memo[kind]
	if verdict.booked {
		return
	}
	verdict.booked = true
	for _, f := range verdict.findings {
		if f.Property != model.NegativeTransient {
			j.book(i, f)
		}
	}
}

// judgeHistory applies every law to a settled history.
func judgeHistory(ops []model.Operation, rest model.Rest) []model.Finding {
	findings := model.Laws(ops, rest)
	f := model.Finding{Property: model.NonLinearizable, Evaluated: true}
	var answers, whole bool
	if len(ops) <= mostOrdered {
		answers, whole = linearizable(ops, rest.Initial, rest.Counter)
	} else if answers, whole, f.Evaluated = linearizableAtAll(ops, rest.Initial, rest.Counter); !f.Evaluated {
		f.Detail = "the stock checker did not decide within its limits"
	}
	if f.Evaluated && !whole {
		f.Broken, f.Amount = true, 1
		words := make([]string, len(ops))
		for i, o := range ops {
			words[i] = o.String()
		}
		f.Detail = "no order fits: " + strings.Join(words, ", ")
		if answers {
			f.Detail = fmt.Sprintf("only with the read at rest, which shows %d, no order fits: %s", *rest.Counter, strings.Join(words, ", "))
		}
	}
	return append(findings, f)
}

// outline drops from a local what the laws do not ask.
func (j *judge) outline(id uint32) uint32 {
	for int(id) >= len(j.shape) {
		j.shape = append(j.shape, 0)
	}
	if v := j.shape[id]; v != 0 {
		return v
	}
	l := j.s.locals[id]
	l.node, l.place, l.late = 0, 0, [maxLate]late{}
	for v := range l.slots {
		if v > 0 || !j.audited {
			l.slots[v] = -1
		}
	}
	v, ok := j.outlines[l]
	if !ok {
		v = uint32(len(j.outlines) + 1)
		j.outlines[l] = v
	}
	j.shape[id] = v
	return v
}

// profile looks at servers at rest: every lease over and the background role
// done, then the counter, the orders, and one more buyer who tries.
func (j *judge) profile(at int32) *profile {
	for int(at) >= len(j.profiles) {
		j.profiles = append(j.profiles, nil)
	}
	if p := j.profiles[at]; p != nil {
		return p
	}
	w := j.s.world
	rested, err := w.atEnd(at)
	if err != nil {
		fail(err)
	}
	p := &profile{counter: j.s.counter(rested)}
	if j.audited {
		_, r, err := w.alone(rested, orders, 0, prober)
		if err != nil {
			fail(err)
		}
		if r.outcome != model.OK {
			fail(fmt.Errorf("%w: orders: %s", ErrScheme, r.err))
		}
		p.orders = decodeOrders(r.orders)
	}
	_, r, err := w.alone(rested, deduct, 1, prober)
	if err != nil {
		fail(err)
	}
	p.probe = r.outcome
	text := fmt.Sprint(p.counter, p.orders, p.probe)
	id, ok := j.rests[text]
	if !ok {
		id = int32(len(j.rests))
		j.rests[text] = id
	}
	p.id = id
	j.profiles[at] = p
	return p
}

// history is the history and the rest of an execution, settled.
func (j *judge) history(x *state, p *profile) ([]model.Operation, model.Rest) {
	s := j.s
	var ops []model.Operation
	taken := map[string]int64{}
	bySlot := map[string]string{} // request as the stores name it → ours
	end := int64(0)
	for c := 0; c < s.clients; c++ {
		l := &s.locals[x[2+c]]
		if l.status == dormant {
			continue
		}
		prog := &s.programs[l.who]
		if prog.job {
			continue
		}
		for op := 0; op <= int(l.op) && op < len(prog.calls); op++ {
			e := l.past[op]
			open := op == int(l.op)
			if prog.calls[op].Op == model.Work {
				continue // no buyer's
			}
			if open {
				if !l.begun {
					continue
				}
				e = ended{outcome: outcomeIndex(model.Unknown), call: l.call, taken: l.taken}
			}
			request := prog.requests[op]
			if s.symmetry {
				request = fmt.Sprintf("%d.%d", c, op+1)
				if slot := l.slots[0]; slot >= 0 {
					bySlot[fmt.Sprintf("%s.%d", slotToken(int(slot)), op+1)] = request
				}
			}
			o := model.Operation{Client: c, Op: prog.calls[op].Op, Qty: prog.calls[op].Qty, Call: 2 * int64(e.call),
				Return: 2*int64(e.ret) + 1, Outcome: outcomes[e.outcome-1], Request: request}
			if o.Outcome == model.Unknown {
				o.Open, o.Return = true, 0
			}
			end = max(end, o.Call, o.Return)
			ops = append(ops, o)
			taken[request] += int64(e.taken)
		}
	}
	rest := model.Rest{Initial: s.cfg.Stock, Taken: taken, Probe: &p.probe}
	if p.counter.known {
		rest.Counter = &p.counter.value
	}
	if j.audited {
		list := make([]model.Order, len(p.orders))
		for i, o := range p.orders {
			if ours, ok := bySlot[o.Request]; ok {
				o.Request = ours
			}
			list[i] = o
		}
		rest.Orders = &list
		ops, _ = model.Settle(ops, list, end+1)
	}
	return ops, rest
}

// mostOrdered is how many operations linearizable is asked about.
const mostOrdered = 16

// linearizableAtAll is linearizable for the history of a replay, which may be
// longer than one of a search. It asks the stock checker.
func linearizableAtAll(ops []model.Operation, initial int64, counter *int64) (answers, whole, decided bool) {
	all := model.Judge(initial, model.AtRest(ops, counter), model.Limits{}).Ruling
	if all == model.Legal {
		return true, true, true
	}
	return model.Judge(initial, ops, model.Limits{}).Ruling == model.Legal, false, all != model.Undecided
}

// linearizable decides exactly whether some order of the operations fits the
// stock and real time, and whether one does that leaves what the counter shows
// at rest (nil: it was not read). What is unknown may take effect at any time
// after its call, or never. Time 2^n · n.
func linearizable(all []model.Operation, initial int64, counter *int64) (answers, whole bool) {
	var ops []model.Operation
	for _, o := range all {
		if o.Outcome == model.Busy || o.Outcome == model.Failed || (o.Outcome == model.Unknown && o.Op == model.Read) {
			continue
		}
		ops = append(ops, o)
	}
	n := len(ops)
	before := make([]uint32, n) // what must come first
	var must uint32
	for i, o := range ops {
		if o.Outcome != model.Unknown {
			must |= 1 << i
		}
		for k, other := range ops {
			if other.Outcome != model.Unknown && other.Return < o.Call {
				before[i] |= 1 << k
			}
		}
	}
	reached := make([]bool, 1<<n)
	reached[0] = true
	for mask := range uint32(1 << n) {
		if !reached[mask] {
			continue
		}
		stock := initial
		for i, o := range ops {
			if mask>>i&1 == 1 {
				stock -= effectOn(o)
			}
		}
		if mask&must == must {
			answers = true
			if counter == nil || stock == *counter {
				return true, true
			}
		}
		for i, o := range ops {
			if mask>>i&1 == 0 && before[i]&^mask == 0 && fits(o, stock) {
				reached[mask|1<<i] = true
			}
		}
	}
	return answers, false
}

// effectOn is what an operation takes when it takes effect.
func effectOn(o model.Operation) int64 {
	switch {
	case o.Op == model.Restock:
		return -o.Qty
	case o.Op == model.Deduct && o.Outcome != model.SoldOut:
		return o.Qty
	}
	return 0
}

// fits says whether an answer is right with that much in stock.
func fits(o model.Operation, stock int64) bool {
	switch {
	case o.Op == model.Restock:
		return true
	case o.Op == model.Read:
		return stock == o.Value
	case o.Outcome == model.SoldOut:
		return stock < o.Qty
	}
	return stock >= o.Qty
}

func decodeOrders(text string) []model.Order {
	words := splitArgs(text)
	var list []model.Order
	for i := 0; i+1 < len(words); i += 2 {
		var qty int64
		fmt.Sscan(words[i+1], &qty)
		list = append(list, model.Order{Request: words[i], Qty: qty})
	}
	sort.Slice(list, func(a, b int) bool { return list[a].Request < list[b].Request })
	return list
}

// verdicts are the tallies once the search has ended.
func (j *judge) verdicts(why string, witness func(uint32) *Witness) map[model.Property]Verdict {
	made := map[uint32]*Witness{}
	out := map[model.Property]Verdict{}
	for _, info := range model.Properties() {
		t := j.tallies[info.ID]
		v := Verdict{Status: Holds, Amount: t.amount, Detail: t.detail}
		switch {
		case t.broken:
			v.Status = Violated
			if made[t.first] == nil {
				made[t.first] = witness(t.first)
			}
			v.Witness = made[t.first]
		case why != "":
			v.Status, v.Detail = Inconclusive, why
		case !t.evaluated:
			v.Status, v.Detail = NotEvaluated, t.why
		}
		out[info.ID] = v
	}
	return out
}

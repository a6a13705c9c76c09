package subject

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"stockproof/live/clients"
	"stockproof/live/reaper"
	"stockproof/live/wire"
	"stockproof/model"
	"stockproof/schemes"
)

// Status of a rule.
type Status string

// What a check says of a rule. Not tried is no pass: an earlier rule left nothing
// to try it on. Not offered is none either way.
const (
	Pass       Status = "pass"
	Fail       Status = "FAIL"
	NotTried   Status = "not tried"
	NotOffered Status = "not offered"
)

// Result of one rule.
type Result struct {
	Rule   string `json:"rule"`
	Says   string `json:"says"` // the rule in words
	Status Status `json:"status"`
	Reason string `json:"reason,omitempty"`
}

// Conforms says whether every rule was tried and kept.
func Conforms(results []Result) bool {
	return len(results) == len(rules) && !slices.ContainsFunc(results, func(r Result) bool { return r.Status != Pass && r.Status != NotOffered })
}

// CheckOptions are Options with what only a check needs.
type CheckOptions struct {
	Options
	Env     schemes.Env   // the stores, with nothing in between
	Timeout time.Duration // of an answer
	SKU     string        // articles are called SKU-1, SKU-2, …
	DBAddr  string        // host:port of the database
	DSNAt   func(addr string) string
}

const (
	// quiet is how long nothing may be said when nothing was asked.
	quiet = 300 * time.Millisecond
	// endLimit is how long a subject may take to end after its input has.
	endLimit = 5 * time.Second
	// bigID is an id that a program which takes numbers for floating point still
	// has to repeat exactly.
	bigID = 1<<52 + 1
)

// errNotOffered says that the subject does not have what a rule is about.
var errNotOffered = errors.New("not offered")

// rules in the order in which they are tried.
var rules = []struct {
	name, says string
	try        func(*checkup, context.Context) error
}{
	{"hello", "the first line is a hello of this protocol, in time", (*checkup).hello},
	{"load", "an article that is put on sale has the units it was given", (*checkup).load},
	{"deduct", "a deduct of units that are there is sold, and the counter falls by as many", (*checkup).deduct},
	{"sold-out", "a deduct of more than there is is sold_out, and the counter stays", (*checkup).soldOut},
	{"restock", "a restock is ok, and the counter rises by as many", (*checkup).restock},
	{"orders", "orders lists what was sold, by request", (*checkup).orders},
	{"quantity", "a quantity below 1 is failed, and the counter stays", (*checkup).quantity},
	{"operation", "an operation that does not exist is failed, and the next request is served", (*checkup).operation},
	{"ids", "an answer repeats the id of its request, also a large one", (*checkup).ids},
	{"order", "requests that come together are answered one by one, in their order", (*checkup).order},
	{"silence", "nothing is written to standard output that was not asked for", (*checkup).silence},
	{"connection", "a connection to a store that breaks in the middle is answered, and the next request is served", (*checkup).connection},
	{"end", "when its input ends it ends within 5 s with status 0, and leaves no process behind", (*checkup).end},
}

// Rules lists the rules by name.
func Rules() (names []string) {
	for _, r := range rules {
		names = append(names, r.name)
	}
	return names
}

// checkup is a check under way.
type checkup struct {
	reaper  *reaper.Reaper
	options CheckOptions
	said    Hello
	p       *Process // nil: to be started
	n       int      // articles
}

// Check tries every rule of the protocol; told, which may be nil, is called after
// each. The error is that something other than the subject failed.
func Check(ctx context.Context, r *reaper.Reaper, o CheckOptions, told func(Result)) (results []Result, err error) {
	c := &checkup{reaper: r, options: o}
	defer c.stop()
	for i, rule := range rules {
		res := Result{Rule: rule.name, Says: rule.says, Status: NotTried, Reason: "it did not say hello"}
		if i == 0 || c.said.Name != "" {
			err := rule.try(c, ctx)
			res.Status, res.Reason = Pass, ""
			switch {
			case ctx.Err() != nil:
				return results, context.Cause(ctx)
			case errors.Is(err, errNotOffered):
				res.Status = NotOffered
			case err != nil:
				res.Status, res.Reason = Fail, err.Error()
				c.stop() // the next rule is tried on a process that has broken none
			}
		}
		results = append(results, res)
		if told != nil {
			told(res)
		}
	}
	return results, nil
}

func (c *checkup) stop() {
	if c.p != nil {
		c.p.Kill()
		c.p = nil
	}
}

// process is the one under test, a new one where the last was ended.
func (c *checkup) process(ctx context.Context) (p *Process, err error) {
	if c.p == nil {
		c.p, err = start(ctx, c.reaper, launch{command: c.options.Command, redisURL: redisURL(c.options.RedisAddr),
			databaseURL: c.options.DatabaseURL, client: "stockproof-check", start: c.options.Start})
	}
	return c.p, err
}

func (c *checkup) hello(ctx context.Context) error {
	p, err := c.process(ctx)
	if err == nil {
		c.said = p.hello
	}
	return err
}

// scheme is the process under test as a scheme.
func (c *checkup) scheme(ctx context.Context) (*Scheme, error) {
	p, err := c.process(ctx)
	return &Scheme{Hello: c.said, options: c.options.Options, observer: p}, err
}

// ask asks the process under test.
func (c *checkup) ask(ctx context.Context, reqs ...request) ([]answer, error) {
	p, err := c.process(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, fmt.Errorf("no answer after %s", c.options.Timeout))
	defer cancel()
	return p.askAll(ctx, reqs...)
}

// answered asks and wants an outcome.
func (c *checkup) answered(ctx context.Context, req request, want ...model.Outcome) error {
	got, err := c.ask(ctx, req)
	if err != nil {
		return err
	}
	if !slices.Contains(want, got[0].Outcome) {
		return fmt.Errorf("%s of %d is answered %s, not %s%s", req.Op, req.Qty, got[0].Outcome, want[0], because(got[0].Err))
	}
	return nil
}

func because(why string) string {
	if why == "" {
		return ""
	}
	return ": " + why
}

// article puts a new article on sale.
func (c *checkup) article(ctx context.Context, units int64) (sku string, err error) {
	c.n++
	sku = fmt.Sprintf("%s-%d", c.options.SKU, c.n)
	s, err := c.scheme(ctx)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
		defer cancel()
		err = s.Load(ctx, c.options.Env, sku, units)
	}
	return sku, err
}

// has wants a counter, as it is where the subject said and as the subject says.
func (c *checkup) has(ctx context.Context, sku string, want int64) error {
	s, err := c.scheme(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, c.options.Timeout)
	defer cancel()
	there, err := s.Read(ctx, c.options.Env, sku)
	if err != nil {
		return err
	}
	says, err := s.read(ctx, sku)
	switch {
	case err != nil:
		return err
	case there != want:
		return fmt.Errorf("the counter is %d, not %d", there, want)
	case says != want:
		return fmt.Errorf("read is answered %d, the counter is %d", says, want)
	}
	return nil
}

func deductOf(sku string, qty int64, name string) request {
	return request{Op: model.Deduct, SKU: sku, Qty: qty, Request: name + "@" + sku, Buyer: "check"}
}

func (c *checkup) load(ctx context.Context) error {
	sku, err := c.article(ctx, 7)
	if err != nil {
		return err
	}
	return c.has(ctx, sku, 7)
}

func (c *checkup) deduct(ctx context.Context) error {
	sku, err := c.article(ctx, 3)
	if err != nil {
		return err
	}
	if err := c.answered(ctx, deductOf(sku, 2, "a"), model.Sold); err != nil {
		return err
	}
	return c.has(ctx, sku, 1)
}

func (c *checkup) soldOut(ctx context.Context) error {
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	if err := c.answered(ctx, deductOf(sku, 2, "a"), model.SoldOut); err != nil {
		return err
	}
	return c.has(ctx, sku, 1)
}

func (c *checkup) restock(ctx context.Context) error {
	if !c.said.Operations[model.Restock] {
		return errNotOffered
	}
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	if err := c.answered(ctx, request{Op: model.Restock, SKU: sku, Qty: 2, Request: "r@" + sku, Buyer: "check"}, model.OK); err != nil {
		return err
	}
	return c.has(ctx, sku, 3)
}

func (c *checkup) orders(ctx context.Context) error {
	if !c.said.Operations[opOrders] {
		return errNotOffered
	}
	sku, err := c.article(ctx, 2)
	if err != nil {
		return err
	}
	if err := c.answered(ctx, deductOf(sku, 2, "a"), model.Sold); err != nil {
		return err
	}
	if err := c.answered(ctx, deductOf(sku, 1, "b"), model.SoldOut); err != nil {
		return err
	}
	got, err := c.ask(ctx, request{Op: opOrders, SKU: sku})
	if err != nil {
		return err
	}
	if want := []model.Order{{Request: "a@" + sku, Qty: 2}}; got[0].Outcome != outcomeOrders || !slices.Equal(got[0].orders, want) {
		return fmt.Errorf("after one sale the orders are %v%s, not %v", got[0].orders, because(got[0].Err), want)
	}
	return nil
}

func (c *checkup) quantity(ctx context.Context) error {
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	for _, qty := range []int64{0, -1} {
		if err := c.answered(ctx, deductOf(sku, qty, "a"), model.Failed); err != nil {
			return err
		}
		if c.said.Operations[model.Restock] {
			if err := c.answered(ctx, request{Op: model.Restock, SKU: sku, Qty: qty, Request: "r@" + sku}, model.Failed); err != nil {
				return err
			}
		}
	}
	return c.has(ctx, sku, 1)
}

func (c *checkup) operation(ctx context.Context) error {
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	if err := c.answered(ctx, request{Op: "refund", SKU: sku, Qty: 1, Request: "x@" + sku}, model.Failed); err != nil {
		return err
	}
	return c.answered(ctx, deductOf(sku, 1, "a"), model.Sold)
}

func (c *checkup) ids(ctx context.Context) error {
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	if p, err := c.process(ctx); err != nil {
		return err
	} else {
		p.id = max(p.id, bigID)
	}
	return c.answered(ctx, deductOf(sku, 1, "a"), model.Sold)
}

func (c *checkup) order(ctx context.Context) error {
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	got, err := c.ask(ctx, deductOf(sku, 1, "a"), deductOf(sku, 1, "b"))
	if err != nil {
		return err
	}
	if got[0].Outcome != model.Sold || got[1].Outcome != model.SoldOut {
		return fmt.Errorf("two deducts of the last unit are answered %s and %s", got[0].Outcome, got[1].Outcome)
	}
	return nil
}

func (c *checkup) silence(ctx context.Context) error {
	p, err := c.process(ctx)
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
		return p.Err()
	case <-time.After(quiet):
	case <-ctx.Done():
	}
	return nil
}

// connection runs a client as a run would, and loses the reply to its first step.
func (c *checkup) connection(ctx context.Context) error {
	sku, err := c.article(ctx, 1)
	if err != nil {
		return err
	}
	gate, counter := &loser{}, new(wire.Counter)
	setup := clients.Setup{Client: "stockproof-check-2"}
	listen := func(server wire.Server, upstream string) (*wire.Proxy, error) {
		return wire.Listen(wire.Config{Server: server, Upstream: upstream, Counter: counter, Gate: gate})
	}
	if c.said.Redis {
		p, err := listen(wire.Redis, c.options.RedisAddr)
		if err != nil {
			return err
		}
		defer p.Close()
		setup.RedisAddr = p.Addr()
	}
	if c.said.SQL {
		p, err := listen(wire.Postgres, c.options.DBAddr)
		if err != nil {
			return err
		}
		defer p.Close()
		setup.DSN = c.options.DSNAt(p.Addr())
	}
	scheme, err := c.scheme(ctx)
	if err != nil {
		return err
	}
	client, err := scheme.Launch(ctx, c.reaper, setup)
	if err != nil {
		return fmt.Errorf("a client with only the stores it named: %w", err)
	}
	defer client.Kill()
	ctx, cancel := context.WithTimeoutCause(ctx, c.options.Timeout, fmt.Errorf("no answer after %s when a connection broke", c.options.Timeout))
	defer cancel()
	gate.armed.Store(true)
	if _, err := client.Run(ctx, clients.Operation{Op: model.Deduct, SKU: sku, Qty: 1, Request: "a@" + sku, Buyer: "check"}); err != nil {
		return err
	}
	if !gate.fired.Load() {
		return errors.New("a deduct went to none of the stores it named")
	}
	_, err = client.Run(ctx, clients.Operation{Op: model.Read, SKU: sku})
	return err
}

// loser is a gate that loses one reply.
type loser struct{ armed, fired atomic.Bool }

func (*loser) Request(context.Context, wire.Step) wire.RequestAction { return wire.Forward }

func (l *loser) Reply(context.Context, wire.Step, wire.Reply) wire.ReplyAction {
	if l.armed.CompareAndSwap(true, false) {
		l.fired.Store(true)
		return wire.LoseReply
	}
	return wire.Deliver
}

func (*loser) Gone(wire.Step, error) {}

func (c *checkup) end(ctx context.Context) error {
	p, err := c.process(ctx)
	if err != nil {
		return err
	}
	if err := p.stdin.Close(); err != nil {
		return err
	}
	select {
	case <-p.gone:
	case <-time.After(endLimit):
		return fmt.Errorf("it is still there %s after its input ended", endLimit)
	case <-ctx.Done():
		return nil
	}
	if !p.cmd.ProcessState.Success() {
		return p.withLog(fmt.Errorf("it ended with %s", p.cmd.ProcessState))
	}
	left, err := p.family.Members()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("it left processes behind: %v", left)
	}
	return nil
}

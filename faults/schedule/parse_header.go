package schedule

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"stockproof/model"
)

func (p *parser) header() error {
	rest, n, err := p.next(PartVersion, "schedule")
	if err != nil {
		return err
	}
	if rest != "v"+strconv.Itoa(Version) {
		return p.errorAt(n, "version %q; this program reads v%d", rest, Version)
	}
	if rest, n, err = p.next(PartScheme, "scheme"); err != nil {
		return err
	}
	if p.s.Scheme, err = unword(rest); err != nil || p.s.Scheme == "" || !strings.HasPrefix(rest, `"`) && strings.ContainsAny(rest, " \t") {
		return p.errorAt(n, "scheme: want one name")
	}
	if err := p.config(); err != nil {
		return err
	}
	if rest, n, err = p.next(PartStock, "stock"); err != nil {
		return err
	}
	article, units, _ := strings.Cut(rest, " ")
	sku, ok := strings.CutPrefix(article, "goods:")
	if !ok || sku == "" || word(sku) != sku {
		return p.errorAt(n, "stock: want goods:SKU and a number of units")
	}
	p.s.SKU = sku
	if p.s.Stock, err = parseUnits(trimBlank(units), 0); err != nil {
		return p.errorAt(n, "stock: %v", err)
	}
	for p.peek() == "client" {
		if err := p.client(); err != nil {
			return err
		}
	}
	if len(p.s.Clients) == 0 {
		_, n, err = p.next("", "client")
		if err == nil {
			err = p.errorAt(n, "no client")
		}
		return err
	}
	return p.rule(PartSteps)
}

func (p *parser) rule(part string) error {
	rest, n, err := p.next(part, rule)
	if err == nil && rest != "" {
		err = p.errorAt(n, "%q after %s", rest, rule)
	}
	return err
}

func (p *parser) config() error {
	rest, n, err := p.next(PartConfig, "config")
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(rest) {
		key, value, _ := strings.Cut(field, "=")
		var d time.Duration
		var into *time.Duration
		switch key {
		case "lease":
			into = &p.s.Times.Lease
		case "wait":
			into = &p.s.Times.Wait
		case "retry":
			into = &p.s.Times.Retry
		case "record":
			into = &p.s.Times.Record
		case "retries":
			if value != "off" && value != "default" {
				return p.errorAt(n, "config: retries=%s; there are off and default", value)
			}
			if p.s.Retries != "" {
				return p.errorAt(n, "config: retries twice")
			}
			p.s.Retries = value
			continue
		case "replicas":
			if p.s.Times.Replicas != 0 {
				return p.errorAt(n, "config: replicas twice")
			}
			if p.s.Times.Replicas, err = strconv.Atoi(value); err != nil || p.s.Times.Replicas != 1 {
				return p.errorAt(n, "config: replicas=%s; a replay has one replica", value)
			}
			continue
		default:
			return p.errorAt(n, "config: %q; there are lease, wait, retry, record, replicas and retries", key)
		}
		if d, err = duration(value); err != nil {
			return p.errorAt(n, "config: %s: %v", key, err)
		}
		if *into != 0 {
			return p.errorAt(n, "config: %s twice", key)
		}
		*into = d
	}
	if p.s.Retries == "" {
		return p.errorAt(n, "config: retries is missing")
	}
	return nil
}

// maxTime bounds one time: far above any lease, and few enough renewals of a
// watchdog that a replay ends.
const maxTime = 10 * time.Minute

// duration is a time of at least one millisecond.
func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q is no time; write it as 300ms", text)
	case d < time.Millisecond || d%time.Millisecond != 0:
		return 0, fmt.Errorf("%s: want whole milliseconds, at least one", text)
	case d > maxTime:
		return 0, fmt.Errorf("%s: the most is %s", text, maxTime)
	}
	return d, nil
}

func parseUnits(text string, least int64) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < least || n > maxUnits {
		return 0, fmt.Errorf("%q is no number of units from %d to %d", text, least, int64(maxUnits))
	}
	return n, nil
}

var (
	clientName  = regexp.MustCompile(`^[a-z][0-9]*$`)
	requestName = regexp.MustCompile(`^[a-z][0-9]*\.[1-9][0-9]*$`)
)

func (p *parser) client() error {
	name, _ := cutWord(strings.TrimPrefix(p.lines[p.at].text, "client"))
	rest, n, err := p.next(PartClient+name, "client")
	if err != nil {
		return err
	}
	c := Client{Name: name}
	if !clientName.MatchString(name) {
		return p.errorAt(n, "client %q: a name is a letter, or a letter and digits", name)
	}
	if _, taken := p.s.Client(name); taken {
		return p.errorAt(n, "client %s is there twice", name)
	}
	p.s.Clients = append(p.s.Clients, c) // its own requests can be submitted again
	at := len(p.s.Clients) - 1
	for _, text := range strings.Split(strings.TrimPrefix(rest, name), ",") {
		call, err := p.call(strings.Fields(text))
		if err != nil {
			return p.errorAt(n, "client %s: %v", name, err)
		}
		p.s.Clients[at].Calls = append(p.s.Clients[at].Calls, call)
	}
	return nil
}

func (p *parser) call(words []string) (Call, error) {
	const want = "want deduct N, restock N, read or work, and perhaps as another's request; or load N or reconcile N, of a job"
	var c Call
	if len(words) >= 2 && words[len(words)-2] == "as" {
		c.As = words[len(words)-1]
		words = words[:len(words)-2]
		if _, ok := p.request(c.As); !ok {
			return c, fmt.Errorf("there is no request %q above", c.As)
		}
	}
	if len(words) == 0 {
		return c, errors.New(want)
	}
	c.Op = model.Op(words[0])
	switch {
	case (c.Op == model.Read || c.Op == model.Work) && len(words) == 1:
		return c, nil
	case (c.Op == Load || c.Op == Reconcile) && c.As != "":
	case (c.Op == model.Deduct || c.Op == model.Restock || c.Op == Load || c.Op == Reconcile) && len(words) == 2:
		var err error
		c.Qty, err = parseUnits(words[1], 1)
		return c, err
	}
	return c, errors.New(want)
}

// request finds the operation that is the owner of a request id.
func (p *parser) request(id string) (Call, bool) {
	if !requestName.MatchString(id) {
		return Call{}, false
	}
	name, number, _ := strings.Cut(id, ".")
	n, _ := strconv.Atoi(number)
	c, ok := p.s.Client(name)
	if !ok || n > len(c.Calls) || n < 1 {
		return Call{}, false
	}
	return c.Calls[n-1], c.Calls[n-1].As == "" && c.Calls[n-1].Op != model.Work
}

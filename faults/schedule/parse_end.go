package schedule

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"stockproof/model"
)

func (p *parser) footer() error {
	if err := p.rule(PartEnd); err != nil {
		return err
	}
	rest, n, err := p.next(PartOutcome, "outcome")
	if err != nil {
		return err
	}
	for _, field := range strings.Fields(rest) {
		a, err := p.answer(field)
		if err != nil {
			return p.errorAt(n, "outcome: %v", err)
		}
		if slices.ContainsFunc(p.s.Outcomes, func(b Answer) bool { return a.Client == b.Client && a.N == b.N }) {
			return p.errorAt(n, "outcome: %s twice", p.s.Label(a))
		}
		p.s.Outcomes = append(p.s.Outcomes, a)
	}
	if rest, n, err = p.next(PartFinal, "stock"); err != nil {
		return err
	}
	if p.s.Final, err = parseStock(rest); err != nil {
		return p.errorAt(n, "%v", err)
	}
	if p.peek() == "orders" {
		if err := p.orders(); err != nil {
			return err
		}
	}
	if err := p.violates(); err != nil {
		return err
	}
	if p.at < len(p.lines) {
		return p.errorAt(p.lines[p.at].note.Line, "%q after the end", p.lines[p.at].text)
	}
	p.s.Notes[PartAfter] = p.after
	return nil
}

func parseStock(text string) (Stock, error) {
	if text == "unknown" {
		return Stock{}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n > maxUnits || n < -maxUnits {
		return Stock{}, fmt.Errorf("stock %q: want a number of units, or unknown", text)
	}
	return Stock{true, n}, nil
}

func (p *parser) orders() error {
	rest, n, err := p.next(PartOrders, "orders")
	if err != nil {
		return err
	}
	list := []model.Order{}
	for rest != "" && rest != "none" {
		var field string
		field, rest = cutWord(rest)
		rest = trimBlank(rest)
		text, err := unword(field)
		i := strings.LastIndexByte(text, '=')
		if err != nil || i < 1 {
			return p.errorAt(n, "orders: %q: want request=units, or none", field)
		}
		o := model.Order{Request: text[:i]}
		if o.Qty, err = parseUnits(text[i+1:], 1); err != nil {
			return p.errorAt(n, "orders: %v", err)
		}
		list = append(list, o)
	}
	p.s.Orders = &list
	return nil
}

func (p *parser) violates() error {
	rest, n, err := p.next(PartViolates, "violates")
	if err != nil {
		return err
	}
	if rest == "nothing" {
		return nil
	}
	for _, field := range strings.Fields(rest) {
		name, amount, given := strings.Cut(field, "=")
		v := Violation{Property: model.Property(name), Amount: 1}
		if _, ok := v.Property.Info(); !ok {
			return p.errorAt(n, "violates: there is no property %q", name)
		}
		if given {
			if v.Amount, err = strconv.ParseInt(amount, 10, 64); err != nil {
				return p.errorAt(n, "violates: %s=%s: want a number", name, amount)
			}
		}
		if slices.ContainsFunc(p.s.Violates, func(w Violation) bool { return v.Property == w.Property }) {
			return p.errorAt(n, "violates: %s twice", name)
		}
		p.s.Violates = append(p.s.Violates, v)
	}
	if len(p.s.Violates) == 0 {
		return p.errorAt(n, "violates what? Write nothing if no law is broken")
	}
	return nil
}

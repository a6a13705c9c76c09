package sqlsubset

import (
	"math"
	"strconv"
)

// expr reads an expression. Precedence as in PostgreSQL, lowest first: OR, AND,
// NOT, IS, comparison (which does not associate), + and -, *, unary minus.
func (p *parser) expr(where string) (*expr, error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.refuse("expression nested too deeply", p.peek().pos)
	}
	defer func() { p.depth-- }()
	return p.left(where, []opWord{{"or", opOr}}, func(where string) (*expr, error) {
		return p.left(where, []opWord{{"and", opAnd}}, p.notExpr)
	})
}

type opWord struct {
	text string
	op   op
}

// left reads operands joined by left-associative operators of one level.
func (p *parser) left(where string, ops []opWord, operand func(string) (*expr, error)) (*expr, error) {
	e, err := operand(where)
next:
	for err == nil {
		t := p.peek()
		for _, o := range ops {
			if t.text == o.text && (t.kind == tokWord || t.kind == tokOp) {
				p.next()
				var r *expr
				if r, err = operand(where); err == nil {
					e = &expr{op: o.op, kids: []*expr{e, r}, pos: t.pos}
				}
				continue next
			}
		}
		return e, nil
	}
	return nil, err
}

func (p *parser) notExpr(where string) (*expr, error) {
	if t := p.peek(); p.word("not") {
		if p.depth++; p.depth > maxDepth {
			return nil, p.refuse("expression nested too deeply", t.pos)
		}
		defer func() { p.depth-- }()
		e, err := p.notExpr(where)
		if err != nil {
			return nil, err
		}
		return &expr{op: opNot, kids: []*expr{e}, pos: t.pos}, nil
	}
	e, err := p.comparison(where)
	if err != nil {
		return nil, err
	}
	for p.isWord("is") {
		pos := p.peek().pos
		switch {
		case p.word("is", "null"):
			e = &expr{op: opIsNull, kids: []*expr{e}, pos: pos}
		case p.word("is", "not", "null"):
			e = &expr{op: opIsNotNull, kids: []*expr{e}, pos: pos}
		default:
			return nil, p.unexpected(where)
		}
	}
	return e, nil
}

var comparisons = map[string]op{"=": opEq, "<>": opNe, "!=": opNe, "<": opLt, "<=": opLe, ">": opGt, ">=": opGe}

func (p *parser) comparison(where string) (*expr, error) {
	l, err := p.sum(where)
	if err != nil {
		return nil, err
	}
	t := p.peek()
	o, ok := comparisons[t.text]
	if t.kind != tokOp || !ok {
		return l, nil
	}
	p.next()
	r, err := p.sum(where)
	if err != nil {
		return nil, err
	}
	if n := p.peek(); n.kind == tokOp && comparisons[n.text] != 0 {
		return nil, p.refuse("comparison of a comparison", n.pos)
	}
	return &expr{op: o, kids: []*expr{l, r}, pos: t.pos}, nil
}

func (p *parser) sum(where string) (*expr, error) {
	return p.left(where, []opWord{{"+", opAdd}, {"-", opSub}}, func(where string) (*expr, error) {
		return p.left(where, []opWord{{"*", opMul}}, p.unary)
	})
}

func (p *parser) unary(where string) (*expr, error) {
	t := p.peek()
	if p.op("-") {
		if p.depth++; p.depth > maxDepth {
			return nil, p.refuse("expression nested too deeply", t.pos)
		}
		defer func() { p.depth-- }()
		e, err := p.unary(where)
		if err != nil {
			return nil, err
		}
		return &expr{op: opNeg, kids: []*expr{e}, pos: t.pos}, nil
	}
	return p.primary(where)
}

func (p *parser) primary(where string) (*expr, error) {
	t := p.peek()
	switch t.kind {
	case tokNumber:
		n, err := strconv.ParseInt(t.text, 10, 64)
		if err != nil {
			return nil, p.refuse("number outside bigint", t.pos)
		}
		p.next()
		lit := typInt8
		if n <= math.MaxInt32 {
			lit = typInt4 // as PostgreSQL types integer literals
		}
		return &expr{op: opConst, val: intValue(n), lit: lit, pos: t.pos}, nil
	case tokString:
		p.next()
		return &expr{op: opConst, val: textValue(t.text), lit: typUnknown, pos: t.pos}, nil
	case tokParam:
		n, err := strconv.Atoi(t.text)
		if err != nil || n < 1 || n > 100 {
			return nil, p.refuse("parameter outside $1 … $100", t.pos)
		}
		if p.bare {
			return nil, p.unexpected(where)
		}
		p.next()
		p.st.params = max(p.st.params, n)
		return &expr{op: opParam, param: n, pos: t.pos}, nil
	case tokOp:
		if p.op("(") {
			if p.isWord("select") {
				return nil, p.refuse("subquery", t.pos)
			}
			e, err := p.expr(where)
			if err != nil {
				return nil, err
			}
			if p.isOp(",") {
				return nil, p.refuse("row value", t.pos)
			}
			return e, p.needOp(")", where)
		}
		return nil, p.unexpected(where)
	case tokWord:
		switch {
		case p.word("null"):
			return &expr{op: opConst, lit: typUnknown, pos: t.pos}, nil
		case p.word("true"):
			return &expr{op: opConst, val: boolValue(true), lit: typBool, pos: t.pos}, nil
		case p.word("false"):
			return &expr{op: opConst, val: boolValue(false), lit: typBool, pos: t.pos}, nil
		case p.word("coalesce"):
			return p.coalesce(where, t.pos)
		}
		if n := p.toks[p.i+1]; n.kind == tokOp && n.text == "(" {
			return p.aggregate(where)
		}
	case tokEnd:
		return nil, p.unexpected(where)
	}
	n, err := p.name(where)
	if err != nil {
		return nil, err
	}
	e := &expr{op: opColumn, name: n, pos: t.pos}
	if p.op(".") {
		e.qual = n
		if p.isOp("*") {
			return nil, p.refuse("table.*", t.pos)
		}
		if e.name, err = p.name("after '.'"); err != nil {
			return nil, err
		}
	}
	return e, nil
}

func (p *parser) coalesce(where string, pos int) (*expr, error) {
	if err := p.needOp("(", "after COALESCE"); err != nil {
		return nil, err
	}
	e := &expr{op: opCoalesce, pos: pos}
	for {
		k, err := p.expr(where)
		if err != nil {
			return nil, err
		}
		e.kids = append(e.kids, k)
		if !p.op(",") {
			return e, p.needOp(")", "in COALESCE")
		}
	}
}

func (p *parser) aggregate(where string) (*expr, error) {
	t := p.next()
	p.next() // (
	e := &expr{pos: t.pos}
	switch t.text {
	case "count":
		if !p.op("*") {
			return nil, p.refuse("count of other than *", t.pos)
		}
		e.op = opCount
	case "sum":
		arg := p.peek()
		n, err := p.name("as the argument of sum")
		if err != nil {
			return nil, err
		}
		if !p.isOp(")") {
			return nil, p.refuse("sum of other than a column", t.pos)
		}
		e.op, e.kids = opSum, []*expr{{op: opColumn, name: n, pos: arg.pos}}
	default:
		return nil, p.refuse("function "+t.text, t.pos)
	}
	if !p.allowAgg {
		return nil, p.refuse("aggregate "+t.text+" "+where, t.pos)
	}
	p.sawAgg = true
	return e, p.needOp(")", "after an aggregate")
}

package sqlsubset

import (
	"fmt"
	"slices"
	"strings"
)

// plan is a statement with names and types resolved against a schema.
type plan struct {
	tab      *table
	tabIndex int
	params   []typ

	columns []string // of the answer
	types   []typ
	items   []*bound
	agg     bool // the answer is one row of aggregates

	where  *bound
	order  []boundOrder
	values []*bound // INSERT: one for each column of the table
	sets   []boundSet

	arbiters []int // ON CONFLICT: indexes into tab.uniques
	conSets  []boundSet
	conWhere *bound
}

type boundOrder struct {
	col  int
	desc bool
}

type boundSet struct {
	col int
	e   *bound
}

// bound is an expression ready to be evaluated.
type bound struct {
	op       op
	typ      typ
	kids     []*bound
	col      int
	excluded bool
	val      value
	param    int // from 0
}

func (b *bound) describe() string {
	var kids []string
	for _, k := range b.kids {
		kids = append(kids, k.describe())
	}
	return fmt.Sprintf("(%d %d %d %q %s)", b.op, b.typ, b.col, b.val.display(), strings.Join(kids, " "))
}

type binder struct {
	tab      *table
	sql      string
	params   []typ
	excluded bool         // EXCLUDED may be named
	inAgg    bool         // inside an aggregate
	agg      bool         // an aggregate was met
	bareCol  string       // a column met outside an aggregate
	used     map[int]bool // columns met, when not nil
}

// plan answers the plan of a statement, made once for each schema.
func (s *schema) plan(st *Statement) (*plan, error) {
	if p, ok := s.plans.Load(st.text); ok {
		if p, ok := p.(*plan); ok {
			return p, nil
		}
		return nil, p.(error)
	}
	p, err := s.bind(st)
	if err != nil {
		s.plans.Store(st.text, err)
		return nil, err
	}
	s.plans.Store(st.text, p)
	return p, nil
}

// bind resolves in the order PostgreSQL does, since a parameter takes the type
// of its first use.
func (s *schema) bind(st *Statement) (*plan, error) {
	tab, idx, err := s.lookup(st.table)
	if err != nil {
		return nil, err
	}
	p := &plan{tab: tab, tabIndex: idx}
	b := &binder{tab: tab, sql: st.sql, params: make([]typ, st.params)}
	steps := map[Kind][]func(*plan, *Statement) error{
		Select: {b.items, b.where, b.orderBy},
		Update: {b.where, b.items, b.updateSets},
		Delete: {b.where, b.items},
		Insert: {b.insert, b.onConflict, b.items},
	}[st.kind]
	for _, step := range steps {
		if err := step(p, st); err != nil {
			return nil, err
		}
	}
	for i, t := range b.params {
		if t == typUnknown {
			return nil, pgErr(codeNoParamType, "could not determine data type of parameter $%d", i+1)
		}
	}
	p.params = b.params
	return p, nil
}

func (b *binder) items(p *plan, st *Statement) error {
	for _, it := range st.items {
		if it.star {
			for i, c := range b.tab.cols {
				p.add(c.name, &bound{op: opColumn, typ: c.typ, col: i})
				b.bareCol = c.name
			}
			continue
		}
		e, err := b.expr(it.e)
		if err != nil {
			return err
		}
		if e.typ == typUnknown {
			if e, err = b.coerce(e, typText); err != nil {
				return err
			}
		}
		name := it.as
		if name == "" {
			name = map[op]string{opColumn: it.e.name, opCount: "count", opSum: "sum", opCoalesce: "coalesce"}[it.e.op]
		}
		if name == "" {
			name = "?column?"
		}
		p.add(name, e)
	}
	if b.agg && b.bareCol != "" {
		return pgErr(codeGrouping, `column "%s.%s" must appear in the GROUP BY clause or be used in an aggregate function`, b.tab.name, b.bareCol)
	}
	p.agg = b.agg
	return nil
}

func (p *plan) add(name string, e *bound) {
	p.columns = append(p.columns, name)
	p.types = append(p.types, e.typ)
	p.items = append(p.items, e)
}

func (b *binder) where(p *plan, st *Statement) (err error) {
	if st.where != nil {
		p.where, err = b.condition(st.where, "WHERE")
	}
	return err
}

func (b *binder) condition(e *expr, clause string) (*bound, error) {
	x, err := b.expr(e)
	if err != nil {
		return nil, err
	}
	if x.typ == typUnknown {
		return b.coerce(x, typBool)
	}
	if x.typ != typBool {
		return nil, pgErr(codeTypeMismatch, "argument of %s must be type boolean, not type %s", clause, x.typ)
	}
	return x, nil
}

func (b *binder) orderBy(p *plan, st *Statement) error {
	for _, o := range st.order {
		for i, it := range st.items {
			if it.as == o.e.name && !(it.e.op == opColumn && it.e.name == it.as) {
				return &UnsupportedError{What: "ORDER BY of an output name", SQL: b.sql, Pos: st.items[i].e.pos}
			}
		}
		x, err := b.expr(o.e)
		if err != nil {
			return err
		}
		p.order = append(p.order, boundOrder{x.col, o.desc})
	}
	return nil
}

func (b *binder) updateSets(p *plan, st *Statement) (err error) {
	p.sets, err = b.sets(st.sets)
	return err
}

func (b *binder) sets(sets []assignment) ([]boundSet, error) {
	var out []boundSet
	for _, a := range sets {
		i, ok := b.tab.byName[a.col]
		if !ok {
			return nil, pgErr(codeNoColumn, `column "%s" of relation "%s" does not exist`, a.col, b.tab.name)
		}
		if b.tab.keyCols[i] {
			return nil, &UnsupportedError{What: "UPDATE of key column " + a.col, SQL: b.sql, Pos: a.pos}
		}
		for _, o := range out {
			if o.col == i {
				return nil, pgErr(codeSyntax, `multiple assignments to same column "%s"`, a.col)
			}
		}
		x, err := b.assign(a.e, b.tab.cols[i])
		if err != nil {
			return nil, err
		}
		out = append(out, boundSet{i, x})
	}
	return out, nil
}

// assign binds an expression as the new value of a column.
func (b *binder) assign(e *expr, c columnDef) (*bound, error) {
	x, err := b.expr(e)
	if err != nil {
		return nil, err
	}
	switch {
	case x.typ == typUnknown:
		return b.coerce(x, c.typ)
	case x.typ == c.typ, x.typ.number() && c.typ == typInt8:
		return x, nil
	case x.typ.number() && c.typ == typText:
		return &bound{op: opToText, typ: typText, kids: []*bound{x}}, nil
	case x.typ == typBool && c.typ == typText:
		return nil, &UnsupportedError{What: "boolean stored as text", SQL: b.sql, Pos: e.pos}
	}
	return nil, pgErr(codeTypeMismatch, `column "%s" is of type %s but expression is of type %s`, c.name, c.typ, x.typ)
}

func (b *binder) insert(p *plan, st *Statement) error {
	cols := make([]int, 0, len(b.tab.cols))
	if st.cols == nil {
		for i := range b.tab.cols {
			cols = append(cols, i)
		}
	}
	for _, n := range st.cols {
		i, ok := b.tab.byName[n]
		if !ok {
			return pgErr(codeNoColumn, `column "%s" of relation "%s" does not exist`, n, b.tab.name)
		}
		if slices.Contains(cols, i) {
			return pgErr(codeColumnTwice, `column "%s" specified more than once`, n)
		}
		cols = append(cols, i)
	}
	if len(st.values) > len(cols) {
		return pgErr(codeSyntax, "INSERT has more expressions than target columns")
	}
	if len(st.values) < len(st.cols) {
		return pgErr(codeSyntax, "INSERT has more target columns than expressions")
	}
	p.values = make([]*bound, len(b.tab.cols))
	outer := b.tab
	for k, e := range st.values {
		b.tab = noColumns // VALUES sees no columns
		x, err := b.assign(e, outer.cols[cols[k]])
		b.tab = outer
		if err != nil {
			return err
		}
		p.values[cols[k]] = x
	}
	for i := range p.values {
		if p.values[i] == nil {
			p.values[i] = &bound{op: opConst, typ: b.tab.cols[i].typ, val: b.tab.defs[i]}
		}
	}
	return nil
}

var noColumns = &table{}

func (b *binder) onConflict(p *plan, st *Statement) (err error) {
	c := st.conflict
	if c == nil {
		return nil
	}
	want := map[int]bool{}
	for _, n := range c.target {
		i, ok := b.tab.byName[n]
		if !ok {
			return pgErr(codeNoColumn, `column "%s" does not exist`, n)
		}
		want[i] = true
	}
	for i, u := range b.tab.uniques {
		match := len(u.cols) == len(want)
		for _, col := range u.cols {
			match = match && want[col]
		}
		if match || c.target == nil {
			p.arbiters = append(p.arbiters, i)
		}
	}
	if c.target != nil && len(p.arbiters) == 0 {
		return pgErr(codeNoConflictTarget, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	if !c.update {
		return nil
	}
	b.excluded = true
	defer func() { b.excluded = false }()
	if p.conSets, err = b.sets(c.sets); err != nil {
		return err
	}
	if c.where != nil {
		p.conWhere, err = b.condition(c.where, "WHERE")
	}
	return err
}

func (b *binder) column(e *expr) (*bound, error) {
	x := &bound{op: opColumn}
	switch {
	case e.qual == "":
	case e.qual == b.tab.name:
	case e.qual == "excluded" && b.excluded:
		x.excluded = true
	default:
		return nil, pgErr(codeNoTable, `missing FROM-clause entry for table "%s"`, e.qual)
	}
	i, ok := b.tab.byName[e.name]
	if !ok {
		if e.qual != "" {
			return nil, pgErr(codeNoColumn, `column %s.%s does not exist`, e.qual, e.name)
		}
		return nil, pgErr(codeNoColumn, `column "%s" does not exist`, e.name)
	}
	if b.excluded && e.qual == "" {
		return nil, pgErr("42702", `column reference "%s" is ambiguous`, e.name)
	}
	x.col, x.typ = i, b.tab.cols[i].typ
	if !b.inAgg && b.bareCol == "" {
		b.bareCol = e.name
	}
	if b.used != nil {
		b.used[i] = true
	}
	return x, nil
}

func (b *binder) expr(e *expr) (*bound, error) {
	switch e.op {
	case opConst:
		return &bound{op: opConst, typ: e.lit, val: e.val}, nil
	case opParam:
		return &bound{op: opParam, typ: b.params[e.param-1], param: e.param - 1}, nil
	case opColumn:
		return b.column(e)
	case opCount:
		b.agg = true
		return &bound{op: opCount, typ: typInt8}, nil
	case opSum:
		b.agg, b.inAgg = true, true
		k, err := b.expr(e.kids[0])
		b.inAgg = false
		if err != nil {
			return nil, err
		}
		if k.typ != typInt8 {
			return nil, pgErr(codeNoOperator, "function sum(%s) does not exist", k.typ)
		}
		return &bound{op: opSum, typ: typNumeric, kids: []*bound{k}}, nil
	}
	x := &bound{op: e.op, typ: typBool}
	for _, k := range e.kids {
		bk, err := b.expr(k)
		if err != nil {
			return nil, err
		}
		x.kids = append(x.kids, bk)
	}
	return b.operator(x)
}

// operator finds the types of an operator's operands and result.
func (b *binder) operator(x *bound) (_ *bound, err error) {
	coerceAll := func(t typ) error {
		for i, k := range x.kids {
			if k.typ == typUnknown {
				if x.kids[i], err = b.coerce(k, t); err != nil {
					return err
				}
			}
		}
		return nil
	}
	switch x.op {
	case opAnd, opOr, opNot:
		for _, k := range x.kids {
			if k.typ != typUnknown && k.typ != typBool {
				return nil, pgErr(codeTypeMismatch, "argument of %s must be type boolean, not type %s", sqlOp[x.op], k.typ)
			}
		}
		return x, coerceAll(typBool)
	case opIsNull, opIsNotNull:
		return x, coerceAll(typText)
	case opNeg:
		k := x.kids[0]
		if k.typ == typUnknown {
			return nil, pgErr(codeAmbiguous, "operator is not unique: - unknown")
		}
		if !k.typ.number() {
			return nil, pgErr(codeNoOperator, "operator does not exist: - %s", k.typ)
		}
		x.typ = k.typ
		return x, nil
	case opCoalesce:
		t := typUnknown
		for _, k := range x.kids {
			switch {
			case k.typ == typUnknown || k.typ == t:
			case t == typUnknown, t.number() && k.typ.number():
				t = max(t, k.typ)
			default:
				return nil, pgErr(codeTypeMismatch, "COALESCE types %s and %s cannot be matched", t, k.typ)
			}
		}
		if t == typUnknown {
			t = typText
		}
		x.typ = t
		return x, coerceAll(t)
	}
	l, r := x.kids[0].typ, x.kids[1].typ
	arith := x.op == opAdd || x.op == opSub || x.op == opMul
	switch {
	case l == typUnknown && r == typUnknown:
		if arith {
			return nil, pgErr(codeAmbiguous, "operator is not unique: unknown %s unknown", sqlOp[x.op])
		}
		err = coerceAll(typText)
	case l == typUnknown || r == typUnknown:
		err = coerceAll(max(l, r))
	}
	if err != nil {
		return nil, err
	}
	l, r = x.kids[0].typ, x.kids[1].typ
	bothNumbers := l.number() && r.number()
	if !bothNumbers && (arith || l != r) {
		return nil, pgErr(codeNoOperator, "operator does not exist: %s %s %s", l, sqlOp[x.op], r)
	}
	if arith {
		x.typ = max(l, r)
	}
	return x, nil
}

var sqlOp = map[op]string{opAdd: "+", opSub: "-", opMul: "*", opEq: "=", opNe: "<>", opLt: "<", opLe: "<=",
	opGt: ">", opGe: ">=", opAnd: "AND", opOr: "OR", opNot: "NOT"}

// coerce gives an expression of unknown type the type its place asks for.
func (b *binder) coerce(x *bound, t typ) (*bound, error) {
	switch {
	case x.op == opParam:
		if b.params[x.param] == typUnknown {
			b.params[x.param] = t
		} else if have := b.params[x.param]; have != t && !(have.number() && t.number()) {
			// The same parameter twice in one operator, first seen as unknown.
			return nil, pgErr("42P08", "inconsistent types deduced for parameter $%d", x.param+1)
		}
		return &bound{op: opParam, typ: b.params[x.param], param: x.param}, nil
	case x.val.null():
		return &bound{op: opConst, typ: t}, nil
	case t == typBool || t == typNumeric:
		return nil, &UnsupportedError{What: fmt.Sprintf("string literal as %s", t), SQL: b.sql}
	}
	v, err := readText(x.val.s, t)
	return &bound{op: opConst, typ: t, val: v}, err
}

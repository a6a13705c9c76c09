package sqlsubset

func (p *parser) createStmts() error {
	p.st.kind = CreateTable
	p.bare = true
	for {
		if !p.isWord("create") {
			return p.unexpected("after CREATE TABLE")
		}
		if !p.word("create", "table") {
			return p.unexpected("as a statement")
		}
		c, err := p.createTable()
		if err != nil {
			return err
		}
		p.st.creates = append(p.st.creates, c)
		for p.op(";") {
		}
		if p.peek().kind == tokEnd {
			return nil
		}
		if p.toks[p.i-1].text != ";" {
			return p.unexpected("after CREATE TABLE")
		}
	}
}

func (p *parser) createTable() (createTable, error) {
	var c createTable
	c.ifNotExists = p.word("if", "not", "exists")
	var err error
	if c.name, err = p.tableName("after CREATE TABLE"); err != nil {
		return c, err
	}
	if err := p.needOp("(", "after CREATE TABLE"); err != nil {
		return c, err
	}
	for {
		switch {
		case p.isWord("primary"), p.isWord("unique"), p.isWord("check"):
			err = p.tableConstraint(&c)
		default:
			err = p.columnDef(&c)
		}
		if err != nil {
			return c, err
		}
		if !p.op(",") {
			break
		}
	}
	if err := p.needOp(")", "in CREATE TABLE"); err != nil {
		return c, err
	}
	if p.peek().kind != tokEnd && !p.isOp(";") {
		return c, p.unexpected("after CREATE TABLE")
	}
	return c, nil
}

func (p *parser) tableConstraint(c *createTable) error {
	if p.isWord("check") {
		return p.check(c, "")
	}
	u := uniqueDef{}
	if p.word("primary", "key") {
		u.primary = true
	} else if !p.word("unique") {
		return p.unexpected("in CREATE TABLE")
	}
	var err error
	u.cols, err = p.nameList("in a table constraint")
	c.uniques = append(c.uniques, u)
	return err
}

func (p *parser) check(c *createTable, col string) error {
	p.next()
	if err := p.needOp("(", "after CHECK"); err != nil {
		return err
	}
	from := p.i
	e, err := p.expr("in CHECK")
	if err != nil {
		return err
	}
	c.checks = append(c.checks, checkDef{col: col, e: e, text: canonical(p.toks[from:p.i])})
	return p.needOp(")", "in CHECK")
}

func (p *parser) columnDef(c *createTable) error {
	var d columnDef
	var err error
	if d.name, err = p.name("as a column"); err != nil {
		return err
	}
	switch {
	case p.word("text"):
		d.typ = typText
	case p.word("bigint"), p.word("int8"):
		d.typ = typInt8
	default:
		if p.peek().kind == tokWord {
			return p.unexpected("as a column type")
		}
		return p.unexpected("in CREATE TABLE")
	}
	for {
		switch {
		case p.word("not", "null"):
			d.notNull = true
		case p.word("null"):
		case p.word("primary", "key"):
			c.uniques = append(c.uniques, uniqueDef{cols: []string{d.name}, primary: true})
		case p.word("unique"):
			c.uniques = append(c.uniques, uniqueDef{cols: []string{d.name}})
		case p.isWord("check"):
			if err := p.check(c, d.name); err != nil {
				return err
			}
		case p.isWord("default"):
			p.next()
			pos := p.peek().pos
			e, err := p.unary("in DEFAULT")
			if err != nil {
				return err
			}
			if lit := e; lit.op != opConst && !(lit.op == opNeg && lit.kids[0].op == opConst) {
				return p.refuse("DEFAULT of other than a literal", pos)
			}
			d.def = e
		default:
			c.cols = append(c.cols, d)
			return nil
		}
	}
}

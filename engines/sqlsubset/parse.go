package sqlsubset

import (
	"strings"
)

// Parse reads one statement of the subset (or several CREATE TABLE in one
// string, as a schema file has). Anything else is refused with an
// *UnsupportedError that names what was met; a string PostgreSQL would call a
// syntax error is refused the same way.
func Parse(sql string) (*Statement, error) {
	toks, err := lex(sql)
	if err != nil {
		return nil, err
	}
	p := &parser{sql: sql, toks: toks}
	st := &Statement{sql: sql, text: canonical(toks)}
	p.st = st
	if err := p.statement(); err != nil {
		return nil, err
	}
	return st, nil
}

type parser struct {
	sql   string
	toks  []token
	i     int
	depth int
	st    *Statement
	// allowAgg is true while the list of a SELECT is read.
	allowAgg bool
	sawAgg   bool
	bare     bool // no parameters allowed (DDL)
}

// maxDepth bounds the nesting of expressions, so that hostile input cannot
// exhaust the stack.
const maxDepth = 100

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

func (p *parser) refuse(what string, pos int) error {
	return &UnsupportedError{What: what, SQL: p.sql, Pos: pos}
}

// unexpected names the next token as what is not supported here.
func (p *parser) unexpected(where string) error {
	t := p.peek()
	what := ""
	switch t.kind {
	case tokEnd:
		what = "end of statement"
	case tokWord:
		what = strings.ToUpper(t.text)
		if n := p.toks[p.i+1]; n.kind == tokWord {
			if phrase := what + " " + strings.ToUpper(n.text); phrases[phrase] {
				what = phrase
			}
		}
	case tokOp:
		what = "operator " + t.text
		if strings.Contains("(),;.[]:", t.text) {
			what = "'" + t.text + "'"
		}
		if t.text == "::" {
			what = "cast ::"
		}
	case tokString:
		what = "string literal"
	case tokNumber:
		what = "number " + t.text
	case tokQuoted:
		what = `identifier "` + t.text + `"`
	case tokParam:
		what = "parameter $" + t.text
	}
	return p.refuse(what+" "+where, t.pos)
}

// phrases are constructs better named by two words.
var phrases = map[string]bool{
	"GROUP BY": true, "ORDER BY": true, "LEFT JOIN": true, "RIGHT JOIN": true, "INNER JOIN": true, "CROSS JOIN": true,
	"FULL JOIN": true, "NOT IN": true, "NOT LIKE": true, "NOT BETWEEN": true, "CREATE INDEX": true, "CREATE UNIQUE": true,
	"DROP TABLE": true, "ALTER TABLE": true, "FOR SHARE": true, "FOR NO": true, "FOR KEY": true, "SKIP LOCKED": true,
	"FOREIGN KEY": true, "NULLS FIRST": true, "NULLS LAST": true, "LOCK TABLE": true, "IS DISTINCT": true, "AND CHAIN": true,
	"OVERRIDING SYSTEM": true, "OVERRIDING USER": true, "DEFAULT VALUES": true, "ON CONSTRAINT": true, "IS TRUE": true,
	"TRUNCATE TABLE": true, "SET TRANSACTION": true, "ROLLBACK TO": true, "IS UNKNOWN": true,
}

func (p *parser) isWord(words ...string) bool {
	for k, w := range words {
		if p.i+k >= len(p.toks) {
			return false
		}
		if t := p.toks[p.i+k]; t.kind != tokWord || t.text != w {
			return false
		}
	}
	return true
}

func (p *parser) word(words ...string) bool {
	if p.isWord(words...) {
		p.i += len(words)
		return true
	}
	return false
}

func (p *parser) isOp(s string) bool { t := p.peek(); return t.kind == tokOp && t.text == s }

func (p *parser) op(s string) bool {
	if p.isOp(s) {
		p.i++
		return true
	}
	return false
}

func (p *parser) needWord(where string, words ...string) error {
	if !p.word(words...) {
		return p.unexpected(where)
	}
	return nil
}

func (p *parser) needOp(s, where string) error {
	if !p.op(s) {
		return p.unexpected(where)
	}
	return nil
}

// reserved words cannot be names without quotes. The list holds every word the
// grammar gives a meaning to, and those of PostgreSQL's reserved words that
// could follow a name in a clause we refuse.
var reserved = words(`all and any as asc between by case cast check coalesce collate conflict constraint create cross default
	delete desc distinct do else end except exists fetch for foreign from full group having in inner insert intersect into is
	isnull join lateral left like ilike similar limit natural not notnull null offset on only or order outer primary references
	returning right select set some table then true false union unique update user using values when where window with
	analyse analyze array asymmetric both column current_date current_role current_time current_timestamp current_user
	deferrable grant initially leading localtime localtimestamp placing session_user symmetric to trailing variadic
	current_catalog tablesample binary concurrently authorization collation current_schema freeze overlaps verbose`)

func words(s string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(s) {
		m[w] = true
	}
	return m
}

func (p *parser) name(where string) (string, error) {
	t := p.peek()
	if t.kind == tokQuoted || t.kind == tokWord && !reserved[t.text] {
		p.i++
		return t.text, nil
	}
	return "", p.unexpected(where)
}

// tableName reads an unqualified table name.
func (p *parser) tableName(where string) (string, error) {
	n, err := p.name(where)
	if err != nil {
		return "", err
	}
	if p.isOp(".") {
		return "", p.refuse("schema-qualified table name", p.peek().pos)
	}
	if n == "excluded" {
		return "", p.refuse("table named excluded", p.peek().pos)
	}
	if strings.HasPrefix(n, "pg_") {
		return "", p.refuse("system catalog "+n, p.peek().pos)
	}
	return n, nil
}

func (p *parser) statement() error {
	t := p.peek()
	if t.kind == tokEnd {
		return p.refuse("empty statement", t.pos)
	}
	if t.kind != tokWord {
		return p.unexpected("at the start of a statement")
	}
	var err error
	switch t.text {
	case "select":
		err = p.selectStmt()
	case "insert":
		err = p.insertStmt()
	case "update":
		err = p.updateStmt()
	case "delete":
		err = p.deleteStmt()
	case "begin":
		p.next()
		p.st.kind = Begin
		if !p.word("transaction") {
			p.word("work")
		}
		if p.word("isolation", "level") {
			if !p.word("read", "committed") {
				return p.refuse("isolation level other than READ COMMITTED", p.peek().pos)
			}
		}
	case "commit", "rollback":
		p.next()
		p.st.kind = Commit
		if t.text == "rollback" {
			p.st.kind = Rollback
		}
		if !p.word("transaction") {
			p.word("work")
		}
	case "create":
		return p.createStmts()
	default:
		return p.unexpected("as a statement")
	}
	if err != nil {
		return err
	}
	p.op(";")
	if p.peek().kind != tokEnd {
		if p.i > 0 && p.toks[p.i-1].text == ";" {
			return p.refuse("several statements in one string", p.peek().pos)
		}
		return p.unexpected("after " + p.st.kind.String())
	}
	return nil
}

func (p *parser) selectStmt() error {
	p.next()
	st := p.st
	st.kind = Select
	p.allowAgg = true
	items, err := p.items("in a SELECT list")
	if err != nil {
		return err
	}
	st.items = items
	p.allowAgg = false
	if p.peek().kind == tokEnd {
		return p.refuse("SELECT without FROM", p.peek().pos)
	}
	if err := p.needWord("after a SELECT list", "from"); err != nil {
		return err
	}
	if st.table, err = p.tableName("in FROM"); err != nil {
		return err
	}
	if p.isOp(",") {
		return p.refuse("several tables in FROM", p.peek().pos)
	}
	if err := p.whereClause(); err != nil {
		return err
	}
	if p.word("order", "by") {
		for {
			pos := p.peek().pos
			if p.sawAgg {
				return p.refuse("ORDER BY with an aggregate", pos)
			}
			n, err := p.name("in ORDER BY")
			if err != nil {
				return err
			}
			if p.isOp("(") || p.isOp(".") {
				return p.refuse("ORDER BY of other than a column", pos)
			}
			term := orderTerm{e: &expr{op: opColumn, name: n, pos: pos}}
			if p.word("desc") {
				term.desc = true
			} else {
				p.word("asc")
			}
			st.order = append(st.order, term)
			if !p.op(",") {
				break
			}
		}
	}
	if p.isWord("for") {
		pos := p.peek().pos
		if !p.word("for", "update") {
			return p.unexpected("after SELECT")
		}
		if p.sawAgg {
			return p.refuse("FOR UPDATE with an aggregate", pos)
		}
		st.forUpdate = true
	}
	return nil
}

func (p *parser) items(where string) ([]item, error) {
	var out []item
	for {
		var it item
		if p.op("*") {
			it.star = true
		} else {
			e, err := p.expr(where)
			if err != nil {
				return nil, err
			}
			it.e = e
			if p.word("as") {
				if it.as, err = p.name("after AS"); err != nil {
					return nil, err
				}
			}
		}
		out = append(out, it)
		if !p.op(",") {
			return out, nil
		}
	}
}

func (p *parser) whereClause() error {
	if !p.word("where") {
		return nil
	}
	if p.isWord("current", "of") {
		return p.refuse("WHERE CURRENT OF", p.peek().pos)
	}
	e, err := p.expr("in WHERE")
	p.st.where = e
	return err
}

func (p *parser) returningClause() error {
	if !p.word("returning") {
		return nil
	}
	items, err := p.items("in RETURNING")
	p.st.items, p.st.returning = items, true
	return err
}

func (p *parser) updateStmt() error {
	p.next()
	st := p.st
	st.kind = Update
	var err error
	if st.table, err = p.tableName("after UPDATE"); err != nil {
		return err
	}
	if err := p.needWord("after UPDATE "+st.table, "set"); err != nil {
		return err
	}
	if st.sets, err = p.assignments(); err != nil {
		return err
	}
	if err := p.whereClause(); err != nil {
		return err
	}
	return p.returningClause()
}

func (p *parser) assignments() ([]assignment, error) {
	var sets []assignment
	for {
		if p.isOp("(") {
			return nil, p.refuse("SET of a list of columns", p.peek().pos)
		}
		a := assignment{pos: p.peek().pos}
		var err error
		if a.col, err = p.name("in SET"); err != nil {
			return nil, err
		}
		if err := p.needOp("=", "in SET"); err != nil {
			return nil, err
		}
		if p.isWord("default") {
			return nil, p.unexpected("in SET")
		}
		if a.e, err = p.expr("in SET"); err != nil {
			return nil, err
		}
		sets = append(sets, a)
		if !p.op(",") {
			return sets, nil
		}
	}
}

func (p *parser) deleteStmt() error {
	p.next()
	p.st.kind = Delete
	if err := p.needWord("after DELETE", "from"); err != nil {
		return err
	}
	var err error
	if p.st.table, err = p.tableName("after DELETE FROM"); err != nil {
		return err
	}
	if err := p.whereClause(); err != nil {
		return err
	}
	return p.returningClause()
}

func (p *parser) insertStmt() error {
	p.next()
	st := p.st
	st.kind = Insert
	if err := p.needWord("after INSERT", "into"); err != nil {
		return err
	}
	var err error
	if st.table, err = p.tableName("after INSERT INTO"); err != nil {
		return err
	}
	if p.isOp("(") {
		if st.cols, err = p.nameList("in the column list"); err != nil {
			return err
		}
	}
	if err := p.needWord("after INSERT INTO "+st.table, "values"); err != nil {
		return err
	}
	if err := p.needOp("(", "after VALUES"); err != nil {
		return err
	}
	for {
		if p.isWord("default") {
			return p.unexpected("in VALUES")
		}
		e, err := p.expr("in VALUES")
		if err != nil {
			return err
		}
		st.values = append(st.values, e)
		if !p.op(",") {
			break
		}
	}
	if err := p.needOp(")", "in VALUES"); err != nil {
		return err
	}
	if p.isOp(",") {
		return p.refuse("VALUES of several rows", p.peek().pos)
	}
	if p.word("on", "conflict") {
		if err := p.conflictClause(); err != nil {
			return err
		}
	}
	return p.returningClause()
}

func (p *parser) conflictClause() error {
	c := &conflict{}
	p.st.conflict = c
	var err error
	pos := p.peek().pos
	if p.isOp("(") {
		if c.target, err = p.nameList("in ON CONFLICT"); err != nil {
			return err
		}
		if p.isWord("where") {
			return p.refuse("WHERE in the target of ON CONFLICT", p.peek().pos)
		}
	}
	if err := p.needWord("after ON CONFLICT", "do"); err != nil {
		return err
	}
	if p.word("nothing") {
		return nil
	}
	if err := p.needWord("after ON CONFLICT … DO", "update"); err != nil {
		return err
	}
	if c.target == nil {
		return p.refuse("ON CONFLICT DO UPDATE without a target", pos)
	}
	if err := p.needWord("after DO UPDATE", "set"); err != nil {
		return err
	}
	c.update = true
	if c.sets, err = p.assignments(); err != nil {
		return err
	}
	if p.word("where") {
		c.where, err = p.expr("in WHERE")
	}
	return err
}

func (p *parser) nameList(where string) ([]string, error) {
	if err := p.needOp("(", where); err != nil {
		return nil, err
	}
	var names []string
	for {
		n, err := p.name(where)
		if err != nil {
			return nil, err
		}
		names = append(names, n)
		if !p.op(",") {
			return names, p.needOp(")", where)
		}
	}
}

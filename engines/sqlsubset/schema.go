package sqlsubset

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5/pgconn"
)

// schema is the set of tables. It is immutable: DDL makes a new one, so that
// clones of a DB share it, and the plans bound to it.
type schema struct {
	tables []*table
	byName map[string]int
	id     string   // digest of the definitions, part of DB.Key
	plans  sync.Map // canonical text of a statement → *plan or error
}

type table struct {
	name    string
	cols    []columnDef
	byName  map[string]int
	uniques []unique // primary key first, as PostgreSQL creates and checks them
	checks  []check  // in the order of their names, as PostgreSQL checks them
	keyCols []bool   // columns of any unique constraint
	defs    []value
}

type unique struct {
	name string
	cols []int
}

type check struct {
	name string
	e    *bound
}

func newSchema() *schema {
	return &schema{byName: map[string]int{}}
}

func (s *schema) lookup(name string) (*table, int, error) {
	if i, ok := s.byName[name]; ok {
		return s.tables[i], i, nil
	}
	return nil, 0, pgErr(codeNoTable, `relation "%s" does not exist`, name)
}

// with returns a schema that has the tables as well; those that exist already
// are left out when the statement said IF NOT EXISTS.
func (s *schema) with(st *Statement) (*schema, error) {
	out := newSchema()
	out.tables = slices.Clone(s.tables)
	for i, t := range out.tables {
		out.byName[t.name] = i
	}
	h := sha256.New()
	h.Write([]byte(s.id))
	for _, c := range st.creates {
		if _, ok := out.byName[c.name]; ok {
			if c.ifNotExists {
				continue
			}
			return nil, pgErr(codeTableExists, `relation "%s" already exists`, c.name)
		}
		t, err := newTable(c, st.sql)
		if err != nil {
			return nil, err
		}
		out.byName[c.name] = len(out.tables)
		out.tables = append(out.tables, t)
		fmt.Fprintf(h, "%s\n", t.describe())
	}
	if len(out.tables) == len(s.tables) {
		return s, nil
	}
	out.id = string(h.Sum(nil)[:12])
	return out, nil
}

func (t *table) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q", t.name)
	for i, c := range t.cols {
		fmt.Fprintf(&b, " %q %s %v %q", c.name, c.typ, c.notNull, t.defs[i].display())
	}
	for _, u := range t.uniques {
		fmt.Fprintf(&b, " %q %v", u.name, u.cols)
	}
	for _, c := range t.checks {
		fmt.Fprintf(&b, " %q %s", c.name, c.e.describe())
	}
	return b.String()
}

func newTable(c createTable, sql string) (*table, error) {
	t := &table{name: c.name, cols: slices.Clone(c.cols), byName: map[string]int{}}
	for i, col := range t.cols {
		if _, ok := t.byName[col.name]; ok {
			return nil, pgErr(codeColumnTwice, `column "%s" specified more than once`, col.name)
		}
		t.byName[col.name] = i
	}
	t.keyCols = make([]bool, len(t.cols))
	primaries := 0
	for _, u := range c.uniques {
		un := unique{name: c.name + "_" + strings.Join(u.cols, "_") + "_key"}
		if u.primary {
			un.name = c.name + "_pkey"
			if primaries++; primaries > 1 {
				return nil, pgErr(codeTablePrimaryTwice, `multiple primary keys for table "%s" are not allowed`, c.name)
			}
		}
		for _, n := range u.cols {
			i, ok := t.byName[n]
			if !ok {
				return nil, pgErr(codeNoColumn, `column "%s" named in key does not exist`, n)
			}
			if slices.Contains(un.cols, i) {
				return nil, pgErr(codeColumnTwice, `column "%s" appears twice in unique constraint`, n)
			}
			un.cols = append(un.cols, i)
			t.keyCols[i] = true
			t.cols[i].notNull = t.cols[i].notNull || u.primary
		}
		if u.primary {
			t.uniques = slices.Insert(t.uniques, 0, un)
		} else {
			t.uniques = append(t.uniques, un)
		}
	}
	if primaries == 0 {
		return nil, &UnsupportedError{What: "table without a primary key", SQL: sql}
	}
	for i, u := range t.uniques {
		for _, v := range t.uniques[:i] {
			if u.name == v.name || slices.Equal(u.cols, v.cols) {
				return nil, &UnsupportedError{What: "the same unique constraint twice", SQL: sql}
			}
		}
	}
	b := &binder{tab: t, sql: sql}
	for _, col := range t.cols {
		v := value{}
		if col.def != nil {
			e, err := b.assign(col.def, col)
			if err != nil {
				return nil, err
			}
			if v, err = e.eval(&env{}); err != nil {
				return nil, err
			}
		}
		t.defs = append(t.defs, v)
	}
	for _, d := range c.checks {
		b := &binder{tab: t, sql: sql, used: map[int]bool{}}
		e, err := b.condition(d.e, "CHECK")
		if err != nil {
			return nil, err
		}
		name := c.name + "_check"
		if len(b.used) == 1 {
			for i := range b.used {
				name = c.name + "_" + t.cols[i].name + "_check"
			}
		}
		base := name
		for n := 1; slices.ContainsFunc(t.checks, func(k check) bool { return k.name == name }); n++ {
			name = fmt.Sprintf("%s%d", base, n)
		}
		t.checks = append(t.checks, check{name, e})
	}
	slices.SortFunc(t.checks, func(a, b check) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

// validate checks a new version of a row against NOT NULL and CHECK.
func (t *table) validate(row []value) error {
	for i, c := range t.cols {
		if c.notNull && row[i].null() {
			err := pgErr(codeNotNullViolation, `null value in column "%s" of relation "%s" violates not-null constraint`, c.name, t.name)
			t.locate(err, "")
			err.ColumnName = c.name
			err.Detail = "Failing row contains " + displayRow(row) + "."
			return err
		}
	}
	for _, c := range t.checks {
		v, err := c.e.eval(&env{row: row})
		if err != nil {
			return err
		}
		if !v.null() && !v.isTrue() {
			err := pgErr(codeCheckViolation, `new row for relation "%s" violates check constraint "%s"`, t.name, c.name)
			t.locate(err, c.name)
			err.Detail = "Failing row contains " + displayRow(row) + "."
			return err
		}
	}
	return nil
}

func (t *table) locate(err *pgconn.PgError, constraint string) {
	err.SchemaName, err.TableName, err.ConstraintName = "public", t.name, constraint
}

func displayRow(row []value) string {
	var s []string
	for _, v := range row {
		s = append(s, v.display())
	}
	return "(" + strings.Join(s, ", ") + ")"
}

func (t *table) duplicate(u unique, row []value) error {
	var names, vals []string
	for _, c := range u.cols {
		names = append(names, t.cols[c].name)
		vals = append(vals, row[c].display())
	}
	err := pgErr(codeUniqueViolation, `duplicate key value violates unique constraint "%s"`, u.name)
	t.locate(err, u.name)
	err.Detail = fmt.Sprintf("Key (%s)=(%s) already exists.", strings.Join(names, ", "), strings.Join(vals, ", "))
	return err
}

// sameKey reports whether two rows clash under a unique constraint; NULLs never do.
func (u unique) sameKey(a, b []value) bool {
	for _, c := range u.cols {
		if a[c].null() || a[c] != b[c] {
			return false
		}
	}
	return true
}

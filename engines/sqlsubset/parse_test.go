package sqlsubset

import (
	"errors"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func page(t testing.TB) string {
	text, err := os.ReadFile("../../docs/sql-subset.md")
	require.NoError(t, err)
	return string(text)
}

// accepted are the examples of the page.
func accepted(t testing.TB) []string {
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindStringSubmatch(page(t))
	require.NotNil(t, block)
	var out []string
	for l := range strings.Lines(block[1]) {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return out
}

func refused(t testing.TB) map[string]string {
	out := map[string]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| `(.*)` \\| (.*) \\|$").FindAllStringSubmatch(page(t), -1) {
		out[strings.ReplaceAll(m[1], `\|`, "|")] = strings.ReplaceAll(m[2], `\|`, "|")
	}
	return out
}

func walk(e *expr, seen map[op]bool) {
	if e == nil {
		return
	}
	seen[e.op] = true
	for _, k := range e.kids {
		walk(k, seen)
	}
}

func TestPageListsEverythingTheParserAccepts(t *testing.T) {
	kinds, ops := map[Kind]bool{}, map[op]bool{}
	for _, sql := range accepted(t) {
		st, err := Parse(sql)
		require.NoError(t, err)
		kinds[st.kind] = true
		walk(st.where, ops)
		for _, it := range st.items {
			walk(it.e, ops)
		}
		for _, v := range st.values {
			walk(v, ops)
		}
		for _, a := range st.sets {
			walk(a.e, ops)
		}
		for _, c := range st.creates {
			for _, k := range c.checks {
				walk(k.e, ops)
			}
		}
	}
	for k := Select; k <= CreateTable; k++ {
		require.True(t, kinds[k], "the page has no example of %s", k)
	}
	for o := opConst; o < opToText; o++ {
		require.True(t, ops[o], "the page has no example of operator %d", o)
	}
}

func TestPageNamesWhatTheParserRefuses(t *testing.T) {
	list := refused(t)
	require.Greater(t, len(list), 35)
	for sql, what := range list {
		_, err := Parse(sql)
		var u *UnsupportedError
		require.ErrorAs(t, err, &u, sql)
		require.Equal(t, what, u.What, sql)
		require.Equal(t, sql, u.SQL)
	}
}

func TestRefusalSaysWhereItMetIt(t *testing.T) {
	_, err := Parse("SELECT sku FROM goods LIMIT 1")
	var u *UnsupportedError
	require.ErrorAs(t, err, &u)
	require.Equal(t, strings.Index(u.SQL, "LIMIT"), u.Pos)
}

func TestCanonicalFormForgetsSpacingCaseAndComments(t *testing.T) {
	a, err := Parse("SELECT Stock /* nested /* too */ */ FROM goods -- all of it\n WHERE SKU='A''b' ;")
	require.NoError(t, err)
	require.Equal(t, "select stock from goods where sku = 'A''b' ;", a.String())
}

func FuzzParse(f *testing.F) {
	for _, s := range accepted(f) {
		f.Add(s)
	}
	for s := range refused(f) {
		f.Add(s)
	}
	f.Add("SELECT ((((1")
	f.Add("select - - - -1 from g where not not not a is null is not null")
	db := goodsOnly(f)
	f.Fuzz(func(t *testing.T, sql string) { parseAndRun(t, db, sql) })
}

// Statements put together from pieces of the examples come much further into
// the parser and the engine than random bytes do.
func TestShuffledPiecesOfStatementsAreRefusedOrRun(t *testing.T) {
	db := goodsOnly(t)
	var pieces []string
	examples := accepted(t)
	for _, e := range examples {
		pieces = append(pieces, strings.Fields(strings.NewReplacer("(", " ( ", ")", " ) ", ",", " , ").Replace(e))...)
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	ran := 0
	for range 30_000 {
		words := strings.Fields(examples[rnd.IntN(len(examples))])
		for n := rnd.IntN(4); n >= 0; n-- {
			at := rnd.IntN(len(words))
			switch rnd.IntN(3) {
			case 0:
				words[at] = pieces[rnd.IntN(len(pieces))]
			case 1:
				words = slices.Insert(words, at, pieces[rnd.IntN(len(pieces))])
			default:
				words = slices.Delete(words, at, min(len(words)-1, at+1))
			}
		}
		if parseAndRun(t, db, strings.Join(words, " ")) {
			ran++
		}
	}
	require.Greater(t, ran, 1000, "too few of them parse to mean anything")
}

func goodsOnly(t testing.TB) *DB {
	db := NewDB()
	for _, q := range []string{
		"CREATE TABLE goods (sku text PRIMARY KEY, stock bigint NOT NULL, version bigint DEFAULT 3)",
		"INSERT INTO goods VALUES ('a', 1, NULL)", "INSERT INTO goods VALUES ('b', 9223372036854775807, 2)",
	} {
		st, err := Parse(q)
		require.NoError(t, err)
		reply, _ := db.Exec(0, st, nil)
		require.NoError(t, reply.Err)
	}
	return db
}

// parseAndRun checks what must hold of any statement whatever, and reports
// whether it was one of the subset.
func parseAndRun(t *testing.T, start *DB, sql string) bool {
	st, err := Parse(sql)
	if err != nil {
		var u *UnsupportedError
		if !errors.As(err, &u) || u.What == "" || u.SQL != sql || u.Pos < 0 || u.Pos > len(sql) {
			t.Fatalf("%q is refused without saying what and where: %v", sql, err)
		}
		return false
	}
	again, err := Parse(st.String())
	if err != nil || again.String() != st.String() || again.kind != st.kind || again.params != st.params {
		t.Fatalf("%q reads differently in canonical form %q: %v", sql, st, err)
	}
	// Whatever parses can be executed: an answer or an error, no panic.
	db := start.Clone()
	args := make([]any, st.params)
	for i := range args {
		args[i] = "7"
	}
	if _, status := db.Exec(0, st, args); status != Done {
		t.Fatalf("%q is blocked with nobody else there", sql)
	}
	return true
}

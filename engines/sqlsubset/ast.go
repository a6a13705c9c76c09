package sqlsubset

// Kind is what a statement does.
type Kind uint8

// The kinds of statement in the subset.
const (
	Select Kind = iota + 1
	Insert
	Update
	Delete
	Begin
	Commit
	Rollback
	CreateTable // one CREATE TABLE, or several in one string
)

func (k Kind) String() string {
	return [...]string{"?", "SELECT", "INSERT", "UPDATE", "DELETE", "BEGIN", "COMMIT", "ROLLBACK", "CREATE TABLE"}[k]
}

// Statement is a parsed statement. It is immutable and may be shared.
type Statement struct {
	kind   Kind
	sql    string
	text   string // canonical form
	params int    // the highest $n

	table     string
	items     []item // SELECT list, or RETURNING
	returning bool
	where     *expr
	order     []orderTerm
	forUpdate bool
	cols      []string // INSERT column list, nil when left out
	values    []*expr
	sets      []assignment
	conflict  *conflict
	creates   []createTable
}

// Kind is what the statement does.
func (s *Statement) Kind() Kind { return s.kind }

// SQL is the statement as it was given to Parse.
func (s *Statement) SQL() string { return s.sql }

// String is the statement in canonical form: lower case, single spaces, no comments.
func (s *Statement) String() string { return s.text }

// Params is the number of arguments the statement takes.
func (s *Statement) Params() int { return s.params }

// Ordered reports whether the order of the rows answered is laid down; without
// ORDER BY PostgreSQL may answer rows in any order.
func (s *Statement) Ordered() bool { return len(s.order) > 0 }

// item is one entry of a SELECT list or of RETURNING.
type item struct {
	star bool
	e    *expr
	as   string
}

type orderTerm struct {
	e    *expr
	desc bool
}

type assignment struct {
	col string
	pos int
	e   *expr
}

// conflict is the ON CONFLICT clause of an INSERT.
type conflict struct {
	target []string // nil: any unique constraint
	update bool     // DO UPDATE; else DO NOTHING
	sets   []assignment
	where  *expr
}

type createTable struct {
	name        string
	ifNotExists bool
	cols        []columnDef
	uniques     []uniqueDef
	checks      []checkDef
}

type columnDef struct {
	name    string
	typ     typ
	notNull bool
	def     *expr // nil: no DEFAULT
}

type uniqueDef struct {
	cols    []string
	primary bool
}

type checkDef struct {
	col  string // the column it was written with, "" for a table constraint
	e    *expr
	text string // canonical form
}

type op uint8

const (
	opConst op = iota + 1
	opParam
	opColumn
	opAdd
	opSub
	opMul
	opNeg
	opEq
	opNe
	opLt
	opLe
	opGt
	opGe
	opAnd
	opOr
	opNot
	opIsNull
	opIsNotNull
	opCount // count(*)
	opSum
	opCoalesce
	opToText // implied by an assignment of a number to a text column
)

// expr is an expression as parsed, before names and types are resolved.
type expr struct {
	op   op
	kids []*expr
	pos  int

	qual, name string // opColumn
	val        value  // opConst
	lit        typ    // opConst: int4, int8, bool, or unknown for strings and NULL
	param      int    // opParam, from 1
}

package sqlsubset

import (
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"
)

// UnsupportedError says that a statement, or what it would need at run time, is
// outside the subset. It is never a PostgreSQL error: a real server may well
// accept the statement. The state of the DB is unchanged.
type UnsupportedError struct {
	What string // what was met, by its name in SQL: "JOIN", "GROUP BY", "operator ||"
	SQL  string // the whole statement as it was given
	Pos  int    // byte offset in SQL where it was met
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("sqlsubset: %s is outside the SQL subset (at byte %d of %q)", e.What, e.Pos, e.SQL)
}

// ArgumentError says that an argument cannot be sent as the type its parameter
// has. pgx finds this out on the client's side, so the statement is not
// executed, and an open transaction goes on.
type ArgumentError struct {
	Param int    // 1 for $1
	Type  string // what PostgreSQL made of the parameter
	Arg   any
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("sqlsubset: cannot encode %T(%v) for $%d of type %s", e.Arg, e.Arg, e.Param, e.Type)
}

// pgErr makes the error a PostgreSQL server would have sent.
func pgErr(code, format string, args ...any) *pgconn.PgError {
	return &pgconn.PgError{
		Severity: "ERROR", SeverityUnlocalized: "ERROR",
		Code: code, Message: fmt.Sprintf(format, args...),
	}
}

// SQLSTATEs the engine answers with.
const (
	codeUniqueViolation   = "23505"
	codeNotNullViolation  = "23502"
	codeCheckViolation    = "23514"
	codeDeadlock          = "40P01"
	codeInAbortedTx       = "25P02"
	codeNoTable           = "42P01"
	codeNoColumn          = "42703"
	codeTableExists       = "42P07"
	codeColumnTwice       = "42701"
	codeNoOperator        = "42883"
	codeAmbiguous         = "42725"
	codeTypeMismatch      = "42804"
	codeGrouping          = "42803"
	codeNoParamType       = "42P18"
	codeNoSuchParameter   = "08P01"
	codeBadText           = "22P02"
	codeOutOfRange        = "22003"
	codeNoConflictTarget  = "42P10"
	codeSyntax            = "42601"
	codeTablePrimaryTwice = "42P16"
)

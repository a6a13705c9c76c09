package sqlsubset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// Status says whether a statement came to its end.
type Status uint8

const (
	// Done: the Reply is the statement's answer.
	Done Status = iota
	// Blocked: the statement waits for another session's transaction; the
	// Reply is empty. It goes on with DB.Resume.
	Blocked
)

func (s Status) String() string {
	if s == Blocked {
		return "blocked"
	}
	return "done"
}

// Reply is what the client sees of a statement.
type Reply struct {
	Columns  []string // nil when the statement answers no rows
	Rows     [][]any  // int64, string, bool or nil; numeric as a string, as pgx hands it to database/sql
	Affected int64
	Tag      string // PostgreSQL's command tag: "UPDATE 1", "INSERT 0 1", "ROLLBACK"
	// Err is a *pgconn.PgError as the server would send, an *ArgumentError as
	// the client would raise, or an *UnsupportedError of our own.
	Err error
}

// String writes the reply in one line: "UPDATE 1", "SELECT 2 (1,0) (2,0)" or
// "ERROR 23505 orders_pkey". Equal strings mean equal replies as far as a
// scheme should look; message texts are left out.
func (r Reply) String() string {
	if r.Err != nil {
		var pg *pgconn.PgError
		if errors.As(r.Err, &pg) {
			return strings.TrimSpace("ERROR " + pg.Code + " " + pg.ConstraintName)
		}
		return "error: " + r.Err.Error()
	}
	var b strings.Builder
	b.WriteString(r.Tag)
	for _, row := range r.Rows {
		b.WriteString(" " + RowString(row))
	}
	return b.String()
}

// RowString writes one row of a Reply.
func RowString(row []any) string {
	var b strings.Builder
	b.WriteByte('(')
	for i, v := range row {
		if i > 0 {
			b.WriteByte(',')
		}
		switch v := v.(type) {
		case nil:
			b.WriteString("null")
		case string:
			b.WriteString(strconv.Quote(v))
		default:
			fmt.Fprint(&b, v)
		}
	}
	b.WriteByte(')')
	return b.String()
}

// reply builds the answer of a finished statement.
func (w *waiting) reply() Reply {
	r := Reply{Affected: w.n}
	switch w.st.kind {
	case Insert:
		r.Tag = "INSERT 0 " + strconv.FormatInt(w.n, 10)
	default:
		r.Tag = w.st.kind.String() + " " + strconv.FormatInt(w.n, 10)
	}
	if w.plan.items == nil {
		return r
	}
	r.Columns = w.plan.columns
	r.Rows = make([][]any, len(w.out))
	for i, row := range w.out {
		out := make([]any, len(row))
		for k, v := range row {
			out[k] = v.goValue(w.plan.types[k])
		}
		r.Rows[i] = out
	}
	return r
}

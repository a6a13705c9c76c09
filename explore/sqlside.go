package explore

import (
	"database/sql"
	"strings"

	"stockproof/schemes"
)

// sqlCall is a statement that waits for its answer.
type sqlCall struct {
	step   step
	answer chan sqlAnswer
}

type sqlAnswer struct{ err error }

type sqlSide struct{ db *sql.DB }

func openSQL(*wire) *sqlSide               { panic("no SQL yet") }
func (s *sqlSide) close()                  {}
func (w *wire) answerSQL(*sqlCall, string) {}
func (w *wire) cutSQL(*sqlCall)            {}

type sqlState struct{}

func (s sqlState) key() string { return "" }
func (s sqlState) exec(step, int, *strings.Replacer) (sqlState, string, bool, error) {
	panic("no SQL yet")
}
func (s sqlState) rename([maxSlots]int8, map[string]string) sqlState { return s }

// newMoment is servers that hold nothing but the tables.
func newMoment(entry schemes.Entry) moment { return moment{} }

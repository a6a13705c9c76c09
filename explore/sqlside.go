package explore

import "database/sql"

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

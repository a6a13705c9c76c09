package schedule

import (
	"cmp"
	"fmt"
	"slices"

	"stockproof/model"
)

// DivergenceError says where a replay left the schedule it was to repeat.
type DivergenceError struct {
	Line     int    // of the file, or of String for one that was made by Number; 0 when unknown
	Text     string // the line
	Expected string // what the schedule says
	Seen     string // what happened
}

func (e *DivergenceError) Error() string {
	return fmt.Sprintf("line %d: %s: expected %s, saw %s", e.Line, e.Text, e.Expected, e.Seen)
}

// Diverges is the error of a replay at the i-th step, from 0.
func (s *Schedule) Diverges(i int, expected, seen string) error {
	return &DivergenceError{Line: s.Steps[i].Note.Line, Text: s.Text(i), Expected: expected, Seen: seen}
}

// DivergesAtEnd holds what a replay came to against what the schedule says it
// comes to; nil when they agree. Answers and laws may stand in any order.
func (s *Schedule) DivergesAtEnd(seen End) error {
	for _, part := range []struct{ part, word, expected, seen string }{
		{PartOutcome, "outcome", s.AnswersText(s.Outcomes), s.AnswersText(seen.Outcomes)},
		{PartFinal, "stock", s.Final.String(), seen.Final.String()},
		{PartOrders, "orders", s.ordersText(s.Orders), s.ordersText(seen.Orders)},
		{PartViolates, "violates", violations(sortedViolations(s.Violates)), violations(sortedViolations(seen.Violates))},
	} {
		if part.expected != part.seen {
			line := s.Notes[part.part].Line
			if line == 0 { // orders that the schedule does not mention
				line = s.Notes[PartViolates].Line
			}
			return &DivergenceError{Line: line, Text: part.word, Expected: part.expected, Seen: part.seen}
		}
	}
	return nil
}

func (s *Schedule) ordersText(list *[]model.Order) string {
	if list == nil {
		return "no orders to read"
	}
	sorted := slices.SortedFunc(slices.Values(*list), func(a, b model.Order) int {
		return cmp.Or(cmp.Compare(a.Request, b.Request), cmp.Compare(a.Qty, b.Qty))
	})
	return orders(sorted)
}

func sortedAnswers(list []Answer) []Answer {
	return slices.SortedFunc(slices.Values(list), func(a, b Answer) int {
		return cmp.Or(cmp.Compare(a.Client, b.Client), cmp.Compare(a.N, b.N))
	})
}

func sortedViolations(list []Violation) []Violation {
	return slices.SortedFunc(slices.Values(list), func(a, b Violation) int { return cmp.Compare(a.Property, b.Property) })
}

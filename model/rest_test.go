package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of what follows from the read at rest, see docs/verdicts.md.
func TestTheReadAtRestConvictsTheCounterUnlessAnUnknownExplainsIt(t *testing.T) {
	sold := Operation{Op: Deduct, Qty: 1, Call: 1, Return: 2, Outcome: Sold}
	dead := Operation{Client: 1, Op: Deduct, Qty: 1, Call: 3, Open: true, Outcome: Unknown}
	for _, c := range []struct {
		name    string
		ops     []Operation
		counter int64
		want    Ruling
	}{
		{"what was not sold is left", []Operation{sold}, 2, Legal},
		{"a unit is lost", []Operation{sold}, 1, Illegal},
		{"a unit is lost, and somebody may have got it", []Operation{sold, dead}, 1, Legal},
		{"two are lost, and only one may have been got", []Operation{sold, dead}, 0, Illegal},
		{"a unit is left that does not exist", []Operation{sold}, 3, Illegal},
		{"nothing excuses one, also nothing unknown", []Operation{sold, dead}, 3, Illegal},
		{"below zero", []Operation{sold, dead}, -1, Illegal},
	} {
		t.Run(c.name, func(t *testing.T) {
			whole := AtRest(c.ops, &c.counter)
			require.Len(t, c.ops, len(whole)-1, "the history that was given is as it was")
			j := Judge(3, whole, Limits{Order: true})
			require.Equal(t, c.want, j.Ruling)
			require.Equal(t, c.want == Legal, bruteForce(3, whole))
			require.Equal(t, "sums", j.Method, "one read at rest does not make it a harder history")
			if c.want == Legal {
				require.NoError(t, Confirm(3, whole, j.Order))
			} else {
				require.Contains(t, Explain(3, whole, *j.Refutation), "only with the read at rest, which shows ")
			}
		})
	}
	require.Equal(t, []Operation{sold}, AtRest([]Operation{sold}, nil), "a counter that cannot be read constrains nothing")
	late := AtRest([]Operation{sold}, new(int64))
	require.False(t, ShapeOf(append(late, Operation{Op: Deduct, Qty: 1, Call: 9, Open: true, Outcome: Unknown})).DeductsOnly(),
		"a read that something comes after is not at rest")
}

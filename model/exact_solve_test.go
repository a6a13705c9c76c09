package model

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// Sets of moves that fit one word are kept as one; with more quantities in
// flight they do not fit. Both ways have to look at the same states, and the
// history is long enough to outgrow a chunk and to lose old checkpoints.
func TestSetsOfMovesAreTheSameInAWordAndInAVector(t *testing.T) {
	t.Cleanup(func() { packBits = 64 })
	for _, s := range []sale{
		{ops: 6000, clients: 32, initial: 20, idle: 200, maxQty: 5, restocks: 0.3, reads: 0.1},
		{ops: 2000, clients: 16, initial: 20, idle: 200, maxQty: 3, restocks: 0.3, reads: 0.1, unknown: 0.01},
		{ops: 500, clients: 16, initial: 20, idle: 200, maxQty: 40, restocks: 0.3, reads: 0.1},
	} {
		t.Run(fmt.Sprintf("%+v", s), func(t *testing.T) {
			ops := s.history(1)
			packBits = 64
			word := Judge(s.initial, ops, Limits{Order: true})
			packBits = 0
			require.Equal(t, Judge(s.initial, ops, Limits{Order: true}), word)
			require.Equal(t, Legal, word.Ruling)
			require.NoError(t, Confirm(s.initial, ops, word.Order))
		})
	}
}

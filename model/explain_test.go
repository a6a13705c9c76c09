package model

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheNeededAnswersAreImpossibleAloneAndNoneOfThemCanBeLeftOut(t *testing.T) {
	r := seeded(9)
	judged := 0
	for i := range 3000 {
		initial, ops := classes[i%len(classes)].history(r)
		j := Judge(initial, ops, Limits{})
		if j.Ruling != Illegal {
			continue
		}
		judged++
		until := ops[j.Refutation.Op].Return
		needed, minimal := Minimal(initial, ops, *j.Refutation, 1000)
		require.True(t, minimal)
		require.False(t, bruteForce(initial, onlyKnown(ops, needed, until)), "%d units, %v needed\n%s", initial, needed, lines(ops))
		for k := range needed {
			without := slices.Delete(slices.Clone(needed), k, k+1)
			require.True(t, bruteForce(initial, onlyKnown(ops, without, until)), "%d units, %v needed\n%s", initial, needed, lines(ops))
		}
		require.NotEmpty(t, Explain(initial, ops, *j.Refutation))
	}
	require.Greater(t, judged, 1000)
}

func TestAMinimalPartThatWasNotFoundInTimeIsNotCalledMinimal(t *testing.T) {
	ops := illegal(200, 8)
	j := Judge(100, ops, Limits{})
	require.Equal(t, Illegal, j.Ruling)
	_, minimal := Minimal(100, ops, *j.Refutation, 3)
	require.False(t, minimal)
}

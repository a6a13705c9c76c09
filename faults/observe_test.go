package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestThePlanOfRunsThatAreTheSameIsThatOfOne(t *testing.T) {
	run := [][]string{{"GET", "DECR"}, {"GET"}}
	for _, k := range []Kind{None, ClientCrash} {
		require.Equal(t, Plan(k, run), Observed{run, run, run}.Plan(k))
	}
	require.Empty(t, Observed{run, run}.Differences())
}

func TestThePlanHasEveryPlaceThatAnyRunHas(t *testing.T) {
	runs := Observed{{{"GET", "DECR"}, {"GET"}}, {{"GET", "DECR"}, {"SET", "GET"}}, {{"GET", "DECR"}, {"GET"}}}
	var at []string
	variants := map[string]int{}
	for _, p := range runs.Plan(ReplyLost) {
		at = append(at, ClientName(p.Client)+" "+p.At)
		variants[at[len(at)-1]] = p.Variant
	}
	require.Equal(t, []string{"a GET", "a DECR", "b GET", "b SET", "b GET"}, at)
	require.Equal(t, 1, variants["b SET"], "two placements at one step have names of their own")
	require.Equal(t, []string{"client b made different steps in 3 fault-free runs: GET; then: SET, GET"}, runs.Differences())
}

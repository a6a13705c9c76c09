package faults

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAClientStandsStillAfterEveryStepButTheLastAndNotInsideATransaction(t *testing.T) {
	var places []string
	for _, p := range Plan(None, [][]string{{"WATCH", "GET", "MULTI", "DECRBY", "EXEC", "GET"}, {"WATCH", "GET", "UNWATCH"}}) {
		places = append(places, p.String())
	}
	require.Equal(t, []string{"in-turn", "barrier", "client a step 1 preempted", "client a step 2 preempted", "client a step 5 preempted",
		"client b step 1 preempted", "client b step 2 preempted"}, places)
	require.Len(t, Plan(ReplyLost, [][]string{{"MULTI", "DECRBY", "EXEC"}}), 3, "a fault may hit each of them")
}

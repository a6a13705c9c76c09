package schedule_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
	"stockproof/model"
)

const working = `schedule v1
scheme   stream-order
config   retries=off
stock    goods:1001 1
client   a deduct 1
client   b work, work
---
b  XREADGROUP GROUP orders consumer STREAMS orders:1001 0 => [["orders:1001" []]]
b  XREADGROUP GROUP orders consumer STREAMS orders:1001 > => nil  ; b.1=ok
---
outcome  b.1=ok
stock    1
orders   none
violates nothing
`

func TestAClientMayDoTheBackgroundRole(t *testing.T) {
	s, err := schedule.Parse(strings.NewReader(working), "s")
	require.NoError(t, err)
	require.Equal(t, []schedule.Call{{Op: model.Work}, {Op: model.Work}}, s.Clients[1].Calls)
	require.Equal(t, working, s.String())
	for bad, line := range map[[2]string]int{
		{"work, work", "work 1"}:                                 6,
		{"work, work", "work, work\nclient   c deduct 1 as b.1"}: 7, // nobody requested it
		{"; b.1=ok", "; b.1=sold"}:                               9,
		{"; b.1=ok", "; b.1=1"}:                                  9,
	} {
		_, err := schedule.Parse(strings.NewReader(strings.Replace(working, bad[0], bad[1], 1)), "s")
		var at *schedule.LineError
		require.True(t, errors.As(err, &at), "%v: %v", bad, err)
		require.Equal(t, line, at.Line, "%v", err)
	}
}

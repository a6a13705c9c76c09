package explore

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/model"
	"stockproof/schemes"
)

func TestAutomatonFollowsTheSchemesOwnCode(t *testing.T) {
	entry, err := schemes.ByName("lock")
	require.NoError(t, err)
	var runs atomic.Int64
	park := newParking(maxParked)
	defer park.close()
	a, err := newAutomaton(entry, role{deduct, 1, "client~@", "client~@.1", 0}, schemes.Config{Lease: 300 * time.Millisecond, Wait: 100 * time.Millisecond, Retry: 100 * time.Millisecond}, -1, &runs, park)
	require.NoError(t, err)
	n := a.root
	require.Len(t, n.pending, 1)
	t.Log(n.pending[0])
	n, err = a.step(n, event{kind: replied, text: ":300\r\n"})
	require.NoError(t, err)
	t.Log(n.pending, n.channels)
	n, err = a.step(n, event{kind: replied, text: ":300\r\n"})
	require.NoError(t, err)
	require.Empty(t, n.pending)
	require.EqualValues(t, 100, n.deadline)
	t.Log(n.pending, n.channels)
	m, err := a.step(n, event{kind: told, text: joinArgs([]string{n.channels[0], "0"})})
	require.NoError(t, err)
	t.Log(m.pending, m.channels)
	h, err := a.step(n, event{kind: elapsed, advance: 50})
	require.NoError(t, err)
	h, err = a.step(h, event{kind: elapsed, advance: 50})
	require.NoError(t, err)
	require.True(t, h.done)
	require.Equal(t, model.Busy, h.result.outcome)
	m, err = a.step(m, event{kind: replied, text: "$-1\r\n"})
	require.NoError(t, err)
	m, err = a.step(m, event{kind: replied, text: "$1\r\n1\r\n"})
	require.NoError(t, err)
	m, err = a.step(m, event{kind: cut})
	require.NoError(t, err)
	t.Log(m.pending, m.channels)
	m, err = a.step(m, event{kind: replied, text: ":1\r\n"})
	require.NoError(t, err)
	require.True(t, m.done)
	require.Equal(t, model.Unknown, m.result.outcome)
}

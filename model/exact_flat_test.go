package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// rushes is a long history of many rushes. Between two of them nothing is
// pending, unless somebody waits from one into the next.
func rushes(s sale, n int, waits bool) (ops []Operation, shape Shape) {
	at, stock, before := int64(0), s.initial, Operation{Call: -1}
	for k := range n {
		s.initial = stock
		end := at
		for _, o := range s.history(uint64(k + 1)) {
			o.Call += at
			if !o.Open {
				o.Return += at
				end = max(end, o.Return)
			}
			if it, counts := itemOf(o, 0); counts && !it.open {
				stock += it.delta
			}
			if before.Call >= 0 && o.Call > before.Call {
				ops, before.Call = append(ops, before), -1
			}
			ops = append(ops, o)
		}
		at = end + 1000
		if waits { // a restock of nothing to anybody but the checker
			before = Operation{Client: 1 << 20, Op: Restock, Qty: 1, Call: end, Return: at + 100, Outcome: OK}
			stock++
		}
	}
	for _, o := range ops {
		shape.Add(o)
	}
	return ops, shape
}

// held is the most that a checker keeps of a history while it reads it: operations
// and checkpoints.
func held(t *testing.T, initial int64, ops []Operation, shape Shape) (operations, points int) {
	t.Helper()
	c := NewChecker(initial, shape, Limits{Brief: true})
	b := c.algorithm.(*beam)
	for _, o := range ops {
		c.Add(o)
		operations, points = max(operations, b.past.end-b.past.first), max(points, len(b.points))
	}
	require.Equal(t, Legal, c.Judge().Ruling)
	return operations, points
}

// What is kept depends on how long the longest stretch without a quiescent point
// is, and not on the length of the history.
func TestMemoryIsFlatInTheNumberOfQuiescentPoints(t *testing.T) {
	for name, s := range map[string]sale{
		"restocks and reads of one unit":         {clients: 32, maxQty: 1, restocks: 0.3, reads: 0.1, ops: 150, initial: 20, idle: 200},
		"restocks and reads of up to four units": {clients: 32, maxQty: 4, restocks: 0.3, reads: 0.1, ops: 150, initial: 20, idle: 200},
		"restocks and unknowns of one unit":      {clients: 32, maxQty: 1, restocks: 0.5, reads: 0.1, unknown: 0.02, ops: 150, initial: 20, idle: 200},
	} {
		t.Run(name, func(t *testing.T) {
			few, shape := rushes(s, 20, false)
			most, points := held(t, s.initial, few, shape)
			many, shape := rushes(s, 200, false)
			require.Len(t, many, 10*len(few))
			operations, checkpoints := held(t, s.initial, many, shape)
			require.LessOrEqual(t, operations, max(most, 4*s.ops), "operations kept")
			require.LessOrEqual(t, checkpoints, max(points, 4*s.ops/checkpointEvery), "checkpoints kept")
		})
	}
}

// The measure of the test above is one that grows where it has to.
func TestWithoutQuiescentPointsWhatIsKeptGrows(t *testing.T) {
	s := sale{clients: 32, maxQty: 4, restocks: 0.3, reads: 0.1, ops: 150, initial: 20, idle: 200}
	few, shape := rushes(s, 4, true)
	most, _ := held(t, s.initial, few, shape)
	many, shape := rushes(s, 40, true)
	operations, _ := held(t, s.initial, many, shape)
	require.Greater(t, operations, 5*most)
}

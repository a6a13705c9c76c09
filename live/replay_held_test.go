package live

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/live/wire"
)

// What a client says after its library gave up a step that was held says
// nothing about the schedule.
func TestAStepThatIsHeldLongerThanTheLibraryWaitsIsNoticed(t *testing.T) {
	g := newReplayGate(2)
	step := func(client, n int, ago time.Duration) *flying {
		f := &flying{step: wire.Step{Client: client, N: n}, came: time.Now().Add(-ago), request: make(chan wire.RequestAction, 1)}
		g.steps[stepKey{client, n}] = f
		return f
	}
	step(0, 1, time.Second)
	old := step(1, 1, libraryPatience)
	require.False(t, g.heldTooLong(0))
	require.True(t, g.heldTooLong(1))
	g.decide(old, wire.Lose)
	require.False(t, g.heldTooLong(1), "a step that went through is not held")
}

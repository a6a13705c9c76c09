package cost

import (
	"errors"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/live/role"
	live "stockproof/live/servers"
)

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(m.Run())
}

// onServers runs a test on the backend of this run; leaving it out takes an
// explicit wish, having none is a failure.
func onServers(t *testing.T, test func(*testing.T, *servers)) {
	choice, err := live.Choose(t.Context(), os.Getenv)
	if errors.Is(err, live.ErrLiveOff) {
		t.Skip(err)
	}
	require.NoError(t, err)
	t.Run(string(choice.Backend), func(t *testing.T) {
		s, err := start(t.Context(), choice.Backend)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, s.close()) })
		test(t, s)
	})
}

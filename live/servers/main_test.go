package servers_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/live/role"
	"stockproof/live/servers"
)

func TestMain(m *testing.M) {
	role.RunIfAsked()
	if os.Getenv(servers.EnvLive) == "off" {
		fmt.Println("stockproof: live tests of the servers are left out:", servers.EnvLive+"=off")
	}
	os.Exit(m.Run())
}

// onEachBackend runs a live test on every backend there is, or on the forced one.
// Only STOCKPROOF_LIVE=off leaves it out; a machine without a backend fails.
func onEachBackend(t *testing.T, test func(t *testing.T, b servers.Backend)) {
	t.Helper()
	onBackends(t, test, servers.Container, servers.Process)
}

// onBackends is onEachBackend for a question that only some backends raise; no
// subtest is reported for the others.
func onBackends(t *testing.T, test func(t *testing.T, b servers.Backend), concerned ...servers.Backend) {
	t.Helper()
	usable, missing, err := servers.Backends(t.Context(), os.Getenv)
	if errors.Is(err, servers.ErrLiveOff) {
		t.Skip(err)
	}
	require.NoError(t, err)
	for _, m := range missing {
		t.Logf("not on %s: %v", m.Backend, m.Why)
	}
	for _, b := range usable {
		if !slices.Contains(concerned, b) {
			t.Logf("says nothing about %s", b)
			continue
		}
		t.Run(string(b), func(t *testing.T) { test(t, b) })
	}
}

package servers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/live/role"
	"stockproof/live/servers"
)

func init() { role.Register("choose", choose) }

// choose asks for a backend in a process of its own, because the docker library
// looks at the environment once. Exit status as the command's.
func choose() int {
	c, err := servers.Choose(context.Background(), os.Getenv)
	var bad *servers.BadValueError
	var none *servers.NoBackendError
	switch {
	case err == nil:
		fmt.Println(c.Backend, c.Why)
		return 0
	case errors.Is(err, servers.ErrLiveOff):
		fmt.Println(err)
		return 0
	case errors.As(err, &bad):
		fmt.Println(err)
		return 2
	case errors.As(err, &none):
		fmt.Println(err)
		return 3
	}
	fmt.Println("another error:", err)
	return 1
}

func TestTheChoiceOfABackend(t *testing.T) {
	const nothing = "PATH=/nonexistent DOCKER_HOST=tcp://127.0.0.1:1"
	const noImage = servers.EnvRedisImage + "=127.0.0.1:1/none:none"
	for _, c := range []struct {
		name, env string
		status    int
		says      []string
	}{
		{"switched off", "STOCKPROOF_LIVE=off", 0, []string{"left out", "STOCKPROOF_LIVE=off"}},
		{"switched off wins over a bad backend", "STOCKPROOF_LIVE=off STOCKPROOF_BACKEND=cloud", 0, []string{"left out"}},
		{"a bad switch", "STOCKPROOF_LIVE=maybe", 2, []string{`STOCKPROOF_LIVE="maybe"`, "on or off"}},
		{"a bad backend", "STOCKPROOF_BACKEND=cloud", 2, []string{`STOCKPROOF_BACKEND="cloud"`, "container or process"}},
		{"nothing at all", nothing, 3, []string{"container: no docker daemon answers", "process: redis-server",
			"apt-get install redis-server postgresql", "scripts/build-image.sh", servers.EnvRedisImage, servers.EnvPostgresImage, "STOCKPROOF_LIVE=off"}},
		{"process forced, not installed", nothing + " STOCKPROOF_BACKEND=process", 3, []string{"process: redis-server"}},
		{"container forced, no daemon", "DOCKER_HOST=tcp://127.0.0.1:1 STOCKPROOF_BACKEND=container", 3, []string{"no docker daemon answers"}},
		{"no image", noImage + " PATH=/nonexistent", 3, []string{"127.0.0.1:1/none:none: image is neither present nor can be pulled"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out := chooseIn(t, c.env)
			require.Equal(t, c.status, status, out)
			for _, want := range c.says {
				require.Contains(t, out, want)
			}
		})
	}
}

func TestTheProcessBackendIsTakenWhenThereIsNoDockerAndSaysWhy(t *testing.T) {
	onBackends(t, func(t *testing.T, b servers.Backend) {
		status, out := chooseIn(t, "DOCKER_HOST=tcp://127.0.0.1:1")
		require.Zero(t, status, out)
		require.True(t, strings.HasPrefix(out, "process "), out)
		require.Contains(t, out, "not container: no docker daemon answers")
	}, servers.Process)
}

// chooseIn runs choose with some variables set and all others of ours unset.
func chooseIn(t *testing.T, env string) (status int, out string) {
	t.Helper()
	cmd, err := role.Command("choose")
	require.NoError(t, err)
	var kept []string
	for _, e := range cmd.Env {
		if !strings.HasPrefix(e, "STOCKPROOF_") || strings.HasPrefix(e, role.Env+"=") {
			kept = append(kept, e)
		}
	}
	cmd.Env = append(kept, strings.Fields(env)...)
	raw, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), string(raw)
	}
	require.NoError(t, err)
	return 0, string(raw)
}

func TestBackendsForTests(t *testing.T) {
	getenv := func(env map[string]string) func(string) string { return func(name string) string { return env[name] } }
	_, _, err := servers.Backends(t.Context(), getenv(map[string]string{servers.EnvLive: "off"}))
	require.ErrorIs(t, err, servers.ErrLiveOff)

	var bad *servers.BadValueError
	onEachBackend(t, func(t *testing.T, b servers.Backend) {
		usable, _, err := servers.Backends(t.Context(), getenv(map[string]string{servers.EnvBackend: string(b)}))
		require.NoError(t, err)
		require.Equal(t, []servers.Backend{b}, usable)

		_, _, err = servers.Backends(t.Context(), getenv(map[string]string{servers.EnvRequire: string(b) + ",cloud"}))
		require.ErrorAs(t, err, &bad)

		usable, _, err = servers.Backends(t.Context(), getenv(map[string]string{servers.EnvRequire: string(b)}))
		require.NoError(t, err)
		require.Contains(t, usable, b)
	})
}

func TestARequiredBackendThatIsMissingFails(t *testing.T) {
	// Something must be left to run on when containers are taken away.
	onBackends(t, func(t *testing.T, b servers.Backend) {
		_, _, err := servers.Backends(t.Context(), func(name string) string {
			return map[string]string{servers.EnvRedisImage: "127.0.0.1:1/none:none", servers.EnvRequire: "container"}[name]
		})
		var none *servers.NoBackendError
		require.ErrorAs(t, err, &none)
		require.Len(t, none.Reasons, 1)
		require.Equal(t, servers.Container, none.Reasons[0].Backend)
	}, servers.Process)
}

func TestStartRefusesWhatMakesNoSense(t *testing.T) {
	var bad *servers.BadValueError
	_, err := servers.Start(t.Context(), "cloud")
	require.ErrorAs(t, err, &bad)
	for _, opt := range []servers.Options{{Persistence: "paper"}, {Session: "../x"}, {Session: "a b"}, {Session: strings.Repeat("x", 65)}} {
		_, err := servers.StartWith(t.Context(), servers.Process, opt)
		require.ErrorAs(t, err, &bad, "%+v", opt)
	}
	_, err = servers.StartWith(t.Context(), servers.Process, servers.Options{Path: t.TempDir()})
	var none *servers.NoBackendError
	require.ErrorAs(t, err, &none)
	require.ErrorIs(t, err, servers.ErrNoProgram)
	require.Contains(t, err.Error(), "apt-get install redis-server postgresql")
}

package role_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/live/role"
)

func init() {
	role.Register("greeter", func() int {
		_, still := os.LookupEnv(role.Env)
		fmt.Printf("hello %s, asked again: %v", strings.Join(os.Args[1:], " "), still)
		return 7
	})
}

func TestMain(m *testing.M) {
	role.RunIfAsked()
	os.Exit(m.Run())
}

func TestARoleRunsInAFreshProcessOfTheSameBinary(t *testing.T) {
	cmd, err := role.Command("greeter", "a", "b")
	require.NoError(t, err)
	out, err := cmd.Output()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit), "the exit status of the role is the exit status of the process: %v", err)
	require.Equal(t, 7, exit.ExitCode())
	require.Equal(t, "hello a b, asked again: false", string(out))
}

func TestAnUnknownRoleIsBadUsage(t *testing.T) {
	cmd, err := role.Command("juggler")
	require.NoError(t, err)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit))
	require.Equal(t, 2, exit.ExitCode())
	require.Contains(t, string(out), `"juggler"`)
	require.Contains(t, string(out), "greeter")
}

func TestAProgramWithoutTheHookCannotStartItselfForEver(t *testing.T) {
	t.Setenv(role.Env, "greeter") // what a re-executed main sees when it never called RunIfAsked
	_, err := role.Command("greeter")
	require.ErrorIs(t, err, role.ErrNotHooked)
}

func TestRegisteringTwiceIsAMistake(t *testing.T) {
	require.Panics(t, func() { role.Register("greeter", func() int { return 0 }) })
	require.Panics(t, func() { role.Register("", func() int { return 0 }) })
	require.Panics(t, func() { role.Register("nobody", nil) })
}

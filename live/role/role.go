// Package role lets one binary play several parts. A process that needs a
// helper (a client that can be killed, a reaper that outlives its parent) starts
// its own binary again with STOCKPROOF_ROLE set, so that nothing else has to be
// installed and the test binary works in the same way as the command.
package role

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// Env names the variable that asks a fresh process to play a role.
const Env = "STOCKPROOF_ROLE"

// ErrNotHooked says that this process was asked to play a role but its main
// (or TestMain) did not call [RunIfAsked]. Starting a helper from it would start
// the same program again, and again.
var ErrNotHooked = errors.New("role: main or TestMain must call role.RunIfAsked first")

var (
	mu    sync.Mutex
	roles = map[string]func() int{}
)

// Register makes run the body of the named role; its result is the exit status.
// It is meant to be called from init and panics when the name is empty or taken,
// because both are mistakes of the programmer.
func Register(name string, run func() int) {
	mu.Lock()
	defer mu.Unlock()
	if name == "" || run == nil {
		panic("role: a role needs a name and a body")
	}
	if _, taken := roles[name]; taken {
		panic("role: " + name + " is registered twice")
	}
	roles[name] = run
}

// RunIfAsked plays the role named in the environment and ends the process, or
// returns at once when no role was asked for. Call it before anything else in
// main and in TestMain. The variable is removed from the environment first, so
// that a role can start helpers of its own.
func RunIfAsked() {
	name, asked := os.LookupEnv(Env)
	if !asked {
		return
	}
	_ = os.Unsetenv(Env) // fails only for a malformed name
	os.Exit(play(name, os.Stderr))
}

// play runs one role. An unknown name is bad usage: exit status 2.
func play(name string, stderr io.Writer) int {
	mu.Lock()
	run, known := roles[name]
	names := make([]string, 0, len(roles))
	for n := range roles {
		names = append(names, n)
	}
	mu.Unlock()
	if !known {
		slices.Sort(names)
		fmt.Fprintf(stderr, "%s=%q: this program has no such role (it has: %s)\n", Env, name, strings.Join(names, ", "))
		return 2
	}
	return run()
}

// Command prepares a process of this same binary that plays the named role. The
// caller sets pipes and attributes and starts it. It fails with [ErrNotHooked]
// when called in a process that should itself have played a role.
func Command(name string, args ...string) (*exec.Cmd, error) {
	if _, pending := os.LookupEnv(Env); pending {
		return nil, ErrNotHooked
	}
	// Not os.Executable: the file may have been replaced or removed since (go run
	// and go test do), while this link always leads to the running image.
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), Env+"="+name)
	return cmd, nil
}

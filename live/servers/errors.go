package servers

import (
	"errors"
	"fmt"
	"strings"
)

var (
	// ErrLiveOff says that live runs were left out on request (STOCKPROOF_LIVE=off).
	ErrLiveOff = errors.New("live runs are left out: " + EnvLive + "=off")
	// ErrNotDurable says that the PostgreSQL server may forget a commit it has
	// acknowledged, so evidence from it would be worthless.
	ErrNotDurable = errors.New("PostgreSQL does not sync commits to disk")
	// ErrWrongServer says that another program answers at the address of a server.
	ErrWrongServer = errors.New("another server answers at this address")
)

// BadValueError is a setting with a value that means nothing: bad usage, exit status 2.
type BadValueError struct {
	Name, Value string
	Allowed     []string
}

func (e *BadValueError) Error() string {
	return fmt.Sprintf("%s=%q: want %s", e.Name, e.Value, strings.Join(e.Allowed, " or "))
}

// NoBackendError says that there is nothing to run the servers with: exit status 3.
type NoBackendError struct {
	// Reasons says for each backend tried why it was not taken.
	Reasons []Reason
}

// Reason says why a backend was not taken.
type Reason struct {
	Backend Backend
	Why     error
}

func (e *NoBackendError) Error() string {
	var b strings.Builder
	b.WriteString("no backend for live runs:")
	for _, r := range e.Reasons {
		fmt.Fprintf(&b, "\n  %s: %v", r.Backend, r.Why)
	}
	b.WriteString("\nto get one, either install the servers (process backend):\n" +
		"    apt-get install redis-server postgresql\n" +
		"or start a docker daemon that has or can pull " + RedisImage + " and " + PostgresImage +
		", or build an image from Debian packages (container backend):\n" +
		"    scripts/build-image.sh\n" +
		EnvRedisImage + " and " + EnvPostgresImage + " name other images, " +
		EnvBackend + "=container|process takes only that backend, " +
		EnvLive + "=off leaves live runs out.")
	return b.String()
}

// Unwrap gives access to the reasons.
func (e *NoBackendError) Unwrap() []error {
	errs := make([]error, len(e.Reasons))
	for i, r := range e.Reasons {
		errs[i] = r.Why
	}
	return errs
}

// DiedError says that a server ended although nobody asked it to.
type DiedError struct {
	Server string   // redis or postgres
	Status string   // how it ended
	Log    []string // its last lines
}

func (e *DiedError) Error() string {
	msg := fmt.Sprintf("%s ended during the run: %s", e.Server, e.Status)
	if len(e.Log) == 0 {
		return msg + " (it logged nothing)"
	}
	return msg + "; its last words:\n    " + strings.Join(e.Log, "\n    ")
}

// Command backends prints the backends live tests can use on this machine, one a
// line, and on standard error why another cannot be used. Exit status: 0 done (also
// with STOCKPROOF_LIVE=off, when it prints none), 2 a setting means nothing, 3 no
// backend or a required one (STOCKPROOF_REQUIRE) is missing.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"stockproof/live/servers"
)

func main() { os.Exit(run(os.Getenv, os.Stdout, os.Stderr)) }

func run(getenv func(string) string, stdout, stderr io.Writer) int {
	usable, missing, err := servers.Backends(context.Background(), getenv)
	var bad *servers.BadValueError
	switch {
	case errors.Is(err, servers.ErrLiveOff):
		fmt.Fprintln(stderr, err)
		return 0
	case errors.As(err, &bad):
		fmt.Fprintln(stderr, err)
		return 2
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 3
	}
	for _, m := range missing {
		fmt.Fprintf(stderr, "not on %s: %v\n", m.Backend, m.Why)
	}
	for _, b := range usable {
		fmt.Fprintln(stdout, b)
	}
	return 0
}

//go:build nolive

package stockproof

import (
	"context"
	"errors"
	"os"
	"testing"

	"stockproof/evidence"
	"stockproof/faults/schedule"
)

var errNoLive = errors.New("this test was built with -tags nolive, which leaves the live world out")

// Main runs the tests. Built with -tags nolive there is nothing to prepare.
func Main(m *testing.M, _ ...Scheme) { os.Exit(m.Run()) }

func (p *plan) live(context.Context, *evidence.Report, string) error { return errNoLive }

func (p *plan) replayLive(context.Context, *schedule.Schedule) error { return errNoLive }

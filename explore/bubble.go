package explore

import (
	"testing"
	"testing/synctest"
)

// bubble runs f in a synctest bubble: its own virtual clock, and a way to wait
// until every goroutine started inside is parked. synctest asks for a
// *testing.T, of which it needs no more than its zero value; this is the only
// place that relies on it, and TestBubbleWorksOutsideOfATest runs an ordinary
// binary to show that it holds for the Go version in use.
func bubble(f func()) {
	synctest.Test(new(testing.T), func(*testing.T) { f() })
}

// parked returns once every other goroutine of the bubble is durably blocked.
func parked() { synctest.Wait() }

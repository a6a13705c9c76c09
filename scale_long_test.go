//go:build long

package stockproof_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/explore"
)

// TestScale measures docs/scale.md again, all of it: some minutes, and 2 GiB.
// UPDATE_README=1 writes the page.
func TestScale(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	lines := []string{"| scheme | faults | 1 client | 2 | 3 | 4 | 5 | 6 |", "| --- | --- | --- | --- | --- | --- | --- | --- |"}
	for _, scheme := range scaleSchemes {
		for f := range scaleFaults + 1 {
			row := scaleRow{scheme: scheme, faults: f}
			for n := 1; n <= scaleClients; n++ {
				began := time.Now()
				r := searchScale(t, lab, scheme, n, f, 2<<30)
				states := r.States
				if !r.Exhaustive {
					states = 0
				}
				row.states = append(row.states, states)
				if took := time.Since(began); took > time.Second {
					fmt.Printf("%s, %d clients, %d faults: %d states in %s, %d MB, exhaustive %t %s\n", scheme, n, f, r.States, took.Round(100*time.Millisecond), r.Bytes/1e6, r.Exhaustive, r.Why)
				}
			}
			lines = append(lines, row.String())
		}
	}
	requireShown(t, "docs/scale.md", "states", strings.Join(lines, "\n"))
}

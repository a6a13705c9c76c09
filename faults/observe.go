package faults

import (
	"fmt"
	"slices"
	"strings"
)

// Observed are several fault-free runs of one workload in turn: of each run, the
// command of each step that each client made.
type Observed [][][]string

// Plan enumerates every placement of a kind that any of the runs has a place for.
// Where the runs differ, a later run need not come to each of them.
func (o Observed) Plan(kind Kind) []Placement {
	type place struct{ client, step int }
	var plan []Placement
	variants := map[place]int{}
	for _, steps := range o {
		for _, p := range Plan(kind, steps) {
			if slices.ContainsFunc(plan, func(q Placement) bool { q.Variant = 0; return p == q }) {
				continue
			}
			at := place{p.Client, p.Step}
			if p.Step > 0 {
				p.Variant = variants[at]
				variants[at]++
			}
			plan = append(plan, p)
		}
	}
	return plan
}

// Differences says in words how the runs differ, one sentence for each client that
// did not make the same steps in all of them.
func (o Observed) Differences() []string {
	var said []string
	for c := range o[0] {
		var seen []string
		for _, run := range o {
			if text := strings.Join(run[c], ", "); !slices.Contains(seen, text) {
				seen = append(seen, text)
			}
		}
		if len(seen) > 1 {
			said = append(said, fmt.Sprintf("client %s made different steps in %d fault-free runs: %s", ClientName(c), len(o), strings.Join(seen, "; then: ")))
		}
	}
	return said
}

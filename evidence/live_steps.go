//go:build !nolive

package evidence

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stockproof/faults"
	"stockproof/live"
)

// StepsPath is the path of a run's steps below the output folder.
func StepsPath(r *live.Run) string {
	return strings.TrimSuffix(r.Case.HistoryPath(), ".jsonl") + ".steps.txt"
}

// WriteSteps writes, beside the history of each run that is the witness of a cell,
// what the proxies saw of it: every step in order with its reply, the fault, and
// the counter after it. It is for schemes of which there can be no schedule.
func WriteSteps(dir string, cells []Cell, runs []*live.Run) error {
	for _, r := range runs {
		for _, c := range cells {
			if c.Verdict != Violated || c.Witness != r.Case.HistoryPath() {
				continue
			}
			path := filepath.Join(dir, StepsPath(r))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				return err
			}
			if err := os.WriteFile(path, []byte(stepsText(r)), 0o644); err != nil {
				return err
			}
			break
		}
	}
	return nil
}

func stepsText(r *live.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# What the proxies saw of %s, %s.\n", filepath.Base(r.Case.HistoryPath()), r.Case.Placement)
	last := r.Case.Workload.Stock
	for _, s := range r.Steps {
		fmt.Fprintf(&b, "%s  %s", faults.ClientName(s.Client), s.Command)
		if s.Reply != "" {
			fmt.Fprintf(&b, "  => %s", s.Reply)
		}
		if s.Fault != "" {
			fmt.Fprintf(&b, "  ! %s", s.Fault)
		}
		if s.Counter != nil && *s.Counter != last {
			last = *s.Counter
			fmt.Fprintf(&b, "  ; stock %d", last)
		}
		b.WriteString("\n")
	}
	for _, o := range r.History.Ops {
		fmt.Fprintf(&b, "# %s\n", o)
	}
	for _, f := range r.Findings {
		if f.Broken {
			fmt.Fprintf(&b, "# violates %s: %s\n", f.Property, f.Detail)
		}
	}
	return b.String()
}

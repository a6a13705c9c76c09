package live

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"stockproof/faults"
	"stockproof/histories"
	"stockproof/schemes"
)

// atOnce is how many runs of a group go on at the same time. Most of a run with
// a lock is waiting for its lease.
const atOnce = 6

// HistoryPath is where the history of a run is written, below the output folder.
func (c Case) HistoryPath() string { return filepath.Join("histories", c.Name()+".jsonl") }

// PicturePath is where porcupine's picture of it is written, if it is.
func (c Case) PicturePath() string { return filepath.Join("pictures", c.Name()+".html") }

// Observe counts the steps each client makes in a fault-free run in turn.
func (w *World) Observe(ctx context.Context, e schemes.Entry, load faults.Workload, retries string) ([]int, error) {
	run, err := w.Run(ctx, Case{Entry: e, Workload: load, Retries: retries, Placement: faults.Placement{Kind: faults.None, Order: faults.InTurn}})
	if err != nil {
		return nil, fmt.Errorf("observe the steps of %s: %w", e.Scheme.Name(), err)
	}
	steps := make([]int, len(load.Clients))
	for i := range steps {
		steps[i] = run.StepsBy(i)
	}
	return steps, nil
}

// RunAll makes every run of a plan. Histories are written below dir before they
// are checked, and pictures of those that are not linearizable.
func (w *World) RunAll(ctx context.Context, e schemes.Entry, load faults.Workload, retries string, plan []faults.Placement, dir string) ([]*Run, error) {
	runs := make([]*Run, len(plan))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, p := range plan {
		group.Go(func() error {
			run, err := w.Run(ctx, Case{Entry: e, Workload: load, Retries: retries, Placement: p})
			if run != nil && dir != "" { // also a run that broke down
				err = errors.Join(err, run.History.WriteFile(filepath.Join(dir, run.Case.HistoryPath())))
			}
			if err != nil {
				return err
			}
			runs[i] = run
			return run.Check(dir)
		})
	}
	return runs, group.Wait()
}

// Check asks porcupine about the settled history, and draws below dir what is
// illegal; with an empty dir it draws nothing.
func (r *Run) Check(dir string) error {
	r.Checked = histories.Check(r.Settled, checkLimit)
	f := r.Checked.Finding()
	r.Findings = append(r.Findings, f)
	if dir != "" && f.Broken {
		return r.Checked.Picture(filepath.Join(dir, r.Case.PicturePath()))
	}
	return nil
}

// Kinds lists the faults the live world places.
func Kinds() []faults.Kind {
	var kinds []faults.Kind
	for _, k := range faults.Kinds() {
		if k.Live {
			kinds = append(kinds, k.ID)
		}
	}
	return kinds
}

// Retries lists the retry settings of go-redis a scheme is judged with.
func Retries() []string { return []string{"off", "default"} }

// RetriesFor is Retries for a live run of a scheme: one that does not use
// go-redis would only be run twice.
func RetriesFor(e schemes.Entry) []string {
	if !e.Stores.Redis {
		return Retries()[:1]
	}
	return Retries()
}

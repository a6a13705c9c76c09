//go:build !nolive

package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"stockproof/explore"
	"stockproof/faults/schedule"
	"stockproof/live"
	"stockproof/model"
)

// LiveSchedules writes live runs that broke something as schedules, beside
// their histories:
//
//	histories/RUN.jsonl                       what the clients were answered
//	histories/RUN.schedule                    every step of the run, as explore has replayed it
//	histories/RUN.PROPERTY.smallest.schedule  the smallest execution that shows the same
//
// The witness of a cell stays the history: that was seen, and holds whatever
// explore makes of it.
type LiveSchedules struct {
	lab       *explore.Lab
	minimiser *explore.Minimiser
	dir       string
	written   map[string]fitted // by path
}

// NewLiveSchedules writes below dir, replays and searches in lab.
func NewLiveSchedules(lab *explore.Lab, dir string) *LiveSchedules {
	return &LiveSchedules{lab: lab, minimiser: explore.NewMinimiser(lab), dir: dir, written: map[string]fitted{}}
}

// SchedulePath is the path of a run's schedule below the output folder.
func SchedulePath(r *live.Run) string {
	return strings.TrimSuffix(r.Case.HistoryPath(), ".jsonl") + ".schedule"
}

// SmallestPath is the path of the smallest schedule that shows what a run shows.
func SmallestPath(r *live.Run, p model.Property) string {
	return strings.TrimSuffix(r.Case.HistoryPath(), ".jsonl") + "." + string(p) + ".smallest.schedule"
}

// Write writes the schedules of the violated cells of a group. It answers one
// sentence for every run of which explore does not accept the schedule: where
// the two worlds differ is told there and in the file.
func (w *LiveSchedules) Write(ctx context.Context, cells []Cell, runs []*live.Run) (differ []string, err error) {
	for _, c := range cells {
		if c.Verdict != Violated {
			continue
		}
		for _, r := range runs {
			if r.Case.HistoryPath() != c.Witness {
				continue
			}
			path := SchedulePath(r)
			_, before := w.written[path]
			s, why, err := w.fit(r, path, fmt.Sprintf("# What the proxies saw of %s, %s.", filepath.Base(r.Case.HistoryPath()), r.Case.Placement))
			if err != nil {
				return differ, err
			}
			if why != "" && !before {
				differ = append(differ, fmt.Sprintf("%s: %s", path, why))
			}
			if s == nil {
				continue
			}
			small, err := w.minimiser.Minimise(ctx, s, c.Property)
			if err != nil {
				return differ, err
			}
			note := fmt.Sprintf("# Found by explore: the smallest way to %s with %s and go-redis retries %s, for what\n# %s shows.", c.Property, c.Fault, s.Retries, filepath.Base(c.Witness))
			if err := writeSchedule(filepath.Join(w.dir, SmallestPath(r, c.Property)), small, note); err != nil {
				return differ, err
			}
		}
	}
	return differ, nil
}

// fit writes the schedule of a run once. It answers nil, and why, when explore
// does not accept it.
func (w *LiveSchedules) fit(r *live.Run, path, note string) (s *schedule.Schedule, why string, err error) {
	if done, ok := w.written[path]; ok {
		return done.s, done.why, nil
	}
	defer func() { w.written[path] = fitted{s, why} }()
	d, err := r.Draft()
	if err != nil { // something crossed the wire that schedules have no words for
		return nil, err.Error(), nil
	}
	s, err = w.lab.Fit(d, "miniredis")
	var diverged *schedule.DivergenceError
	switch {
	case errors.As(err, &diverged):
		why = err.Error()
		note += fmt.Sprintf("\n# explore does not accept it, %s.\n# What came after that line is left out.", why)
	case errors.Is(err, explore.ErrConfig) || errors.Is(err, explore.ErrScheme):
		return nil, err.Error(), nil
	case err != nil:
		return nil, "", err
	}
	if err := writeSchedule(filepath.Join(w.dir, path), s, note); err != nil {
		return nil, "", err
	}
	if why != "" {
		s = nil
	}
	return s, why, nil
}

// fitted is what came of a run's schedule.
type fitted struct {
	s   *schedule.Schedule
	why string
}

// writeSchedule writes a schedule with a comment at its top.
func writeSchedule(path string, s *schedule.Schedule, note string) error {
	noted := *s
	noted.Notes = map[string]schedule.Note{schedule.PartVersion: {Above: append(strings.Split(note, "\n"), "")}}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(noted.String()), 0o644)
}

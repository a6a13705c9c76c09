//go:build !nolive

package evidence

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"stockproof/faults/schedule"
	"stockproof/live"
)

// Confirm replays the witness of every violated cell of explore on real servers
// and notes in the cells what came of it. Witnesses lie below dir; cells that
// share an execution share its replay. done, which may be nil, is called after
// each replay, with how many there are in all.
//
// A witness that real servers cannot be made to follow leaves its cells as they
// were, with the reason; one that comes out otherwise makes them false.
func Confirm(ctx context.Context, world *live.World, cells []Cell, dir string, done func(of int)) (Confirmed, error) {
	shared := map[string][]int{} // text of a witness → cells
	var texts []string
	for i, c := range cells {
		if c.World != "explore" || c.Verdict != Violated || c.Witness == "" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, c.Witness))
		if err != nil {
			return Confirmed{}, err
		}
		text := string(raw)
		if len(shared[text]) == 0 {
			texts = append(texts, text)
		}
		shared[text] = append(shared[text], i)
	}
	sum := Confirmed{Witnesses: len(texts)}
	var mu sync.Mutex
	running, ctx := errgroup.WithContext(ctx)
	running.SetLimit(live.ReplaysAtOnce)
	for _, text := range texts {
		running.Go(func() error {
			first := cells[shared[text][0]].Witness
			s, err := schedule.Parse(strings.NewReader(text), first)
			if err != nil {
				return err
			}
			err = world.Replay(ctx, s, live.ReplayOptions{})
			mu.Lock()
			defer mu.Unlock()
			if err := sum.note(first, err); err != nil {
				return err
			}
			for _, i := range shared[text] {
				cells[i].confirm(err)
			}
			if done != nil {
				done(len(texts))
			}
			return nil
		})
	}
	return sum, running.Wait()
}

// note counts the result of a replay. An error that is none comes back.
func (s *Confirmed) note(witness string, err error) error {
	var diverged *schedule.DivergenceError
	var cannot *live.CannotError
	switch {
	case err == nil:
		s.AsFound++
	case errors.As(err, &cannot), errors.Is(err, live.ErrTooSlow):
		s.Open = append(s.Open, fmt.Sprintf("%s: %v", witness, err))
	case errors.As(err, &diverged):
		s.Otherwise = append(s.Otherwise, fmt.Sprintf("%s: %v", witness, err))
	default:
		return fmt.Errorf("replay %s: %w", witness, err)
	}
	return nil
}

// confirm notes what the replay of the cell's witness came to.
func (c *Cell) confirm(err error) {
	var diverged *schedule.DivergenceError
	var cannot *live.CannotError
	yes, no := true, false
	c.ConfirmedLive, c.NotConfirmed = nil, ""
	switch {
	case err == nil:
		c.ConfirmedLive = &yes
		return
	case errors.As(err, &cannot), errors.Is(err, live.ErrTooSlow):
	case errors.As(err, &diverged):
		c.ConfirmedLive = &no
	}
	c.NotConfirmed = err.Error()
}

//go:build !nolive

package evidence

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

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
// were, with the reason; one that comes out otherwise makes them false. After
// the time (0: however long it takes) no further replay begins: one of each
// scheme × fault comes before the second of any.
func Confirm(ctx context.Context, world *live.World, cells []Cell, dir string, limit time.Duration, done func(of int)) (Confirmed, error) {
	return confirmAll(ctx, func(ctx context.Context, s *schedule.Schedule) error {
		return world.Replay(ctx, s, live.ReplayOptions{})
	}, cells, dir, limit, done)
}

// errNoTime is why a witness was not replayed.
var errNoTime = errors.New("not replayed: the time for it was over")

func confirmAll(ctx context.Context, replay func(context.Context, *schedule.Schedule) error, cells []Cell, dir string, limit time.Duration, done func(of int)) (Confirmed, error) {
	began := time.Now()
	texts, shared, err := distinct(cells, dir)
	if err != nil {
		return Confirmed{}, err
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
			if err = errNoTime; limit == 0 || time.Since(began) < limit {
				err = replay(ctx, s)
			}
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

// distinct lists the different witnesses of cells, as texts, one of each scheme ×
// fault before the second of any, and by text the cells that show it.
func distinct(cells []Cell, dir string) (texts []string, shared map[string][]int, err error) {
	shared = map[string][]int{}
	turn, turns := map[string]int{}, map[Group]int{} // how many of its scheme and fault come before
	for i, c := range cells {
		if !c.hasWitness() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(dir, c.Witness))
		if err != nil {
			return nil, nil, err
		}
		text := string(raw)
		if len(shared[text]) == 0 {
			texts = append(texts, text)
			group := Group{Scheme: c.Scheme, Fault: c.Fault}
			turn[text] = turns[group]
			turns[group]++
		}
		shared[text] = append(shared[text], i)
	}
	slices.SortStableFunc(texts, func(a, b string) int { return cmp.Compare(turn[a], turn[b]) })
	return texts, shared, nil
}

// note counts the result of a replay. An error that is none comes back.
func (s *Confirmed) note(witness string, err error) error {
	var diverged *schedule.DivergenceError
	var cannot *live.CannotError
	switch {
	case err == nil:
		s.AsFound++
	case errors.As(err, &cannot), errors.Is(err, live.ErrTooSlow), errors.Is(err, errNoTime):
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
	case errors.As(err, &cannot), errors.Is(err, live.ErrTooSlow), errors.Is(err, errNoTime):
	case errors.As(err, &diverged):
		c.ConfirmedLive = &no
	}
	c.NotConfirmed = err.Error()
}

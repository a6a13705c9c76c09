package explore

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/engines/redisstore"
)

// EngineDifferenceError is a command that two engines answer differently.
type EngineDifferenceError struct {
	Args       []string
	Before     string // what the server held
	What       string // reply, state or messages
	One, Other string
}

func (e *EngineDifferenceError) Error() string {
	return fmt.Sprintf("%s of %s differs: %s and %s; before:\n%s", e.What, strings.Join(e.Args, " "), e.One, e.Other, e.Before)
}

// CompareEngine asks another engine every question the searches of this
// laboratory have asked, and answers how many; the error is an
// *EngineDifferenceError at the first difference.
func (l *Lab) CompareEngine(other redisstore.Engine) (int, error) {
	l.mu.Lock()
	var asked []question
	for _, w := range l.worlds {
		w.mu.Lock()
		asked = append(asked, w.asked...)
		w.mu.Unlock()
	}
	l.mu.Unlock()
	seen := map[string]bool{}
	for _, q := range asked {
		key := q.Before.Encode() + q.Session + " " + joinArgs(q.Args)
		if seen[key] {
			continue
		}
		seen[key] = true
		if err := compareAnswer(other, q); err != nil {
			return len(seen), err
		}
	}
	return len(seen), nil
}

func compareAnswer(other redisstore.Engine, q question) error {
	r, err := other.ExecOn(q.Before, q.Session, q.Args)
	if err != nil {
		return err
	}
	differs := func(what, one, other2 string) error {
		return &EngineDifferenceError{Args: q.Args, Before: q.Before.Encode(), What: what, One: one, Other: other2}
	}
	if a, b := redisstore.ErrorClass(q.Result.Reply), redisstore.ErrorClass(r.Reply); a != b {
		return differs("reply", a, b)
	}
	if a, b := q.Result.State.Encode(), r.State.Encode(); a != b {
		return differs("state", a, b)
	}
	if !slices.Equal(q.Result.Messages, r.Messages) {
		return differs("messages", fmt.Sprint(q.Result.Messages), fmt.Sprint(r.Messages))
	}
	return nil
}

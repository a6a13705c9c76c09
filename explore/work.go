package explore

import (
	"fmt"

	"stockproof/model"
	"stockproof/schemes"
)

// maxRounds bounds the rounds of a background role at rest.
const maxRounds = 100

// atEnd is the moment when every lease is over and the scheme's background role
// has nothing left to do, as it will be in the end of a sale whose role goes on
// for ever: rounds are made one after the other, by somebody who has seen
// nothing of what was before, until one leaves nothing.
func (w *world) atEnd(at int32) (int32, error) {
	at = w.atRest(at)
	if !schemes.Works(w.entry.Scheme) {
		return at, nil
	}
	for range maxRounds {
		after, r, err := w.alone(at, work, 0, prober)
		if err != nil {
			return 0, err
		}
		at = w.atRest(after)
		if r.outcome == model.OK && r.value == 0 {
			return at, nil
		}
	}
	return 0, fmt.Errorf("%w: %s: its background role is not done after %d rounds", ErrScheme, w.entry.Scheme.Name(), maxRounds)
}

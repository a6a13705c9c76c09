package explore

import (
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// Replay runs a schedule on an engine of the laboratory, "miniredis" or
// "redis"; see the function Replay. The error is a *schemes.UnknownSchemeError
// when there is no such scheme.
func (l *Lab) Replay(s *schedule.Schedule, engine string) error {
	entry, err := schemes.ByName(s.Scheme)
	if err != nil {
		return err
	}
	e, err := l.engine(engine)
	if err != nil {
		return err
	}
	return Replay(entry, s, e)
}

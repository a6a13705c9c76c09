package schedule

import (
	"time"

	"stockproof/model"
)

// Draft is an execution as the proxies of a live run saw it. Every command, reply,
// fault and counter of its steps was observed, in the order in which the servers
// executed them, and so were the end and the laws that were broken. Not in it is what no
// proxy can see: how much time a clock that stands still while commands run would have
// to pass, at which step an answer was due, and who was woken. explore.Fit fills that
// in, and says where the rest cannot have been.
type Draft struct {
	*Schedule
	// Before[i] is what was seen to have come about before Steps[i] began;
	// Before[len(Steps)], before the end.
	Before map[int][]Event
	// At is when Steps[i] was sent, since the run began. Steps that are no
	// commands have no time.
	At map[int]time.Duration
}

// Event is something that was seen and is no step.
type Event struct {
	// LeasesOver: time passed until no lease was left.
	LeasesOver bool
	// Client was answered its N-th operation, from 1; unless LeasesOver.
	Client string
	N      int
}

// Shows says whether the schedule violates a property.
func (s *Schedule) Shows(p model.Property) bool {
	_, ok := s.Amount(p)
	return ok
}

// Amount is by how much the schedule violates a property.
func (s *Schedule) Amount(p model.Property) (amount int64, violated bool) {
	for _, v := range s.Violates {
		if v.Property == p {
			return v.Amount, true
		}
	}
	return 0, false
}

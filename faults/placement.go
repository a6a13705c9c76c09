package faults

import "fmt"

// Order is how the clients of a run take turns apart from the fault.
type Order string

// The orders of a live run.
const (
	// InTurn: one client after the other, in the order of arrival.
	InTurn Order = "in-turn"
	// Preempted: the placement's client stands still after its step until all
	// later clients are done. No time limit, no signal: only the order varies.
	Preempted Order = "preempted"
	// Barrier: all clients begin at once, none goes on after its first step
	// before every client has made it, and then they go on one after the other.
	Barrier Order = "barrier"
)

// Placement is a fault at a place: client c, its n-th step, and, by its kind,
// where on that step.
//
//	client-crash, client-pause: between the server's execution of the step and
//	  the client's next instruction
//	request-lost: before the server sees the step
//	reply-lost: after the server executed it, before the client sees the reply
//	faults of servers and of those who run the sale: after the step, before anybody's
//	  next; redis-freeze instead of it; the link of a replica breaks before it
type Placement struct {
	Kind Kind
	// Setting of the server that a fault of a server hits, see Kind.Settings.
	Setting Setting
	Order   Order
	Client  int // from 0, in order of arrival; unused InTurn and at a Barrier
	Step    int // from 1, the client's own count over all servers
	// At says which command that step was when the places were counted, such as
	// "HGET"; a step with another command is another place, and there the fault
	// does not fire. Empty: whatever command it is.
	At string
	// Variant tells placements at the same step apart where fault-free runs made
	// different commands there.
	Variant int
	// ThenCrash kills a paused client instead of letting it go on.
	ThenCrash bool
}

func (p Placement) String() string {
	at := fmt.Sprintf("client %s step %d", ClientName(p.Client), p.Step)
	switch {
	case p.Kind == None && p.Order == Preempted:
		return at + " " + string(Preempted)
	case p.Kind == None:
		return string(p.Order)
	case p.ThenCrash:
		return fmt.Sprintf("%s at %s, then crash", p.Kind, at)
	}
	return fmt.Sprintf("%s at %s", Row(p.Kind, p.Setting), at)
}

// Plan enumerates every placement of a kind. steps has the command of each step
// that each client made in a fault-free run of the same workload in turn.
//
// With none, that is every single preemption (a client stands still after any
// but its last step), one run without, and one behind a barrier. With every
// other kind it is each step of each client. Nobody stands still between MULTI and
// EXEC: what is queued there has no effect, so that is standing still before
// MULTI, and a client that sends them in one go has nothing left to hold back.
func Plan(kind Kind, steps [][]string) []Placement {
	if kind == None {
		plan := []Placement{{Kind: None, Order: InTurn}, {Kind: None, Order: Barrier}}
		for c, commands := range steps {
			queues := false
			for i := 1; i < len(commands); i++ {
				switch commands[i-1] {
				case "MULTI":
					queues = true
				case "EXEC", "DISCARD":
					queues = false
				}
				if queues {
					continue
				}
				plan = append(plan, Placement{Kind: None, Order: Preempted, Client: c, Step: i, At: commands[i-1]})
			}
		}
		return plan
	}
	var plan []Placement
	for c, commands := range steps {
		for i, command := range commands {
			plan = append(plan, Placement{Kind: kind, Order: InTurn, Client: c, Step: i + 1, At: command})
		}
	}
	return plan
}

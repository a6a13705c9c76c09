package explore

import (
	"stockproof/faults"
	"stockproof/model"
)

// Bounds of one search. They size the state; Run refuses what does not fit.
const (
	maxLocals  = 6 // clients, resubmitted requests included
	maxOps     = 4 // operations of one client
	maxLate    = 2 // delayed commands of one client in flight
	maxVersion = 5 // the present and the moments a store may fall back to
	replicaAt  = 4 // the last of them is what Redis's replica holds
)

type status uint8

const (
	live    status = iota
	crashed        // sends nothing any more
	paused         // stopped since the last jump of time
	rested         // stopped, and time has jumped since
	dormant        // a resubmission or a job that has not begun
)

// ended is an operation a client has finished.
type ended struct {
	outcome   uint8 // index in outcomes, plus one
	call, ret uint8 // epochs
	taken     int8
}

// late is a command whose client has seen an error and which still travels.
type late struct {
	cmd   int32 // step id plus one, 0 for none
	place int16 // placement of the fault
	op    uint8
}

// local is all that matters of one client. Two clients with equal locals are
// interchangeable. It is comparable: a state holds its id.
type local struct {
	who    uint8 // index of the program
	op     uint8 // index of the present operation
	status status
	begun  bool // the present operation has executed a step
	stuck  int8 // its parked step plus one that waits in the database, 0 for none
	node   int32
	away   int32 // any number of clients: its sessions the database does not name
	call   uint8 // epoch in which it began
	taken  int8  // units it has taken from the counter so far
	place  int16 // placement of the pause it is in
	past   [maxOps]ended
	late   [maxLate]late
	slots  [maxVersion]int8 // its slot in each version of the stores, -1 for none
}

// Epochs order operations in real time and nothing else: an operation that
// begins after another has returned gets a later epoch than that one's return.
// Together they are the interval order of the operations in its smallest form,
// and, unlike a set of predecessors, need no renaming when clients are sorted.
type epoch struct {
	now  uint8
	seen bool // something has returned in this epoch
}

func (e epoch) word() uint32 {
	w := uint32(e.now) << 1
	if e.seen {
		w |= 1
	}
	return w
}

func epochOf(w uint32) epoch { return epoch{uint8(w >> 1), w&1 == 1} }

// calls is the epoch in which an operation begins now.
func (e epoch) calls() epoch {
	if e.seen {
		return epoch{e.now + 1, false}
	}
	return e
}

// returns is the epoch after an operation has returned.
func (e epoch) returns() epoch { return epoch{e.now, true} }

var outcomes = []model.Outcome{model.Sold, model.SoldOut, model.Busy, model.Failed, model.OK, model.Value, model.Unknown}

func outcomeIndex(o model.Outcome) uint8 {
	for i, known := range outcomes {
		if o == known {
			return uint8(i + 1)
		}
	}
	return uint8(len(outcomes)) // a word we do not know decides nothing
}

// program is what the clients of one kind run.
type program struct {
	calls     []faults.Call
	roles     []*automaton
	resubmits bool // submits a request of the client origin again
	job       bool // is nobody's purchase: loads again, or reconciles
	extra     bool // begins only as a fault: resubmits, or is a job
	slot      int  // of an extra: which of them it is
	origin    int
	originOp  int
	requests  []string // request id of each call
	client    string   // name of its client, or the token under symmetry
	index     int      // of its client, without symmetry
}

// move is a step a client could make now.
type move struct {
	index int   // in the node's parked steps
	cmd   int32 // step id
}

// info is what the search has to know of a local, worked out once.
type info struct {
	moves    []move
	ready    bool  // live, in an operation, and has a step to make: time stands still
	arrived  bool  // live and in an operation
	deadline int64 // ms until it stirs by itself, 0 for never
	finished bool  // it will never do anything any more
	settled  bool  // finished, and nothing of it is in flight
	channels []string
	late     int // delayed commands in flight
	buffered bool
	beside   bool
	stuck    int // database session of its blocked statement, -1 for none
	begunOps uint8
}

// brief is what the search asks of every local in every state, in one place
// and without pointers.
type brief struct {
	deadline int64
	stuck    int16
	late     uint8
	status   status
	moves    bool
	ready    bool
	beside   bool // ready for a step that is none of Redis
	buffered bool // a server that stood still has a command of it
	finished bool
	settled  bool
}

func (i *info) brief(l local) brief {
	return brief{deadline: i.deadline, stuck: int16(i.stuck), late: uint8(i.late), status: l.status, moves: len(i.moves) > 0,
		ready: i.ready, beside: i.beside, buffered: i.buffered, finished: i.finished, settled: i.settled}
}

// shift says what becomes of the clients' slots when the stores change:
// version v comes from version source[v], its slots renumbered by inv[v].
type shift struct {
	source [maxVersion]int8
	inv    [maxVersion][maxSlots]int8
}

func (s *shift) apply(slots [maxVersion]int8) [maxVersion]int8 {
	var out [maxVersion]int8
	for v := range out {
		out[v] = -1
		if src := s.source[v]; src >= 0 && slots[src] >= 0 {
			out[v] = s.inv[v][slots[src]]
		}
	}
	return out
}

// stay is the shift after which everybody's names are as they were.
func stay() shift {
	sh := shift{source: [maxVersion]int8{0, 1, 2, 3, replicaAt}}
	for i := range sh.inv {
		sh.inv[i] = identity()
	}
	return sh
}

func identity() (inv [maxSlots]int8) {
	for i := range inv {
		inv[i] = int8(i)
	}
	return inv
}

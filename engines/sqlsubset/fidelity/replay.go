package fidelity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"stockproof/engines/sqlsubset"
)

// Op is what an Event does.
type Op uint8

const (
	// Exec sends a statement.
	Exec Op = iota
	// Resume is a blocked statement going on; nothing is sent.
	Resume
	// Kill is the server cancelling a statement of a deadlock; nothing is sent.
	Kill
	// Cut is the death of a session's client, in the engine DB.Abandon.
	Cut
)

// Event is one event of a recorded schedule.
type Event struct {
	Op      Op
	Session int
	SQL     string // Exec
	Args    []any  // Exec

	// What the engine said: that the statement is blocked (Exec, Resume), or
	// else its reply.
	Blocked bool
	Reply   sqlsubset.Reply
}

// Schedule is a recorded run of the engine, from tables to the last reply.
type Schedule struct {
	DDL    string   // CREATE TABLE statements, in the subset
	Setup  []string // statements of the subset without parameters, run before the first event
	Events []Event
}

// Verdict is the result of a replay that came to its end.
type Verdict uint8

const (
	// Same: the server answered as recorded, and has the same rows.
	Same Verdict = iota + 1
	// OtherChoice: the server chose another waiter or another victim than the
	// schedule did; what it did is allowed by the engine as far as it was
	// followed. Neither confirms nor refutes the rest of the schedule.
	OtherChoice
)

func (v Verdict) String() string { return [...]string{"?", "same", "other choice"}[v] }

// settleWithin bounds the wait for the server to come to rest after one event;
// beyond it a replay is an error, never a verdict.
const settleWithin = 30 * time.Second

// Replay runs a recorded schedule on the server. A statement that blocks in the
// engine must block on the server and the other way round; replies must be
// equal (see Describe), and so must the rows of all tables at the end. On the
// first difference it returns a *ReplayError that wraps a *DifferenceError, or
// a *RecordError when the schedule is not what the engine says in the first place.
// Replies of statements that were resumed are compared per session, since the
// server resumes them at once and the schedule may have done so later.
func Replay(ctx context.Context, s *Server, sched Schedule) (Verdict, error) {
	db, tables, err := Prepare(ctx, s, sched.DDL, sched.Setup)
	if err != nil {
		return 0, err
	}
	if err := check(db.Clone(), sched.Events); err != nil {
		return 0, err
	}
	f := Follow(db)
	got := map[int][]string{}  // replies by session
	want := map[int][]string{} // as recorded
	cut := map[int]bool{}      // sessions whose client is dead and reads no reply
	other := false
	for i, e := range sched.Events {
		fail := func(err error) error { return &ReplayError{Index: i, Event: e, Err: err} }
		switch e.Op {
		case Resume, Kill:
			if !e.Blocked && !cut[e.Session] {
				want[e.Session] = append(want[e.Session], f.describe(e.Session, e.Reply))
			}
			continue
		case Exec:
			if b := s.sessions[e.Session]; b != nil && b.flying {
				other = true // in the schedule it had gone on by now
			}
		}
		if other {
			break
		}
		if e.Op == Exec {
			st, err := sqlsubset.Parse(e.SQL)
			if err != nil {
				return 0, fail(err)
			}
			if err := f.Exec(e.Session, st, e.Args); err != nil {
				return 0, fail(err)
			}
			if !e.Blocked {
				want[e.Session] = append(want[e.Session], f.describe(e.Session, e.Reply))
			}
			err = s.Send(ctx, e.Session, e.SQL, e.Args)
			if err != nil {
				return 0, fail(err)
			}
		} else {
			cut[e.Session] = true
			f.Abandon(e.Session)
			if err := s.Cut(ctx, e.Session); err != nil {
				return 0, fail(err)
			}
		}
		answers, err := f.settle(ctx, s)
		if err != nil {
			return 0, fail(err)
		}
		for _, a := range answers {
			if !a.Gone {
				got[a.Session] = append(got[a.Session], f.describe(a.Session, a.Reply))
			}
		}
	}
	if !other {
		other = !sameReplies(got, want)
	}
	if other {
		return OtherChoice, nil
	}
	for _, t := range tables {
		rows, err := s.Table(ctx, t)
		if err == nil {
			err = f.Tables(t, rows)
		}
		if err != nil {
			return 0, &ReplayError{Index: len(sched.Events), Err: err}
		}
	}
	return Same, nil
}

// RecordError says that a recorded event is not what the engine does.
type RecordError struct{ Recorded, Engine string }

func (e *RecordError) Error() string {
	return fmt.Sprintf("recorded: %s; the engine says: %s", e.Recorded, e.Engine)
}

// check runs the schedule on the engine. Without it a false record could pass
// for another choice of the server's.
func check(db *sqlsubset.DB, events []Event) error {
	ordered := map[int]bool{}
	for i, e := range events {
		fail := func(recorded, engine string) error {
			return &ReplayError{Index: i, Event: e, Err: &RecordError{recorded, engine}}
		}
		_, waits := db.Waiting()[e.Session]
		var reply sqlsubset.Reply
		var status sqlsubset.Status
		switch {
		case e.Op == Exec && waits:
			return fail("a new statement", "the session still waits")
		case e.Op == Exec:
			st, err := sqlsubset.Parse(e.SQL)
			if err != nil {
				return &ReplayError{Index: i, Event: e, Err: err}
			}
			ordered[e.Session] = st.Ordered()
			reply, status = db.Exec(e.Session, st, e.Args)
		case e.Op == Cut:
			db.Abandon(e.Session)
			continue
		case !waits:
			return fail("a blocked statement", "nothing is blocked")
		case e.Op == Resume:
			reply, status = db.Resume(e.Session)
		case !slices.ContainsFunc(db.Deadlocked(), func(d []int) bool { return slices.Contains(d, e.Session) }):
			return fail("a deadlock", "there is none")
		default:
			reply = db.Kill(e.Session)
		}
		tell := func(blocked bool, r sqlsubset.Reply) string {
			if blocked {
				return "blocked"
			}
			return Describe(r, ordered[e.Session])
		}
		recorded, engine := tell(e.Blocked, e.Reply), tell(status == sqlsubset.Blocked, reply)
		if recorded != engine {
			return fail(recorded, engine)
		}
	}
	return nil
}

func sameReplies(got, want map[int][]string) bool {
	for s := range want {
		if fmt.Sprint(got[s]) != fmt.Sprint(want[s]) {
			return false
		}
	}
	for s := range got {
		if len(want[s]) == 0 && len(got[s]) > 0 {
			return false
		}
	}
	return true
}

// settle waits for the server and holds the engine against what it did.
func (f *Follower) settle(ctx context.Context, s *Server) ([]Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, settleWithin)
	defer cancel()
	answers, blocked, err := s.Settle(ctx)
	if err != nil {
		return nil, err
	}
	return answers, f.Observe(answers, blocked)
}

// Prepare brings server and engine to the same start, and names the tables.
func Prepare(ctx context.Context, s *Server, ddl string, setup []string) (*sqlsubset.DB, []string, error) {
	db := sqlsubset.NewDB()
	for _, q := range append([]string{ddl}, setup...) {
		st, err := sqlsubset.Parse(q)
		if err != nil {
			return nil, nil, fmt.Errorf("fidelity: set up: %w", err)
		}
		if reply, status := db.Exec(0, st, nil); reply.Err != nil || status != sqlsubset.Done {
			return nil, nil, fmt.Errorf("fidelity: set up the engine with %q: %w", q, errors.Join(reply.Err, errStatus(status)))
		}
	}
	tables := db.Tables()
	if err := s.Reset(ctx, ddl, tables, setup); err != nil {
		return nil, nil, err
	}
	return db, tables, nil
}

func errStatus(s sqlsubset.Status) error {
	if s == sqlsubset.Done {
		return nil
	}
	return fmt.Errorf("the statement is %s", s)
}

// ReplayError says at which event of a schedule a replay failed; Index is
// len(Events) when it was the rows at the end.
type ReplayError struct {
	Index int
	Event Event
	Err   error
}

func (e *ReplayError) Error() string {
	return fmt.Sprintf("event %d (session %d, %q %v): %v", e.Index, e.Event.Session, e.Event.SQL, e.Event.Args, e.Err)
}

func (e *ReplayError) Unwrap() error { return e.Err }

// Step is one statement of a program that Run sends.
type Step struct {
	SQL  string
	Args []any
	// Cut, when set, kills the session's client instead of sending.
	Cut bool
}

// Run sends a program — for each session its statements — in the given order of
// sessions and holds the engine against the server after every one. A session
// whose turn comes while its last statement is blocked is passed over and sends
// as soon as it can; statements that never can are left out. It answers how many were
// sent and how often a statement was found blocked after one was sent.
func Run(ctx context.Context, s *Server, db *sqlsubset.DB, tables []string, program [][]Step, order []int) (sent, blockedSeen int, err error) {
	f := Follow(db)
	next := make([]int, len(program))
	ended := make([]bool, len(program))
	order = append([]int(nil), order...)
	for len(order) > 0 {
		k := -1
		for i, id := range order {
			b := s.sessions[id]
			if ended[id] || b == nil || !b.flying || program[id][next[id]].Cut {
				k = i
				break
			}
		}
		if k < 0 {
			break // everybody left is blocked for good
		}
		id := order[k]
		order = append(order[:k], order[k+1:]...)
		if ended[id] {
			continue
		}
		step := program[id][next[id]]
		next[id]++
		e := Event{Op: Exec, Session: id, SQL: step.SQL, Args: step.Args}
		if step.Cut {
			e.Op, ended[id] = Cut, true
			f.Abandon(id)
			err = s.Cut(ctx, id)
		} else {
			var st *sqlsubset.Statement
			if st, err = sqlsubset.Parse(step.SQL); err == nil {
				if err = f.Exec(id, st, step.Args); err == nil {
					err = s.Send(ctx, id, step.SQL, step.Args)
				}
			}
		}
		if err == nil {
			_, err = f.settle(ctx, s)
		}
		if err != nil {
			return sent, blockedSeen, &ReplayError{Index: sent, Event: e, Err: err}
		}
		sent++
		for _, b := range s.sessions {
			if b.flying {
				blockedSeen++
				break
			}
		}
	}
	for _, t := range tables {
		rows, err := s.Table(ctx, t)
		if err == nil {
			err = f.Tables(t, rows)
		}
		if err != nil {
			return sent, blockedSeen, &ReplayError{Index: sent, Err: err}
		}
	}
	return sent, blockedSeen, nil
}

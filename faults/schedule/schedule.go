// Package schedule is the text form of one execution: who takes part, every
// step with the reply it got, every fault, every passing of time, and what it
// came to. It is written by explore, kept in git, read aloud in reviews, and
// run again in either world.
//
//	schedule v1
//	scheme   lock
//	config   lease=300ms wait=100ms retry=100ms retries=off
//	stock    goods:1001 1
//	client   a deduct 1
//	client   b deduct 1
//	---
//	a  EVALSHA lock-acquire lock:1001 300 a:1   => nil
//	a  HGET goods:1001 stock                    => "1"  ! pause
//	   wait 300ms
//	…
//	---
//	outcome  a=sold b=sold
//	stock    -1
//	violates oversell=1 negative-permanent=-1
//
// docs/schedules.md is the description of the format.
package schedule

import (
	"fmt"
	"strconv"
	"time"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// Version is the version of the format that this package reads and writes.
const Version = 1

// Schedule is one execution.
type Schedule struct {
	Scheme  string
	Times   schemes.Config // of the clients; zero is the scheme's published setting
	Retries string         // of go-redis: "off" or "default"
	SKU     string         // of the article, as it stands in keys and statements
	Stock   int64          // units it goes on sale with
	Clients []Client
	Steps   []Step

	End

	// Notes are the comments at the parts of the file that are no steps; the
	// key is one of the Part constants, or PartClient and the client's name.
	Notes map[string]Note
}

// End is what an execution came to.
type End struct {
	Outcomes []Answer       // of every operation that began, by client
	Final    Stock          // the counter afterwards: at rest if it came to rest
	Orders   *[]model.Order // the durable orders at rest; nil where there are none to read
	Violates []Violation    // the laws that are broken, in the order of model.Properties
}

// Parts of a file, keys of Notes.
const (
	PartVersion  = "schedule"
	PartScheme   = "scheme"
	PartConfig   = "config"
	PartStock    = "stock"
	PartClient   = "client " // and the name
	PartSteps    = "steps"   // the line --- before the steps
	PartEnd      = "end"     // the line --- after them
	PartOutcome  = "outcome"
	PartFinal    = "final stock"
	PartOrders   = "orders"
	PartViolates = "violates"
	PartAfter    = "" // what follows the last line
)

// Note is what stands around a line for the reader only.
type Note struct {
	Line   int      // of the file, from 1; 0 when it was not read from one
	Above  []string // comment lines with their #, and blank lines as ""
	Beside string   // comment at the end of the line, with its #
}

// Client is a client and what it runs, one operation after another.
type Client struct {
	Name  string
	Calls []Call
}

// The operations of jobs: clients that are nobody's purchase, and whose answers
// are ok, failed or unknown. What they do is the scheme's.
const (
	Load      model.Op = "load"      // the article is put on sale again, with Qty units
	Reconcile model.Op = "reconcile" // the counter is brought in line with the orders; Qty units were put on sale
)

// IsJob says whether an operation is nobody's purchase, but a job of those who run the
// sale.
func IsJob(op model.Op) bool { return op == Load || op == Reconcile }

// Call is one operation of a client.
type Call struct {
	Op  model.Op
	Qty int64 // 0 for a read and for work
	// As is the request id under which it is submitted, where that is another
	// operation's: the same request a second time. Empty: its own, see RequestID.
	As string
}

// RequestID is the id of the n-th operation of a client, n from 1.
func RequestID(client string, n int) string { return client + "." + strconv.Itoa(n) }

// Request is the id under which the n-th operation, n from 1, is submitted.
func (c Client) Request(n int) string {
	if as := c.Calls[n-1].As; as != "" {
		return as
	}
	return RequestID(c.Name, n)
}

// Label names the n-th operation, n from 1: by the client where it has only
// one, else as a.2.
func (c Client) Label(n int) string {
	if len(c.Calls) == 1 {
		return c.Name
	}
	return RequestID(c.Name, n)
}

// Client finds a client by its name.
func (s *Schedule) Client(name string) (Client, bool) {
	for _, c := range s.Clients {
		if c.Name == name {
			return c, true
		}
	}
	return Client{}, false
}

// Kind says what a step is.
type Kind string

// The kinds of step.
const (
	Command  Kind = "command"  // a client's command or statement, with the server's answer
	GoesOn   Kind = "goes on"  // a statement that was blocked goes on
	Deadlock Kind = "deadlock" // the server cancels a blocked statement
	Arrives  Kind = "arrives"  // a delayed request reaches the server
	Never    Kind = "never"    // a delayed request turns out to be lost
	Resume   Kind = "resume"   // a paused client runs again
	Submits  Kind = "submits"  // a client is given a request that another had before
	Wait     Kind = "wait"     // time passes
	Loses    Kind = "loses"    // Redis comes back without its last writes and without its scripts
	Flush    Kind = "flush"    // Redis forgets its scripts

	Restarts    Kind = "restarts"      // a server dies between two commands and comes back
	FallsBehind Kind = "falls behind"  // the link to Redis's replica breaks
	Refuses     Kind = "refuses"       // the primary notices, and refuses writes
	TakesOver   Kind = "takes over"    // the replica becomes the primary, as it was when its link broke
	Freezes     Kind = "freezes"       // Redis stands still
	Thaws       Kind = "goes on again" // Redis runs again
	Evicts      Kind = "evicts"        // Redis drops a key
	Expires     Kind = "expires"       // the keys that were loaded reach the end of their time to live
	Loads       Kind = "loads"         // a job begins to load the article again
	Reconciles  Kind = "reconciles"    // a job begins to reconcile
)

// Server says whom a step talks to.
type Server string

// The servers.
const (
	Redis Server = "redis"
	SQL   Server = "sql"
)

// Step is one line between the two ---.
type Step struct {
	Kind   Kind
	Client string // empty for Wait and what befalls a server
	Server Server // of Command, GoesOn, Deadlock, Arrives, Never and Restarts
	// Conn is which of the connections that the operation has opened to the
	// database, from 0. Go's pool gives a transaction one of its own.
	Conn int
	// Words are a Redis command as RedisWords writes it; Statement is SQL as
	// StatementText writes it. GoesOn and Deadlock have neither: a connection
	// has one blocked statement.
	Words     []string
	Statement string
	// Reply is the server's. None when it never saw the step, and when a
	// statement goes on whose client is gone.
	Reply Reply
	// Fault at the step: after the reply for ClientCrash and ClientPause (of
	// either length: the waits tell), instead of it for RequestLost,
	// RequestDelayed and RedisFreeze (the client gives up a command that a server
	// that stands still will execute later), on its way back for ReplyLost and
	// CommitReplyLost.
	Fault faults.Kind
	// Unread: the client of a ClientPause stops before it has read the reply, and
	// reads it when it resumes.
	Unread  bool
	Wait    time.Duration
	Lost    int            // writes that Redis forgets, commits that PostgreSQL forgets
	Setting faults.Setting // of the server that Restarts
	Key     string         // that Evicts drops
	Request string         // that Submits gives to the client

	// What follows before anything else happens.
	Stock   *Stock   // the counter, where it changed; nil: as it was
	Answers []Answer // operations that end
	Wakes   []string // clients, other than the one that acts, that get a message they are subscribed to

	Note Note
}

// Stock is the value of a counter; not Known when it cannot be read.
type Stock struct {
	Known bool
	Units int64
}

func (s Stock) String() string {
	if !s.Known {
		return "unknown"
	}
	return strconv.FormatInt(s.Units, 10)
}

// Unfinished is the outcome of an operation that neither has its answer nor
// has lost its client when the schedule ends.
const Unfinished model.Outcome = "unfinished"

// Answer is what an operation was answered.
type Answer struct {
	Client  string
	N       int // operation of the client, from 1
	Outcome model.Outcome
	Value   int64 // units that a read answered
}

// Violation is a law that the execution breaks.
type Violation struct {
	Property model.Property
	Amount   int64 // in the unit of model.PropertyInfo
}

// LineError says which line of a file is bad, and why.
type LineError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *LineError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Reason) }

// faultWords are the faults of a step as a schedule writes them.
var faultWords = map[faults.Kind]string{
	faults.ClientCrash:     "crash",
	faults.ClientPause:     "pause",
	faults.RequestLost:     "request-lost",
	faults.ReplyLost:       "reply-lost",
	faults.RequestDelayed:  "request-delayed",
	faults.CommitReplyLost: "commit-reply-lost",
	faults.RedisFreeze:     "gives-up",
}

// unreadPause is the word for a pause with Unread.
const unreadPause = "pause-unread"

// faultWord is the fault of a step as a schedule writes it.
func (st *Step) faultWord() string {
	if st.Unread {
		return unreadPause
	}
	return faultWords[st.Fault]
}

func faultByWord(word string) (faults.Kind, bool) {
	for kind, w := range faultWords {
		if w == word {
			return kind, true
		}
	}
	return "", false
}

// Faults lists the kinds of fault that happen in the schedule, in the order of
// faults.Kinds; faults.None alone when nothing goes wrong.
func (s *Schedule) Faults() []faults.Kind {
	happen := map[faults.Kind]bool{}
	for _, st := range s.Steps {
		happen[st.FaultKind()] = true
	}
	var kinds []faults.Kind
	for _, k := range faults.Kinds() {
		if happen[k.ID] && k.ID != faults.None {
			kinds = append(kinds, k.ID)
		}
	}
	if len(kinds) == 0 {
		return []faults.Kind{faults.None}
	}
	return kinds
}

// FaultKind is the fault that a step is or has, faults.None for most.
func (st *Step) FaultKind() faults.Kind {
	switch {
	case st.Fault != "":
		return st.Fault
	case st.Kind == Loses:
		return faults.StoreLoses
	case st.Kind == Flush:
		return faults.ScriptFlush
	case st.Kind == Submits:
		return faults.DuplicateRequest
	case st.Kind == Restarts && st.Server == SQL:
		return faults.PostgresRestart
	case st.Kind == Restarts:
		return faults.RedisRestart
	case st.Kind == FallsBehind || st.Kind == Refuses || st.Kind == TakesOver:
		return faults.RedisFailover
	case st.Kind == Freezes || st.Kind == Thaws:
		return faults.RedisFreeze
	case st.Kind == Evicts:
		return faults.KeyEvicted
	case st.Kind == Expires:
		return faults.KeyExpired
	case st.Kind == Loads:
		return faults.StockReloaded
	case st.Kind == Reconciles:
		return faults.ReconcileOverlap
	}
	return faults.None
}

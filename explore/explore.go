package explore

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"time"

	"stockproof/engines/redisstore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// Config is one search.
type Config struct {
	Entry    schemes.Entry
	Workload faults.Workload
	// Clients is how many take part; 0 means the workload's. More repeat its
	// programs from the first. Who does the background role of a scheme that has
	// one takes part beside them and is not counted.
	Clients int
	Stock   int64  // units on sale; 0 means the workload's
	Retries string // "off", or "default" for go-redis's own three retries
	Faults  []faults.Kind
	// Settings of the servers that Faults hit. A kind is placed with those of its
	// settings that are named; where none is, with all of them, except that a
	// failover is an asynchronous one. faults.Wait sets Times.Replicas to 1.
	Settings  []faults.Setting
	MaxFaults int // how many may happen in one execution, kinds mixed
	// Times are, where none is set, Lease 300 ms, Wait 100 ms, Retry 100 ms, and
	// Record 300 ms where the scheme keeps records that end.
	Times schemes.Config
	// MemoryLimit in bytes for what the search stores; 0 means 2 GiB. Running
	// out makes every verdict that is not violated inconclusive.
	MemoryLimit int64
	Engine      string // "miniredis" or "redis"
	// NoSymmetry treats clients with the same program as different ones. It is
	// slower and must not change anything else.
	NoSymmetry bool
	// Until ends the search at its first witness of this property, which is the
	// one a search of everything finds; empty searches everything.
	Until model.Property
	// Progress is called now and then while the search runs.
	Progress func(Progress)

	mutant mutant
}

// Progress is how far a search is.
type Progress struct {
	States, Transitions uint64
	Waiting             uint64 // states met and not yet looked at
	Elapsed             time.Duration
}

// Status of a verdict.
type Status string

// The statuses. Inconclusive is never a pass.
const (
	Violated     Status = "violated"
	Holds        Status = "holds"
	Inconclusive Status = "inconclusive"
	NotEvaluated Status = "not-evaluated"
)

// Verdict on one property.
type Verdict struct {
	Status  Status
	Amount  int64    // the worst amount in any execution, in the unit of the property
	Detail  string   // of the worst execution; or why there is no verdict
	Witness *Witness // a shortest execution that breaks the property; nil unless violated
}

// Result of a search.
type Result struct {
	Verdicts map[model.Property]Verdict
	// Executions is the exact number of executions covered: paths of the full
	// system, in which clients are told apart. nil when the search did not end.
	Executions          *big.Int
	States, Transitions uint64
	// A placement is a client's program, operation, n-th step and a kind of
	// fault. It has fired when it made its difference: a pause outlasted a
	// jump of time or another client's step, a delayed command arrived.
	PlacementsEnumerated, PlacementsFired int
	Exhaustive                            bool   // every execution within the bounds was covered
	Why                                   string // when not exhaustive
	Symmetry                              bool
	Extractions                           int64 // runs of the scheme's own code
	StoreQuestions                        int   // commands asked of the engine
	Elapsed                               time.Duration
	Bytes                                 int64
}

// ErrConfig is a search that makes no sense or is larger than fits.
var ErrConfig = errors.New("explore")

// DefaultTimes are the scaled times of explore: waiting loops multiply states,
// and only the order of deadlines matters.
var DefaultTimes = schemes.Config{Lease: 300 * time.Millisecond, Wait: 100 * time.Millisecond, Retry: 100 * time.Millisecond}

func (c *Config) complete() error {
	if c.Entry.Scheme == nil {
		return fmt.Errorf("%w: no scheme", ErrConfig)
	}
	if len(c.Workload.Clients) == 0 {
		return fmt.Errorf("%w: workload %q has no clients", ErrConfig, c.Workload.Name)
	}
	c.NoSymmetry = c.NoSymmetry || c.Entry.ByName
	if c.Clients == 0 {
		c.Clients = len(c.Workload.Clients)
	}
	if c.Stock == 0 {
		c.Stock = c.Workload.Stock
	}
	if c.Times == (schemes.Config{}) {
		c.Times = DefaultTimes
		if _, records := c.Entry.Scheme.(schemes.Recorder); records {
			c.Times.Record = DefaultTimes.Lease
		}
	}
	if c.MemoryLimit == 0 {
		c.MemoryLimit = 2 << 30
	}
	if c.Retries == "" {
		c.Retries = "off"
	}
	if _, known := c.Until.Info(); c.Until != "" && !known {
		return fmt.Errorf("%w: no property %q", ErrConfig, c.Until)
	}
	if c.Retries != "off" && c.Retries != "default" {
		return fmt.Errorf("%w: retries %q, want off or default", ErrConfig, c.Retries)
	}
	if slices.Contains(c.placesOf(faults.RedisFailover), faults.Wait) {
		if !c.Entry.Waits {
			return fmt.Errorf("%w: %s does not wait for replicas", ErrConfig, c.Entry.Scheme.Name())
		}
		c.Times.Replicas = 1
	}
	n := len(c.company()) + extras(*c)
	for _, f := range c.Faults {
		if f != faults.None && kindIndex(f) == 0 {
			return fmt.Errorf("%w: fault %s is not placed in explore", ErrConfig, f)
		}
	}
	if n > maxLocals || c.Clients < 1 {
		return fmt.Errorf("%w: %d clients, resubmissions and jobs, the most is %d", ErrConfig, n, maxLocals)
	}
	if c.MaxFaults < 0 || c.MaxFaults > 8 {
		return fmt.Errorf("%w: %d faults, want 0 to 8", ErrConfig, c.MaxFaults)
	}
	for _, p := range c.Workload.Clients {
		if len(p) < 1 || len(p) > maxOps {
			return fmt.Errorf("%w: a client with %d operations, want 1 to %d", ErrConfig, len(p), maxOps)
		}
	}
	return nil
}

// company are the programs of those who take part: the clients, and who does
// the scheme's background role unless a program of the workload does. Call it
// after Clients is set.
func (c *Config) company() [][]faults.Call {
	load := faults.Workload{}
	for i := range c.Clients {
		load.Clients = append(load.Clients, c.Workload.Clients[i%len(c.Workload.Clients)])
	}
	if schemes.Works(c.Entry.Scheme) {
		load = load.WithWork()
	}
	return load.Clients
}

func (c *Config) maxRetries() int {
	if c.Retries == "off" {
		return -1
	}
	return 0 // go-redis: three
}

// Run searches one configuration.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	lab := NewLab()
	defer lab.Close()
	return lab.Run(ctx, cfg)
}

func openEngine(name string) (redisstore.Engine, error) {
	switch name {
	case "", "miniredis":
		return redisstore.NewMini()
	case "redis":
		return redisstore.StartServer()
	}
	return nil, fmt.Errorf("%w: engine %q, want miniredis or redis", ErrConfig, name)
}

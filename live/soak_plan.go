package live

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// SoakConfig is a soak: sale after sale of one scheme, with many clients and random
// faults. Everything that is drawn is drawn from Seed and from where it is
// used (sale, client, operation), so it does not depend on who was faster: the same
// configuration plans the same operations and faults. Which of them the machine
// comes to in Duration, and in which order steps meet, is not planned.
type SoakConfig struct {
	Entry   schemes.Entry
	Retries string // of go-redis: "off" or "default"
	Clients int    // client processes at the same time
	// PerSale is how many operations each client makes in one sale. Between two
	// sales nothing is in flight and no lease is left: there a sale is judged.
	PerSale     int
	Duration    time.Duration
	Rate        float64       // operations a second, of all clients together; 0: as fast as they can
	Kinds       []faults.Kind // of SoakKinds; empty: no faults
	FaultRate   float64       // which part of the operations is hit, from 0 to 1
	RestockRate float64       // which part of the operations puts units back
	Stock       int64         // units of a sale
	MaxQty      int64         // a buyer wants 1 to MaxQty units
	Seed        uint64
	// Dir is where histories are written while they are recorded, one a sale;
	// empty writes none.
	Dir string
	// Progress is called now and then, from one goroutine.
	Progress func(*SoakResult)
}

// SoakKinds lists the faults that a soak draws.
func SoakKinds() []faults.Kind {
	return slices.DeleteFunc(Kinds(), func(k faults.Kind) bool { return k == faults.None })
}

// Planned is an operation of a soak.
type Planned struct {
	Call  faults.Call
	At    time.Duration // since its sale began; it begins later when the client is not free
	Fault faults.Kind   // faults.None for most
	Step  int           // of the operation, from 1, that the fault is placed on
	Pause time.Duration // how long a client-pause or client-pause-short lasts
}

func (p Planned) String() string {
	text := fmt.Sprintf("%s %s %d", p.At.Round(time.Millisecond), p.Call.Op, p.Call.Qty)
	if p.Fault != faults.None {
		text += fmt.Sprintf(" ! %s at step %d", p.Fault, p.Step)
	}
	if p.Pause > 0 {
		text += fmt.Sprintf(" for %s", p.Pause)
	}
	return text
}

// Plan is what a client does in a sale, both counted from 0. steps is how many
// steps an operation has that nothing goes wrong with; one that makes fewer
// does not come to a fault that is placed later.
func (c SoakConfig) Plan(sale, client, steps int) []Planned {
	plan := make([]Planned, c.PerSale)
	for i := range plan {
		r := rand.New(rand.NewPCG(c.Seed, uint64(sale)<<32|uint64(client)<<16|uint64(i)))
		p := Planned{Call: faults.Call{Op: model.Deduct, Qty: 1 + r.Int64N(c.MaxQty)}, Fault: faults.None}
		// Every number is drawn, needed or not, so that one setting does not
		// change what another draws.
		restock, hit, kind, step, jitter := r.Float64(), r.Float64(), r.IntN(1<<20), r.IntN(1<<20), r.Float64()
		if restock < c.RestockRate {
			p.Call.Op = model.Restock
		}
		if c.Rate > 0 {
			each := float64(c.Clients) / c.Rate * float64(time.Second)
			p.At = time.Duration((float64(i) + jitter) * each)
		}
		if len(c.Kinds) > 0 && hit < c.FaultRate {
			p.Fault, p.Step = c.Kinds[kind%len(c.Kinds)], 1+step%steps
			switch p.Fault {
			case faults.ClientPause:
				p.Pause = 2*c.times().Lease + shortPause // others get the lock and do something with it
			case faults.ClientPauseShort:
				p.Pause = shortPause
			}
		}
		plan[i] = p
	}
	return plan
}

// shortPause is shorter than any lease, and long enough for others to make many steps.
const shortPause = 40 * time.Millisecond

// times are those of a run with such faults: leases that can be waited for where a
// fault leaves one behind.
func (c SoakConfig) times() schemes.Config {
	worst := faults.None
	for _, k := range c.Kinds {
		if k != faults.ClientPauseShort {
			worst = k
		}
	}
	return Case{Entry: c.Entry, Placement: faults.Placement{Kind: worst}}.times()
}

// check says what is wrong with a configuration.
func (c SoakConfig) check() error {
	_, restocks := c.Entry.Scheme.(schemes.Restocker)
	switch {
	case c.Clients < 1 || c.PerSale < 1 || c.Stock < 1 || c.MaxQty < 1 || c.Duration <= 0:
		return fmt.Errorf("soak: clients, operations, stock, quantity and duration must be more than 0")
	case c.Clients > maxSoakClients:
		return fmt.Errorf("soak: %d clients, the most is %d", c.Clients, maxSoakClients)
	case c.Rate < 0 || c.FaultRate < 0 || c.FaultRate > 1 || c.RestockRate < 0 || c.RestockRate > 1:
		return fmt.Errorf("soak: a rate is out of range")
	case c.RestockRate > 0 && !restocks:
		return fmt.Errorf("soak: scheme %s has no restock", c.Entry.Scheme.Name())
	}
	for _, k := range c.Kinds {
		if !slices.Contains(SoakKinds(), k) {
			return fmt.Errorf("soak: fault %s is not drawn", k)
		}
	}
	return nil
}

// maxSoakClients bounds the processes of a soak: each has its proxies and its
// connections, of which the database has 100.
const maxSoakClients = 64

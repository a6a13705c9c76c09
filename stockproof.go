// Package stockproof judges a stock-deduction scheme of your own inside of your
// own tests: [Verify] covers every interleaving and every placement of a fault
// within bounds, with the scheme's real code, or runs it on real Redis and
// PostgreSQL, and fails the test for each law that does not stand as declared.
//
// A scheme is ordinary code on *redis.Client and *sql.DB. It must be
// deterministic: what it does may depend on replies, not on a random number or a
// wall clock; see docs/go-api.md, which also says what stays compatible.
package stockproof

import (
	"context"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// Scheme is what is judged. Optional are further methods: [Restocker], without
// which the workload restock is left out, and [Auditor], which settles unknown
// outcomes of live runs and is needed for order-mismatch.
//
// Deduct answers [Sold], [SoldOut], [Busy], [Failed] or [Unknown]. [Failed] is for
// deductions that were not and will never be applied; in doubt it is [Unknown].
type Scheme interface {
	// Name identifies the scheme: lower-case letters, digits and -, @, . and _.
	Name() string
	// Load puts units of a SKU on sale, and loads scripts.
	Load(ctx context.Context, env Env, sku string, units int64) error
	// Deduct is one buyer's purchase.
	Deduct(ctx context.Context, env Env, req Request) (Outcome, error)
	// Read is the counter, in units. The laws of conservation rest on it.
	Read(ctx context.Context, env Env, sku string) (int64, error)
}

type (
	// Env is what a client process has: ordinary clients, nothing in between.
	Env = schemes.Env
	// Request is one buyer's wish, with an id of its own.
	Request = schemes.Request
	// Config holds the times of locks; explore sets short ones.
	Config = schemes.Config
	// Restocker puts units back on sale.
	Restocker = schemes.Restocker
	// Auditor lists durable orders by request id.
	Auditor = schemes.Auditor
	// Leaser names the keys whose expiry ends a lease.
	Leaser = schemes.Leaser
	// Worker is a scheme with a background role.
	Worker = schemes.Worker
	// Order is a durable promise to a buyer.
	Order = model.Order
	// Outcome is what an operation was answered.
	Outcome = model.Outcome
	// Property is a law that a scheme keeps or breaks.
	Property = model.Property
	// Fault is a kind of fault.
	Fault = faults.Kind
	// Weakness is a set of laws that a scheme is known to break.
	Weakness = schemes.Weakness
)

// Outcomes.
const (
	Sold    = model.Sold
	SoldOut = model.SoldOut
	Busy    = model.Busy
	Failed  = model.Failed
	OK      = model.OK
	Unknown = model.Unknown
)

// Properties.
const (
	Oversell          = model.Oversell
	NegativeTransient = model.NegativeTransient
	NegativePermanent = model.NegativePermanent
	LostUnits         = model.LostUnits
	PhantomUnits      = model.PhantomUnits
	DoubleDeduct      = model.DoubleDeduct
	DoubleSale        = model.DoubleSale
	OrderMismatch     = model.OrderMismatch
	FalseSoldOut      = model.FalseSoldOut
	NonLinearizable   = model.NonLinearizable
	Unsold            = model.Unsold
	Stuck             = model.Stuck
)

// Faults.
const (
	None             = faults.None
	ClientCrash      = faults.ClientCrash
	ClientPause      = faults.ClientPause
	ClientPauseShort = faults.ClientPauseShort // live only
	RequestLost      = faults.RequestLost
	ReplyLost        = faults.ReplyLost
	RequestDelayed   = faults.RequestDelayed   // explore only
	DuplicateRequest = faults.DuplicateRequest // explore only
	CommitReplyLost  = faults.CommitReplyLost
	StoreLoses       = faults.StoreLoses // explore only
	ScriptFlush      = faults.ScriptFlush
	RedisRestart     = faults.RedisRestart
	RedisFailover    = faults.RedisFailover
	RedisFreeze      = faults.RedisFreeze
	KeyEvicted       = faults.KeyEvicted
	KeyExpired       = faults.KeyExpired
	PostgresRestart  = faults.PostgresRestart
	StockReloaded    = faults.StockReloaded
)

// Faults lists every kind; see docs/server-faults.md for those of servers.
func Faults() []Fault {
	var all []Fault
	for _, k := range faults.Kinds() {
		all = append(all, k.ID)
	}
	return all
}

// ClientFaults lists those of clients and of the wire, and [None]: what Verify
// places when nothing is said.
func ClientFaults() []Fault {
	var some []Fault
	for _, kind := range Faults() {
		if !faults.HitsServer(kind) {
			some = append(some, kind)
		}
	}
	return some
}

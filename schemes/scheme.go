// Package schemes holds the stock-deduction schemes under test, one file
// each. A scheme is ordinary application code on *redis.Client and *sql.DB:
// it must not know whether it runs against real servers or inside explore.
package schemes

import (
	"context"
	"database/sql"
	"time"

	"github.com/redis/go-redis/v9"

	"stockproof/model"
)

// Request is one buyer's wish.
type Request struct {
	SKU   string
	Qty   int64  // units, at least 1
	ID    string // unique for each submission a buyer means as one purchase
	Buyer string
}

// Config holds the times a scheme may be tuned with. A zero value means the
// scheme's published setting.
type Config struct {
	Lease time.Duration // how long a lock lives without renewal
	Wait  time.Duration // how long an operation waits for a lock
	Retry time.Duration // longest sleep between two attempts to take a lock
	// Replicas is how many replicas have to acknowledge a deduction before it is
	// answered sold. 0: none, the answer does not wait. Only schemes that are
	// marked so heed it, see Entry.Waits.
	Replicas int
	// Record is how long the record of a request is kept that makes its
	// repetition harmless; Forever for as long as there is a sale.
	Record time.Duration
}

// Forever is a Config.Record without an end.
const Forever time.Duration = -1

// Env is what a client process has: ordinary clients, nothing in between.
type Env struct {
	Redis  *redis.Client
	DB     *sql.DB // nil when the scheme uses no SQL
	Client string  // unique name of the client process; the lock holder id
	Config Config
}

// Scheme is a way to deduct stock.
//
// Deduct answers Sold, SoldOut, Busy, Failed or Unknown; see model.Outcome.
// The outcome is what the buyer may rely on, also when err is not nil: err
// then says why. Failed is returned only where the code can argue that the
// deduction was not and will never be applied; in doubt it is Unknown.
type Scheme interface {
	Name() string
	Deduct(ctx context.Context, env Env, req Request) (model.Outcome, error)
}

// Loader puts a SKU on sale: it stores the initial units and loads scripts.
// Every scheme of this package is one.
type Loader interface {
	Load(ctx context.Context, env Env, sku string, units int64) error
}

// Restocker puts units back on sale after a cancel or a payment timeout.
// It answers OK, Busy, Failed or Unknown.
type Restocker interface {
	Restock(ctx context.Context, env Env, req Request) (model.Outcome, error)
}

// Reader answers how many units are on sale, as the counter says.
type Reader interface {
	Read(ctx context.Context, env Env, sku string) (int64, error)
}

// Auditor lists the durable orders of a SKU by request id. Only schemes that
// write orders can be audited; it is what settles an unknown outcome.
type Auditor interface {
	Orders(ctx context.Context, env Env, sku string) ([]model.Order, error)
}

// Reconciler brings the counter in line with the durable orders, as a job does
// from time to time while the sale goes on. units is what the article went on
// sale with; what was put back since is not known to the job.
type Reconciler interface {
	Reconcile(ctx context.Context, env Env, sku string, units int64) error
}

// Recorder is a scheme that keeps a record of each request for a time only; with
// Config.Record it can be told another.
type Recorder interface {
	RecordLife() time.Duration // as published
}

// Worker is a scheme with a background role: a consumer, a relay, a sweeper, a
// reconciliation job. A process beside the buyers' runs it, in rounds.
//
// Work does one round and answers whether it left something to do for a later
// round, such as a reservation whose time is not yet over. A round may end
// anywhere (a crash), and the next one, in whatever process, has to make do with
// what it finds in the stores. An error is a round that did not come to its end.
type Worker interface {
	Work(ctx context.Context, env Env, sku string) (left bool, err error)
}

// Works says whether a scheme has a background role.
func Works(s Scheme) bool {
	_, ok := s.(Worker)
	return ok
}

// Stores says which servers a scheme talks to.
type Stores struct {
	Redis bool
	SQL   bool
}

// Leaser names the keys whose expiry ends a lease a client may have left
// behind; a run is at rest only when none of them exists any more. A name that
// ends in * stands for all keys that begin so.
type Leaser interface {
	LeaseKeys(sku string) []string
}

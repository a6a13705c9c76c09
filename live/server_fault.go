package live

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"stockproof/faults"
	"stockproof/live/wire"
	"stockproof/schemes"
)

// serverFault lets one thing go wrong with a server in one run, on servers of the
// run's own, and proves that it did. The run goes on only when it has taken
// effect, and is judged only when the servers have recovered.
//
// A fault that cannot be proved, a restart that lost nothing for example, has not
// fired; that is no error.
type serverFault struct {
	p    faults.Placement
	sham bool
	sku  string
	// load puts the article on sale, in an environment of the observer's.
	load   func(context.Context, schemes.Env) error
	now    func() schemes.Env
	dsn    string     // of the database
	reload chan error // its second answer, or that of the job; nil until it was started
	// reconcile runs the scheme's job likewise, held before it writes.
	reconcile func(context.Context, schemes.Env) error
	held      *held
	redis     *ownRedis     // nil where the shared one will do
	pg        *ownPostgres  // likewise
	gone      chan struct{} // closed: a frozen server gets what was sent at once

	loaded []string // keys that loading made
	before ledger   // of the database, before the step under way

	// acting is held while a server is frozen or thawed: that may take longer than
	// the client whose step it is has patience.
	acting sync.Mutex

	mu     sync.Mutex
	struck bool // the placement was reached
	frozen bool
	proved bool
	proof  string // or why not
	// vacuous: there was nothing to take, which is a doubt and more: it was looked at.
	vacuous bool
}

// ofServers are the kinds that need a serverFault, and whether each needs a Redis
// or a PostgreSQL of the run's own.
var ofServers = map[faults.Kind]struct{ redis, postgres bool }{
	faults.RedisRestart:    {redis: true},
	faults.RedisFailover:   {redis: true},
	faults.RedisFreeze:     {redis: true},
	faults.ScriptFlush:     {redis: true},
	faults.KeyEvicted:      {redis: true},
	faults.KeyExpired:      {redis: true},
	faults.PostgresRestart: {postgres: true},
	faults.StockReloaded:   {},

	faults.ReconcileOverlap: {},
}

// startServerFault prepares the servers for the fault of a case; nil when it is
// none of a server. What it returns is to be ended also with an error.
func (w *World) startServerFault(ctx context.Context, c Case, sku string) (*serverFault, error) {
	needs, ok := ofServers[c.Placement.Kind]
	if !ok {
		return nil, nil
	}
	f := &serverFault{p: c.Placement, sham: c.Sham, sku: sku, gone: make(chan struct{})}
	close(f.gone)
	var err error
	if needs.redis {
		loss := Snapshot // keeps nothing unless it is told to
		switch {
		case f.p.Kind == faults.RedisFailover:
			loss = StaleReplica
		case f.p.Setting == faults.AOFEverySec, f.p.Setting == faults.AOFAlways:
			loss = AOFTail
		}
		f.redis, err = w.startOwnRedis(ctx, loss)
	}
	if needs.postgres {
		f.pg, err = w.startOwnPostgres(ctx, f.p.Setting == faults.SyncCommitOff)
	}
	return f, err
}

// end hands the servers back; they are kept when they are in order.
func (f *serverFault) end(w *World, inOrder bool) {
	if f.redis != nil {
		w.giveBack(context.Background(), f.redis, inOrder)
	}
	if f.pg != nil && inOrder {
		w.givePostgresBack(f.pg)
	} else if f.pg != nil {
		_ = f.pg.close() // it ends with the set at the latest
	}
}

// env puts the observer in front of the run's own servers.
func (f *serverFault) env(env schemes.Env) schemes.Env {
	if f == nil {
		return env
	}
	if f.redis != nil {
		env.Redis = f.redis.client
	}
	if f.pg != nil {
		env.DB = f.pg.db
	}
	return env
}

// onSale is called when the article has been loaded.
func (f *serverFault) onSale(ctx context.Context) error {
	if f == nil {
		return nil
	}
	if f.pg != nil {
		return f.pg.persist(ctx) // what a crash takes is of the sale
	}
	if f.redis == nil {
		return nil
	}
	now, err := f.redis.look(ctx)
	for name := range now.keys {
		f.loaded = append(f.loaded, name)
	}
	if err == nil && f.p.Setting == faults.Snapshot {
		err = f.redis.keep(ctx)
	}
	return err
}

// comes is asked before a step goes to its server, which nobody else's does
// meanwhile.
func (f *serverFault) comes(ctx context.Context, s wire.Step, here bool) (wire.RequestAction, error) {
	if f == nil {
		return wire.Forward, nil
	}
	if here && f.p.Kind == faults.RedisFreeze {
		return wire.Detach(f.gone), f.freeze(ctx)
	}
	if f.standsStill() {
		if s.Server == wire.Redis {
			// The client gives up at once; the kernel keeps the command for the server.
			return wire.Detach(f.gone), nil
		}
		return wire.Forward, nil
	}
	if here && f.p.Kind == faults.RedisFailover {
		if err := f.fallBehind(ctx); err != nil {
			return wire.Forward, err
		}
	}
	var err error
	switch {
	case f.redis != nil:
		err = f.redis.before(ctx, -1)
	case f.pg != nil:
		f.before, err = f.pg.look(ctx, f.sku)
	}
	return wire.Forward, err
}

// came is told that a step was executed, and says whether it changed what the
// servers that may be hit hold.
func (f *serverFault) came(ctx context.Context) (wrote bool, err error) {
	switch {
	case f == nil || f.standsStill():
	case f.redis != nil:
		n := len(f.redis.writes)
		err = f.redis.after(ctx)
		wrote = len(f.redis.writes) > n
	case f.pg != nil:
		var now ledger
		now, err = f.pg.look(ctx, f.sku)
		wrote = !now.equal(f.before)
	}
	return wrote, err
}

// strike makes the fault happen, right after the step at its placement.
func (f *serverFault) strike(ctx context.Context) (err error) {
	f.mu.Lock()
	f.struck = true
	f.mu.Unlock()
	switch f.p.Kind {
	case faults.RedisRestart:
		err = f.restartRedis(ctx)
	case faults.RedisFailover:
		switch f.p.Setting {
		case faults.MinReplicas:
			err = f.redis.refuseWrites(ctx)
		case faults.Async:
			err = f.takeOver(ctx)
		}
	case faults.ScriptFlush:
		err = f.flushScripts(ctx)
	case faults.KeyEvicted:
		err = f.evict(ctx)
	case faults.KeyExpired:
		err = f.expire(ctx)
	case faults.PostgresRestart:
		err = f.crashPostgres(ctx)
	case faults.StockReloaded:
		err = f.loadAgain(ctx)
	case faults.ReconcileOverlap:
		err = f.overlap(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.p, err)
	}
	return nil
}

// over is called when the placement's client is done: what the fault began ends.
func (f *serverFault) over(ctx context.Context) (err error) {
	if f == nil {
		return nil
	}
	f.acting.Lock()
	defer f.acting.Unlock()
	switch {
	case f.standsStill():
		err = f.thaw(ctx)
	case f.held != nil:
		err = f.awaitOverlap(ctx)
	case f.reload != nil:
		err = f.awaitReload(ctx)
	case f.p.Kind == faults.RedisFailover && f.p.Setting != faults.Async && f.hasStruck():
		err = f.takeOver(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", f.p, err)
	}
	return nil
}

// recovered proves that the servers serve as before, before the run is judged.
func (f *serverFault) recovered(ctx context.Context) error {
	if f == nil {
		return nil
	}
	if f.standsStill() {
		return fmt.Errorf("%s: redis still stands still", f.p)
	}
	if f.redis != nil {
		const mark = "stockproof:recovered"
		if err := errors.Join(f.redis.client.Set(ctx, mark, 1, 0).Err(), f.redis.client.Del(ctx, mark).Err()); err != nil {
			return fmt.Errorf("%s: redis has not recovered: %w", f.p, err)
		}
	}
	if f.pg != nil {
		if err := f.pg.persist(ctx); err != nil { // it writes, too
			return fmt.Errorf("%s: postgres has not recovered: %w", f.p, err)
		}
	}
	return nil
}

func (f *serverFault) prove(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proved, f.proof = true, fmt.Sprintf(format, args...)
}

func (f *serverFault) doubt(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.proved, f.proof = false, fmt.Sprintf(format, args...)
}

// nothing is a doubt where there is nothing that the fault takes.
func (f *serverFault) nothing(format string, args ...any) {
	f.doubt(format, args...)
	f.mu.Lock()
	f.vacuous = !f.sham
	f.mu.Unlock()
}

// fired says whether the fault is proved to have taken effect, and by what, or
// why not.
func (f *serverFault) fired() (bool, string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.proof == "" {
		return false, "the placement was not reached"
	}
	return f.proved, f.proof
}

func (f *serverFault) standsStill() bool {
	if f == nil {
		return false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.frozen
}

func (f *serverFault) hasStruck() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.struck
}

// crashPostgres ends the database without a checkpoint and starts it again.
func (f *serverFault) crashPostgres(ctx context.Context) error {
	was, err := f.pg.look(ctx, f.sku)
	if err != nil {
		return err
	}
	if f.sham {
		err = f.pg.persist(ctx)
	}
	if err = errors.Join(err, f.pg.crash(ctx)); err != nil {
		return err
	}
	is, err := f.pg.look(ctx, f.sku)
	if err != nil {
		return err
	}
	switch lost := !was.equal(is); {
	case lost && f.pg.asynchronous:
		f.prove("postgres holds %v and held %v", is, was)
	case lost:
		return errors.New("postgres lost a commit that it had acknowledged with synchronous_commit on")
	case f.pg.asynchronous:
		f.doubt("postgres restarted and lost nothing")
	default:
		f.prove("another postgres answers, and it has every commit")
	}
	return nil
}

// hitsPostgres says whether the database goes down in this run.
func (f *serverFault) hitsPostgres() bool { return f != nil && f.pg != nil }

// isCommit says whether a command is a COMMIT.
func isCommit(command string) bool { return strings.EqualFold(command, "commit") }

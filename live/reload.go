package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// loadAgain runs the preload a second time. Where a client's transaction holds the
// row it waits for that, as any other statement: then it has begun, and ends when
// the client is done.
func (f *serverFault) loadAgain(ctx context.Context) error {
	env := f.now()
	f.reload = make(chan error, 1)
	if env.DB == nil {
		f.reload <- f.load(ctx, env)
		return f.awaitReload(ctx)
	}
	observer := env.DB
	own, pid, err := oneConnection(ctx, f.dsn)
	if err != nil {
		return err
	}
	env.DB = own
	go func() {
		err := f.load(ctx, env)
		f.reload <- errors.Join(err, own.Close())
	}()
	ticker := time.NewTicker(askBlockedEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-f.reload:
			f.reload <- err
			return f.awaitReload(ctx)
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		waits, err := waitsForRow(ctx, observer, pid)
		if err != nil || waits {
			return err
		}
	}
}

func (f *serverFault) awaitReload(ctx context.Context) error {
	select {
	case err := <-f.reload:
		f.reload = nil
		if err == nil {
			f.prove("loaded again")
		}
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// oneConnection opens a pool of one connection and says which server process
// serves it.
func oneConnection(ctx context.Context, dsn string) (db *sql.DB, pid uint32, err error) {
	if db, err = sql.Open("pgx", dsn); err != nil {
		return nil, 0, err
	}
	db.SetMaxOpenConns(1)
	if err := db.QueryRowContext(ctx, `SELECT pg_backend_pid()`).Scan(&pid); err != nil {
		return nil, 0, errors.Join(fmt.Errorf("reach postgres: %w", err), db.Close())
	}
	return db, pid, nil
}

// waitsForRow says whether PostgreSQL says that a statement waits for another
// transaction.
func waitsForRow(ctx context.Context, db *sql.DB, backend uint32) (waits bool, err error) {
	err = db.QueryRowContext(ctx,
		`SELECT count(*) > 0 FROM pg_stat_get_activity($1) WHERE wait_event IN ('transactionid', 'tuple')`, backend).Scan(&waits)
	if err != nil {
		err = fmt.Errorf("ask who waits: %w", err)
	}
	return waits, err
}

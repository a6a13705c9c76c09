package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"stockproof/live/servers"
	"stockproof/schemes"
)

// ownPostgres is a PostgreSQL for one run at a time.
type ownPostgres struct {
	asynchronous bool // synchronous_commit is off
	server       *servers.Postgres
	db           *sql.DB
}

// startOwnPostgres hands out a PostgreSQL that may be crashed: one that another run
// is done with, or a new one.
func (w *World) startOwnPostgres(ctx context.Context, asynchronous bool) (*ownPostgres, error) {
	w.spareMu.Lock()
	for i, o := range w.sparePG {
		if o.asynchronous == asynchronous {
			w.sparePG = slices.Delete(w.sparePG, i, i+1)
			w.spareMu.Unlock()
			return o, nil
		}
	}
	w.spareMu.Unlock()
	server, err := w.Servers.StartPostgres(ctx, servers.PostgresOptions{Asynchronous: asynchronous})
	if err != nil {
		return nil, err
	}
	o := &ownPostgres{asynchronous: asynchronous, server: server}
	if err = o.connect(); err == nil {
		_, err = o.db.ExecContext(ctx, schemes.Schema())
	}
	if err == nil {
		err = o.persist(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create tables: %w", err), o.close())
	}
	return o, nil
}

// givePostgresBack keeps it for the next run.
func (w *World) givePostgresBack(o *ownPostgres) {
	w.spareMu.Lock()
	w.sparePG = append(w.sparePG, o)
	w.spareMu.Unlock()
}

func (o *ownPostgres) close() error {
	var err error
	if o.db != nil {
		err = o.db.Close()
	}
	return errors.Join(err, o.server.Close())
}

// connect opens a pool; after a crash the connections of the one before lead
// nowhere.
func (o *ownPostgres) connect() (err error) {
	if o.db != nil {
		_ = o.db.Close()
	}
	o.db, err = sql.Open("pgx", o.server.DSN())
	return err
}

// persist writes to disk whatever has been committed.
func (o *ownPostgres) persist(ctx context.Context) error {
	if _, err := o.db.ExecContext(ctx, "CHECKPOINT"); err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	return nil
}

// ledger is what PostgreSQL has committed about an article: its rows in the tables of
// the schemes, each behind the table's name.
type ledger []string

func (l ledger) equal(other ledger) bool { return slices.Equal(l, other) }

// look reads what has been committed about an article.
func (o *ownPostgres) look(ctx context.Context, sku string) (l ledger, err error) {
	rows, err := o.db.QueryContext(ctx, `SELECT 'goods' || goods::text FROM goods WHERE sku = $1
		UNION ALL SELECT 'orders' || orders::text FROM orders WHERE sku = $1
		UNION ALL SELECT 'outbox' || outbox::text FROM outbox WHERE sku = $1
		UNION ALL SELECT 'shipments' || shipments::text FROM shipments WHERE sku = $1 ORDER BY 1`, sku)
	if err != nil {
		return nil, fmt.Errorf("look at postgres: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var row string
		if err := rows.Scan(&row); err != nil {
			return nil, fmt.Errorf("look at postgres: %w", err)
		}
		l = append(l, row)
	}
	return l, rows.Err()
}

// crash crashes the server and proves that it is another one which answers
// afterwards.
func (o *ownPostgres) crash(ctx context.Context) error {
	was, err := o.started(ctx)
	if err != nil {
		return err
	}
	if err := o.server.Crash(ctx); err != nil {
		return err
	}
	if err := o.connect(); err != nil {
		return err
	}
	is, err := o.started(ctx)
	if err == nil && is == was {
		err = errors.New("postgres was to crash, and the same server answers")
	}
	return err
}

func (o *ownPostgres) started(ctx context.Context) (when string, err error) {
	if err = o.db.QueryRowContext(ctx, `SELECT pg_postmaster_start_time()::text`).Scan(&when); err != nil {
		err = fmt.Errorf("look at postgres: %w", err)
	}
	return when, err
}

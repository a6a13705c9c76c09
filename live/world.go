// Package live runs sales on real servers: client processes behind wire-aware
// proxies, a fault at an exact step, and the laws evaluated at rest.
package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"stockproof/live/clients"
	"stockproof/live/servers"
	"stockproof/schemes"
)

// World is a set of running servers and client processes. Runs in it may go on
// at the same time: each has a SKU, and so keys, rows and channels, of its own.
type World struct {
	Servers *servers.Set

	pool   *clients.Pool
	turns  *semaphore.Weighted // a run has one except while it waits for a lease
	direct schemes.Env         // past the proxies: load, observe, audit, probe
	runs   atomic.Int64
	prefix string

	hitting  *semaphore.Weighted // runs with a Redis of their own have one
	crashing *semaphore.Weighted // runs with a PostgreSQL of their own have one
	losing   *semaphore.Weighted // replays with a Redis of their own have one
	spareMu  sync.Mutex
	spare    []*ownRedis // for replays, and for runs with a fault of the server
	sparePG  []*ownPostgres

	seatsMu     sync.Mutex
	seats       map[seatKey][]*seat // idle ones of subjects
	ended       []*seat             // that ended while they were idle
	seatsClosed bool
}

// readyClients is how many idle client processes are kept: as many as the runs
// that go on at once and those that wait for a lease need, so that only a killed one
// has to be replaced.
const readyClients = 3 * (atOnce + waiting)

// losingAtOnce is how many replays with a Redis of their own go on at the same
// time: a restart that takes long is time that passes for the clients.
const losingAtOnce = 3

// hittingAtOnce and crashingAtOnce are the same for runs with a Redis or a
// PostgreSQL of their own: each has to be started first, and then serves one run
// after another.
const (
	hittingAtOnce  = 4
	crashingAtOnce = 2
)

// Open starts the servers of a backend and a few client processes.
func Open(ctx context.Context, backend servers.Backend) (*World, error) {
	set, err := servers.Start(ctx, backend)
	if err != nil {
		return nil, err
	}
	w := &World{Servers: set, seats: map[seatKey][]*seat{}, turns: semaphore.NewWeighted(atOnce), losing: semaphore.NewWeighted(losingAtOnce),
		hitting: semaphore.NewWeighted(hittingAtOnce), crashing: semaphore.NewWeighted(crashingAtOnce), prefix: fmt.Sprintf("%x", os.Getpid())}
	w.direct, err = clients.Connect(clients.Setup{
		Client: "stockproof-observer", RedisAddr: set.RedisAddr, DSN: set.PostgresDSN(""), Retries: "off",
	})
	if err != nil {
		return nil, errors.Join(err, w.Close())
	}
	// Every run observes after each step; a login costs more than a look.
	w.direct.DB.SetMaxIdleConns(3 * atOnce)
	if _, err := w.direct.DB.ExecContext(ctx, schemes.Schema()); err != nil {
		return nil, errors.Join(fmt.Errorf("create tables: %w", err), w.Close())
	}
	w.pool = clients.NewPool(set.Reaper, readyClients)
	return w, nil
}

// Close ends everything Open started. It may be called more than once.
func (w *World) Close() error {
	if w.pool != nil {
		w.pool.Close()
	}
	clients.Disconnect(w.direct)
	return errors.Join(w.closeSeats(), w.closeSpares(), w.Servers.Close())
}

// env is the observer's environment for one scheme's run.
func (w *World) env(times schemes.Config) schemes.Env {
	env := w.direct
	env.Config = times
	return env
}

func (w *World) db() *sql.DB { return w.direct.DB }

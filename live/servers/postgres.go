package servers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/jackc/pgx/v5"
	"github.com/testcontainers/testcontainers-go"
)

// Postgres is one more PostgreSQL server beside that of a set, for who wants to
// crash it. It is not watched; Set.Close ends it like everything else.
type Postgres struct {
	// Addr is 127.0.0.1:port, also after a restart.
	Addr string

	password string
	host     postgresHost
}

// postgresHost is what a backend does for a PostgreSQL.
type postgresHost interface {
	// crash ends the server without a checkpoint and without writing what it has
	// only in memory (pg_ctl stop -m immediate), and starts it again.
	crash(ctx context.Context) error
	stop(ctx context.Context) error
}

// Settings under which PostgreSQL may forget an acknowledged commit: it answers
// COMMIT before the record is on disk, and what writes records out in the
// background sleeps as long as it may. Everything else is as in a set.
var forgetful = map[string]string{
	"synchronous_commit": "off",
	"wal_writer_delay":   "10s", // the longest there is; 200ms is the default
}

// PostgresOptions adapts a Postgres.
type PostgresOptions struct {
	// Asynchronous: synchronous_commit is off.
	Asynchronous bool
}

func (o PostgresOptions) settings() map[string]string {
	if o.Asynchronous {
		return maps.Clone(forgetful)
	}
	return nil
}

// StartPostgres starts another PostgreSQL on the set's backend and waits until
// it answers. User and password are those of the set.
func (s *Set) StartPostgres(ctx context.Context, opt PostgresOptions) (*Postgres, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("another postgres did not start within %v", startLimit))
	defer cancel()
	pg := &Postgres{password: s.Password}
	var err error
	var port int
	pg.host, port, err = s.host.hostPostgres(ctx, Options{PostgresSettings: opt.settings()})
	pg.Addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err == nil {
		err = pg.answers(ctx)
	}
	if err == nil {
		err = cheapenLogin(ctx, pg.DSN(), s.Password)
	}
	if err != nil && pg.host != nil {
		err = errors.Join(err, pg.Close())
	}
	if err != nil {
		return nil, fmt.Errorf("another postgres: %w", err)
	}
	return pg, nil
}

// DSN is its address as pgx takes it.
func (pg *Postgres) DSN() string {
	u := url.URL{Scheme: "postgres", User: url.UserPassword(postgresUser, pg.password), Host: pg.Addr,
		Path: "/" + postgresDB, RawQuery: "sslmode=disable"}
	return u.String()
}

// Crash ends the server at once, as pg_ctl stop -m immediate does: what it has
// only in memory is gone. It starts it again, which recovers from the log, and
// waits until it answers.
func (pg *Postgres) Crash(ctx context.Context) error {
	if err := pg.host.crash(ctx); err != nil {
		return fmt.Errorf("crash postgres: %w", err)
	}
	return pg.answers(ctx)
}

// Close ends the server.
func (pg *Postgres) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), startLimit)
	defer cancel()
	return pg.host.stop(ctx)
}

func (pg *Postgres) answers(ctx context.Context) error {
	return until(ctx, func() error {
		c, err := pgx.Connect(ctx, pg.DSN())
		if err == nil {
			err = errors.Join(c.Ping(ctx), c.Close(ctx))
		}
		return err
	})
}

// postgresProcess is a PostgreSQL as a process of this machine.
type postgresProcess struct {
	p      *processes
	launch func() (*child, error)
	port   int
	data   string
	child  *child
}

func (p *processes) hostPostgres(ctx context.Context, opt Options) (postgresHost, int, error) {
	p.mu.Lock()
	p.more++
	name := fmt.Sprintf("postgres-%d", p.more)
	p.mu.Unlock()
	h := &postgresProcess{p: p}
	who, dir, err := p.initPostgres(ctx, name)
	if err != nil {
		return nil, 0, err
	}
	h.data = filepath.Join(dir, "data")
	_, err = p.onFreePort(ctx, func(port int) (*child, error) {
		h.port = port
		h.launch = func() (*child, error) { return p.launchPostgres(who, dir, port, opt) }
		h.child, err = h.launch()
		return h.child, err
	}, p.found.postgres)
	if err == nil {
		err = p.noteMemory(h.child.server, h.data)
	}
	return h, h.port, err
}

func (h *postgresProcess) crash(ctx context.Context) error {
	if err := h.p.end(h.child); err != nil {
		return err
	}
	for try := 1; ; try++ {
		c, err := h.launch()
		if err != nil {
			return err
		}
		h.child = c
		if err = c.awaitReady(ctx); err == nil {
			return h.p.noteMemory(c.server, h.data)
		}
		if try == portTries || ctx.Err() != nil || !c.foundTaken(h.port) {
			return err
		}
		if err := h.p.end(c); err != nil {
			return err
		}
	}
}

func (h *postgresProcess) stop(context.Context) error { return h.p.end(h.child) }

// launchPostgres starts postgres on a data folder. SIGQUIT is the immediate
// shutdown: no checkpoint, but shared memory is given back.
func (p *processes) launchPostgres(who *account, dir string, port int, opt Options) (*child, error) {
	args := append([]string{"-D", filepath.Join(dir, "data"), "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", // nothing else to connect to
		"-c", "dynamic_shared_memory_type=mmap", // in the folder, so it goes with it
	}, opt.postgresArgs()...)
	return p.launch("postgres", postgresReady(), syscall.SIGQUIT, who, dir, p.found.postgres, args...)
}

// postgresContainer is a PostgreSQL in a container.
type postgresContainer struct{ ctr testcontainers.Container }

// postgresAgainScript runs what postgresScript runs as a child, again and again;
// the file go says when.
const postgresAgainScript = `while :; do
(` + postgresScript + `)
: > /tmp/down
until [ -e /tmp/go ]; do sleep 0.01; done
rm -f /tmp/go /tmp/down
done`

func (c *containers) hostPostgres(ctx context.Context, opt Options) (postgresHost, int, error) {
	port, err := freePort()
	if err != nil {
		return nil, 0, err
	}
	args := append([]string{"-c", "listen_addresses=*", "-c", fmt.Sprintf("port=%d", port)}, opt.postgresArgs()...)
	ctr, err := c.another(ctx, c.found.postgres, postgresAgainScript, args, c.postgresEnv(), []int{port}, postgresData)
	if ctr == nil {
		return nil, 0, err
	}
	return &postgresContainer{ctr}, port, err
}

func (h *postgresContainer) crash(ctx context.Context) error {
	return visit(ctx, h.ctr, `kill -QUIT "$(head -n 1 "$PGDATA/postmaster.pid")"; until [ -e /tmp/down ]; do sleep 0.01; done; : > /tmp/go`)
}

func (h *postgresContainer) stop(ctx context.Context) error {
	return testcontainers.TerminateContainer(h.ctr, testcontainers.StopContext(ctx), testcontainers.StopTimeout(0))
}

package servers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"sync"
	"time"

	"stockproof/live/reaper"
)

// startLimit bounds a start once the images are present, in a busy machine.
const startLimit = 2 * time.Minute

// pullLimit bounds a start that has to pull images first.
const pullLimit = 10 * time.Minute

// Label is the key of the label on containers and volumes of ours; its value is the session.
const Label = "stockproof.session"

// User and database every PostgreSQL server has; User is a superuser.
const (
	postgresUser = "stockproof"
	postgresDB   = "postgres"
)

// Set is a Redis and a PostgreSQL server, for the exclusive use of one run.
type Set struct {
	Backend Backend
	// Session is in the name of every folder and the label of every container of this set.
	Session string
	// RedisAddr and PostgresAddr are 127.0.0.1:port.
	RedisAddr, PostgresAddr string
	// Password of the PostgreSQL superuser, random.
	Password string
	// Versions for the report.
	Versions Versions
	// Took is the time from the call of Start to the answer of both servers.
	Took time.Duration
	// Reaper takes further things to clean up: client processes, folders.
	Reaper *reaper.Reaper

	host   runner
	redis  *server
	pg     *server
	died   chan error
	watch  sync.WaitGroup
	first  sync.Once
	deadMu sync.Mutex
	dead   error

	closeOnce sync.Once
	closeErr  error
}

// Versions says what answered.
type Versions struct {
	Redis    string `json:"redis"`    // redis_version of INFO
	Postgres string `json:"postgres"` // server_version of SHOW
	// RedisFrom and PostgresFrom are the image or the program it came from.
	RedisFrom    string `json:"redis_from"`
	PostgresFrom string `json:"postgres_from"`
}

// runner is what a backend does.
type runner interface {
	// startRedis and startPostgres return the server as soon as something runs,
	// also with an error, and its address 127.0.0.1:port and where it came from.
	startRedis(ctx context.Context) (started, error)
	startPostgres(ctx context.Context) (started, error)
	// hostNodes starts a group of Redis programs beside the first server; what it
	// returns is to be stopped also when there is an error, unless it is nil.
	hostNodes(ctx context.Context, ports []int, confs []nodeConf) (nodeHost, error)
	// hostPostgres starts one more PostgreSQL, in the same way.
	hostPostgres(ctx context.Context, opt Options) (host postgresHost, port int, err error)
	// processorTime is what all processes of a server have used.
	processorTime(ctx context.Context, srv *server) (time.Duration, error)
	// stop ends everything, half-started servers too, and removes what it left. It
	// returns when all of it is gone.
	stop() error
}

type started struct {
	server *server
	addr   string
	from   string
	pid    int // 0 when unknown
}

// Start starts both servers on the backend given, with default options. It fails
// with *NoBackendError when that backend cannot be used here. On any error
// everything it had begun is ended before it returns.
func Start(ctx context.Context, b Backend) (*Set, error) { return StartWith(ctx, b, Options{}) }

// StartWith is Start with options.
func StartWith(ctx context.Context, b Backend, opt Options) (*Set, error) {
	begin := time.Now()
	if !validPersistence(opt.Persistence) {
		return nil, &BadValueError{Name: "persistence", Value: string(opt.Persistence),
			Allowed: []string{string(NoPersistence), string(RDBOnly), string(AOFEverySec), string(AOFAlways)}}
	}
	if opt.Session == "" {
		opt.Session = randomName()
	} else if !validSession(opt.Session) {
		return nil, &BadValueError{Name: "session", Value: opt.Session, Allowed: []string{"up to 64 letters, digits, '-', '_', '.'"}}
	}
	s := &Set{Backend: b, Session: opt.Session, Password: randomName(), died: make(chan error, 1)}
	if err := s.start(ctx, opt); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.Took = time.Since(begin)
	return s, nil
}

func (s *Set) start(ctx context.Context, opt Options) error {
	limit := startLimit
	var prepare func(*Set) (runner, error)
	switch s.Backend {
	case Process:
		found, err := findPrograms(opt.Path)
		if err != nil {
			return &NoBackendError{Reasons: []Reason{{Process, err}}}
		}
		prepare = func(s *Set) (runner, error) { return newProcesses(s, found, opt) }
	case Container:
		found, err := findImages(ctx, opt, os.Getenv)
		if err != nil {
			return &NoBackendError{Reasons: []Reason{{Container, err}}}
		}
		if found.pull {
			limit = pullLimit
		}
		prepare = func(s *Set) (runner, error) { return newContainers(s, found, opt) }
	default:
		return badBackend(string(s.Backend))
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("the servers did not start within %v", limit))
	defer cancel()

	var err error
	if s.Reaper, err = reaper.Start(); err != nil {
		return err
	}
	if s.host, err = prepare(s); err != nil {
		return err
	}
	// At the same time; if one fails the other is not worth waiting for.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	var redisErr, pgErr error
	wg.Go(func() {
		if redisErr = s.runRedis(ctx); redisErr != nil {
			stop()
		}
	})
	wg.Go(func() {
		if pgErr = s.runPostgres(ctx); pgErr != nil {
			stop()
		}
	})
	wg.Wait()
	// The one that was merely called off has nothing to say.
	if redisErr != nil && pgErr != nil {
		if errors.Is(redisErr, context.Canceled) {
			redisErr = nil
		} else if errors.Is(pgErr, context.Canceled) {
			pgErr = nil
		}
	}
	return errors.Join(redisErr, pgErr)
}

func (s *Set) runRedis(ctx context.Context) error {
	got, err := s.host.startRedis(ctx)
	if s.follow(&s.redis, got.server); err != nil {
		return fmt.Errorf("run redis: %w", err)
	}
	s.RedisAddr = got.addr
	s.Versions.RedisFrom = got.from
	err = await(ctx, got.server, func(ctx context.Context) (err error) {
		s.Versions.Redis, err = checkRedis(ctx, got.addr, got.pid)
		return err
	})
	if err != nil {
		return fmt.Errorf("run redis: %w", err)
	}
	return nil
}

func (s *Set) runPostgres(ctx context.Context) error {
	got, err := s.host.startPostgres(ctx)
	if s.follow(&s.pg, got.server); err != nil {
		return fmt.Errorf("run postgres: %w", err)
	}
	s.PostgresAddr = got.addr
	s.Versions.PostgresFrom = got.from
	err = await(ctx, got.server, func(ctx context.Context) (err error) {
		s.Versions.Postgres, err = checkPostgres(ctx, s.PostgresDSN(""))
		return err
	})
	if err == nil {
		err = cheapenLogin(ctx, s.PostgresDSN(""), s.Password)
	}
	if err != nil {
		return fmt.Errorf("run postgres: %w", err)
	}
	return nil
}

// follow watches a server so that its death is noticed.
func (s *Set) follow(into **server, srv *server) {
	*into = srv
	if srv == nil {
		return
	}
	s.watch.Go(func() {
		<-srv.ended
		if err := srv.died(); err != nil {
			s.first.Do(func() {
				s.deadMu.Lock()
				s.dead = err
				s.deadMu.Unlock()
				s.died <- err
			})
		}
	})
}

// PostgresDSN is the address of a database as pgx takes it; an empty name means the
// one that always exists.
func (s *Set) PostgresDSN(database string) string { return s.dsn(s.PostgresAddr, database) }

// PostgresDSNAt is the database that always exists, as somebody at another address
// hands it on: a proxy.
func (s *Set) PostgresDSNAt(addr string) string { return s.dsn(addr, "") }

func (s *Set) dsn(addr, database string) string {
	if database == "" {
		database = postgresDB
	}
	u := url.URL{Scheme: "postgres", User: url.UserPassword(postgresUser, s.Password), Host: addr,
		Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

// Alive returns nil, or a *DiedError when a server has ended by itself. It does not
// ask the servers: a server that is merely slow or stopped is alive.
func (s *Set) Alive() error {
	s.deadMu.Lock()
	defer s.deadMu.Unlock()
	if s.dead != nil {
		return s.dead
	}
	for _, srv := range []*server{s.redis, s.pg} {
		if srv != nil {
			if err := srv.died(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Died delivers the first death nobody asked for, once; it is closed by Close.
func (s *Set) Died() <-chan error { return s.died }

// Close ends both servers and removes everything that belongs to the set, whatever
// is still registered with its Reaper included. It is idempotent. An error means
// that something was left behind, and says what.
func (s *Set) Close() error {
	s.closeOnce.Do(func() {
		var errs []error
		for _, srv := range []*server{s.redis, s.pg} {
			if srv != nil {
				srv.stopping.Store(true)
			}
		}
		if s.host != nil {
			errs = append(errs, s.host.stop())
		}
		s.watch.Wait()
		close(s.died)
		if s.Reaper != nil {
			errs = append(errs, s.Reaper.Close())
		}
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}

// randomName is 128 random bits in hexadecimal.
func randomName() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

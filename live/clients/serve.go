package clients

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver named "pgx"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// serve is the client process: it reads one order a line from standard input
// and answers each with one line, until its parent closes the pipe or dies.
func serve() int {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	var s session
	defer s.close()
	for in.Scan() {
		var o order
		if err := json.Unmarshal(in.Bytes(), &o); err != nil {
			fmt.Fprintf(os.Stderr, "client: bad order: %v\n", err)
			return 2
		}
		var a Answer
		switch {
		case o.Setup != nil:
			if err := s.configure(*o.Setup); err != nil {
				a.Err = err.Error()
			}
		case o.Op != nil:
			a = s.run(*o.Op)
		}
		if err := out.Encode(a); err != nil {
			return 1 // the parent is gone
		}
	}
	return 0
}

// session is the scheme a client process serves, with its connections.
type session struct {
	scheme schemes.Scheme
	env    schemes.Env
}

func (s *session) configure(setup Setup) error {
	s.close()
	entry, err := schemes.ByName(setup.Scheme)
	if err != nil {
		return err
	}
	env, err := Connect(setup)
	if err != nil {
		return err
	}
	s.scheme, s.env = entry.Scheme, env
	return warm(env)
}

// warm opens a connection to each server, as a process that has been serving
// for a while has one. Its pings are no steps.
func warm(env schemes.Env) error {
	if env.Redis != nil {
		if err := env.Redis.Ping(context.Background()).Err(); err != nil {
			return fmt.Errorf("reach redis: %w", err)
		}
	}
	if env.DB != nil {
		if err := env.DB.PingContext(context.Background()); err != nil {
			return fmt.Errorf("reach postgres: %w", err)
		}
	}
	return nil
}

// Connect opens the clients a scheme runs on, as its application would.
func Connect(setup Setup) (schemes.Env, error) {
	env := schemes.Env{Client: setup.Client, Config: setup.Times}
	if setup.RedisAddr != "" {
		opts := &redis.Options{
			Addr: setup.RedisAddr, ReadTimeout: setup.Patience, PoolTimeout: setup.Patience, PoolSize: setup.Pool,
			// Hand-over notices of a managed service: nothing a sale needs.
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		if setup.Retries == "off" {
			opts.MaxRetries = -1 // 0 would mean the default, 3
		}
		env.Redis = redis.NewClient(opts)
	}
	if setup.DSN != "" {
		db, err := sql.Open("pgx", setup.DSN)
		if err != nil {
			return env, err
		}
		db.SetMaxOpenConns(setup.Pool) // 0: no limit
		env.DB = db
	}
	return env, nil
}

// Disconnect closes what Connect opened.
func Disconnect(env schemes.Env) {
	if env.Redis != nil {
		env.Redis.Close()
	}
	if env.DB != nil {
		env.DB.Close()
	}
}

func (s *session) close() {
	Disconnect(s.env)
	s.env = schemes.Env{}
}

func (s *session) run(op Operation) (a Answer) {
	defer func() {
		if r := recover(); r != nil {
			// A scheme that panics has not said what it did.
			fmt.Fprintf(os.Stderr, "client: scheme %s panicked: %v\n%s", s.scheme.Name(), r, debug.Stack())
			a = Answer{Outcome: model.Unknown, Err: fmt.Sprintf("panic: %v", r)}
		}
	}()
	return Do(context.Background(), s.scheme, s.env, op)
}

// Do runs one operation of a scheme.
func Do(ctx context.Context, scheme schemes.Scheme, env schemes.Env, op Operation) Answer {
	req := schemes.Request{SKU: op.SKU, Qty: op.Qty, ID: op.Request, Buyer: op.Buyer}
	var a Answer
	var err error
	switch op.Op {
	case model.Deduct:
		a.Outcome, err = scheme.Deduct(ctx, env, req)
	case model.Restock:
		if r, ok := scheme.(schemes.Restocker); ok {
			a.Outcome, err = r.Restock(ctx, env, req)
		} else {
			a.Outcome, err = model.Failed, fmt.Errorf("scheme %s has no restock", scheme.Name())
		}
	case model.Read:
		if r, ok := scheme.(schemes.Reader); ok {
			a.Outcome = model.Value
			if a.Value, err = r.Read(ctx, env, op.SKU); err != nil {
				a.Outcome = model.Failed // a read changes nothing
			}
		} else {
			a.Outcome, err = model.Failed, fmt.Errorf("scheme %s has no read", scheme.Name())
		}
	case model.Work:
		if w, ok := scheme.(schemes.Worker); ok {
			a.Outcome = model.OK
			if _, err = w.Work(ctx, env, op.SKU); err != nil {
				a.Outcome = model.Failed // the round did not come to its end
			}
		} else {
			a.Outcome, err = model.Failed, fmt.Errorf("scheme %s has no background role", scheme.Name())
		}
	case schedule.Load:
		if l, ok := scheme.(schemes.Loader); ok {
			a.Outcome = model.OK
			if err = l.Load(ctx, env, op.SKU, op.Qty); err != nil {
				a.Outcome = model.Failed
			}
		} else {
			a.Outcome, err = model.Failed, fmt.Errorf("scheme %s has no load", scheme.Name())
		}
	case schedule.Reconcile:
		if r, ok := scheme.(schemes.Reconciler); ok {
			a.Outcome = model.OK
			if err = r.Reconcile(ctx, env, op.SKU, op.Qty); err != nil {
				a.Outcome = model.Unknown
			}
		} else {
			a.Outcome, err = model.Failed, fmt.Errorf("scheme %s has no reconciliation", scheme.Name())
		}
	default:
		return Answer{Outcome: model.Failed, Err: fmt.Sprintf("unknown operation %q", op.Op)}
	}
	if !IsAnswer(op.Op, a.Outcome) {
		// A word that is no answer, the empty one beside an error for example,
		// decides nothing.
		err = errors.Join(err, fmt.Errorf("scheme %s answered %q to a %s", scheme.Name(), string(a.Outcome), op.Op))
		a.Outcome = model.Unknown
	}
	if err != nil {
		a.Err = err.Error()
	}
	return a
}

// IsAnswer says whether an outcome is an answer to an operation.
func IsAnswer(op model.Op, outcome model.Outcome) bool {
	return slices.Contains(answersTo[op], outcome)
}

// answersTo lists what a scheme may answer.
var answersTo = map[model.Op][]model.Outcome{
	model.Deduct:  {model.Sold, model.SoldOut, model.Busy, model.Failed, model.Unknown},
	model.Restock: {model.OK, model.Busy, model.Failed, model.Unknown},
	model.Read:    {model.Value, model.Failed},
	model.Work:    {model.OK, model.Failed},

	schedule.Load:      {model.OK, model.Failed},
	schedule.Reconcile: {model.OK, model.Failed, model.Unknown},
}

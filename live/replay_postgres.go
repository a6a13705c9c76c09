package live

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live/wire"
)

// restartsDatabase says whether PostgreSQL restarts at a line, and so has to be one
// of the replay's own.
func restartsDatabase(st *schedule.Step) bool {
	return st.Kind == schedule.Restarts && st.Server == schedule.SQL
}

func needsOwnPostgres(s *schedule.Schedule) bool {
	return slices.ContainsFunc(s.Steps, func(st schedule.Step) bool { return restartsDatabase(&st) })
}

// setUpDatabase is whether the PostgreSQL of a replay answers commits before they
// are on disk, and why what a schedule asks is impossible.
func setUpDatabase(s *schedule.Schedule) (asynchronous bool, reasons []string) {
	var first faults.Setting
	for i := range s.Steps {
		st := &s.Steps[i]
		switch {
		case !restartsDatabase(st):
		case first == "":
			first = st.Setting
		case first != st.Setting:
			reasons = append(reasons, fmt.Sprintf("line %d: a database set up with synchronous_commit %s cannot also have it %s", st.Note.Line, first, st.Setting))
		}
	}
	return first == faults.SyncCommitOff, reasons
}

// replayDatabase is a PostgreSQL of a replay's own, with what it has committed.
type replayDatabase struct {
	*ownPostgres
	serving atomic.Pointer[sql.DB] // for who asks meanwhile
	now     ledger
	commits []ledger // what it held before each commit
	lines   []int    // the step of each, from 0
	keepAt  int      // the step before which everything is written to disk; -1 for none
	inside  map[connection]bool
	// cut are the clients that lost a connection on which nothing was in progress:
	// explore lets those go on.
	cut map[string]int
}

// connection is one of a client's to the database, in a transaction or not.
type connection struct {
	client string
	number int
}

// keepEarlierError asks for a replay that writes to disk what was committed before a
// step: only a replay tells which steps commit.
type keepEarlierError struct{ step int }

func (e *keepEarlierError) Error() string {
	return fmt.Sprintf("what was committed before step %d has to be on disk", e.step+1)
}

// errWroteEarly: the database wrote to disk what it was to lose. What it does so with
// wakes up when it likes, every ten seconds.
var errWroteEarly = errors.New("postgres had written to disk what it was to lose")

// startDatabase gives a replay its own PostgreSQL.
func (r *replay) startDatabase(ctx context.Context) error {
	asynchronous, _ := setUpDatabase(r.s)
	pg, err := r.world.startOwnPostgres(ctx, asynchronous)
	if err != nil {
		return err
	}
	r.pg = &replayDatabase{ownPostgres: pg, keepAt: r.options.databaseKeepAt, inside: map[connection]bool{}, cut: map[string]int{}}
	r.pg.serving.Store(pg.db)
	r.env.DB = pg.db
	return nil
}

// committed notes whether a step has committed anything.
func (r *replay) committed(ctx context.Context, i int) error {
	if r.pg == nil {
		return nil
	}
	is, err := r.pg.look(ctx, r.sku)
	if err != nil {
		return err
	}
	if !is.equal(r.pg.now) {
		r.pg.commits, r.pg.lines = append(r.pg.commits, r.pg.now), append(r.pg.lines, i)
		r.pg.now = is
	}
	return nil
}

// inTransaction notes whether a client's connection is in a transaction.
func (r *replay) inTransaction(c *replayClient, f *flying, st *schedule.Step) {
	if r.pg == nil || f.step.Server != wire.Postgres {
		return
	}
	at := connection{c.spec.Name, f.step.Conn}
	switch word, _, _ := strings.Cut(strings.ToLower(st.Statement), " "); word {
	case "begin":
		r.pg.inside[at] = true
	case "commit", "rollback":
		delete(r.pg.inside, at)
	}
}

// restartDatabase crashes PostgreSQL, without the last of its commits where that is
// what the line says, and proves what it came back with. Who was connected is cut off.
func (r *replay) restartDatabase(ctx context.Context, i int) error {
	st, pg := &r.s.Steps[i], r.pg
	n := len(pg.commits)
	if st.Lost > n {
		return r.s.Diverges(i, fmt.Sprintf("%d commits to lose", st.Lost), strconv.Itoa(n))
	}
	want := pg.now
	switch kept := n - st.Lost; {
	case st.Lost == 0:
		if err := pg.persist(ctx); err != nil {
			return err
		}
	case kept > 0 && pg.keepAt != pg.lines[kept]:
		return &keepEarlierError{pg.lines[kept]}
	default:
		want = pg.commits[kept]
		pg.commits, pg.lines = pg.commits[:kept], pg.lines[:kept]
	}
	r.cutOff(i)
	pg.serving.Store(nil)
	if err := pg.crash(ctx); err != nil {
		return err
	}
	pg.serving.Store(pg.db)
	r.env.DB = pg.db
	is, err := pg.look(ctx, r.sku)
	if err != nil {
		return err
	}
	if !is.equal(want) {
		if st.Lost > 0 {
			return fmt.Errorf("%w: %v", errWroteEarly, is)
		}
		return fmt.Errorf("postgres came back with %v, not with %v", is, want)
	}
	pg.now = want
	return pg.persist(ctx)
}

// cutOff notes what a restart does to those who are connected: who had something in
// progress has lost it, and who had not is remembered.
func (r *replay) cutOff(i int) {
	r.gate.mu.Lock()
	defer r.gate.mu.Unlock()
	for _, c := range r.clients {
		for _, f := range c.late {
			if f.step.Server == wire.Postgres {
				close(f.drop)
			}
		}
		c.late = slices.DeleteFunc(c.late, func(f *flying) bool { return f.step.Server == wire.Postgres })
		c.orphans = nil
		if !c.begun || c.crashed {
			if c.op > 0 && len(c.conns) > 0 {
				r.pg.cut[c.spec.Name] = i
			}
			continue
		}
		c.touched = i
		busy := len(c.blocked) > 0
		for _, f := range r.gate.parked[c.number] {
			if f.step.Server != wire.Postgres {
				continue
			}
			if r.pg.inside[connection{c.spec.Name, f.step.Conn}] {
				busy = true
			} else {
				r.pg.cut[c.spec.Name] = i
			}
		}
		if !busy && len(c.conns) > 0 {
			r.pg.cut[c.spec.Name] = i
		}
		c.blocked = nil
	}
	clear(r.pg.inside)
}

// exceptCut turns a divergence of a client that lost an idle connection into what it
// is: a schedule that real servers cannot be made to follow.
func (r *replay) exceptCut(i int, err error) error {
	var diverged *schedule.DivergenceError
	if r.pg == nil || !errors.As(err, &diverged) {
		return err
	}
	for name, at := range r.pg.cut {
		if name == r.s.Steps[i].Client || at == i {
			return &CannotError{Reasons: []string{fmt.Sprintf("line %d: the restart ends every connection, also one of client %s on which nothing was in progress: %v",
				r.s.Steps[at].Note.Line, name, err)}}
		}
	}
	return err
}

package live

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"stockproof/faults"
	"stockproof/histories"
	"stockproof/live/clients"
	"stockproof/live/wire"
	"stockproof/model"
	"stockproof/schemes"
)

// atOnce is how many runs of a world go on at the same time, not counting those
// that wait for a lease to end: more would only stand in each other's way, and a
// client that is slow looks like one that was stopped.
const atOnce = 8

// waiting is how many runs of a group there are at the same time, those that wait
// for a lease included.
const waiting = 24

// subjectsAtOnce is the same for a scheme that is a program of its own: nobody knows
// what its processes cost, and each run has three.
const subjectsAtOnce = 4

// HistoryPath is where the history of a run is written, below the output folder.
func (c Case) HistoryPath() string { return filepath.Join("histories", c.Name()+".jsonl") }

// PicturePath is where porcupine's picture of it is written, about 32 kB.
func (c Case) PicturePath() string { return filepath.Join("pictures", c.Name()+".html") }

// Observe lists the command of each step each client makes in a fault-free run
// in turn.
func (w *World) Observe(ctx context.Context, e schemes.Entry, load faults.Workload, retries string) ([][]string, error) {
	run, err := w.Run(ctx, Case{Entry: e, Workload: load, Retries: retries, Placement: faults.Placement{Kind: faults.None, Order: faults.InTurn}})
	if err != nil {
		return nil, fmt.Errorf("observe the steps of %s: %w", e.Scheme.Name(), err)
	}
	return commands(run.Case.Workload, run.Steps), nil
}

func commands(load faults.Workload, log []Step) [][]string {
	steps := make([][]string, len(load.Clients))
	for _, s := range log {
		steps[s.Client] = append(steps[s.Client], s.Name)
	}
	return steps
}

// Places enumerates the places of a fault: what faults.Plan makes of the steps of
// a fault-free run, less those where it would change nothing.
//
//   - What is to lose writes has its places from the first write on, a failover at
//     the writes themselves: it loses that one.
//   - redis-freeze: at the commands to Redis.
//   - commit-reply-lost: at COMMIT.
//   - Faults of a server that the scheme does not use have none; nor has a flush
//     where no script is loaded, reconcile-overlap of a scheme without such a job, what ends connections of a
//     scheme with MULTI, or a failover with WAIT of a scheme that does not
//     wait.
func (w *World) Places(ctx context.Context, e schemes.Entry, load faults.Workload, retries string, kind faults.Kind, setting faults.Setting) ([]faults.Placement, error) {
	nowhere := faults.Placement{Kind: faults.None, Order: faults.InTurn}
	if needs, is := ofServers[kind]; is {
		if needs.redis && !e.Stores.Redis || needs.postgres && !e.Stores.SQL || setting == faults.Wait && !e.Waits || kind == faults.ReconcileOverlap && !reconciles(e) ||
			e.Transacts && losesConnections(kind) {
			return nil, nil
		}
		nowhere.Kind, nowhere.Setting = kind, setting
	}
	run, err := w.Run(ctx, Case{Entry: e, Workload: load, Retries: retries, Placement: nowhere})
	if err != nil {
		return nil, fmt.Errorf("observe the steps of %s: %w", e.Scheme.Name(), err)
	}
	if kind == faults.ScriptFlush && !slices.ContainsFunc(run.Steps, func(s Step) bool { return strings.HasPrefix(s.Name, "EVALSHA") }) {
		return nil, nil
	}
	plan := faults.Plan(kind, commands(run.Case.Workload, run.Steps))
	wrote := false
	has := map[faults.Placement]bool{}
	for _, s := range run.Steps {
		wrote = wrote || s.Wrote
		p := faults.Placement{Kind: kind, Order: faults.InTurn, Client: s.Client, Step: s.N, At: s.Name}
		switch {
		case kind == faults.CommitReplyLost:
			has[p] = isCommit(s.Name)
		case kind == faults.RedisFreeze:
			has[p] = s.Server == wire.Redis
		case setting == faults.Wait:
			// It takes over when its client is done, and what that took back is not lost.
			has[p] = s.Wrote && took(run.Steps, s)
		case kind == faults.RedisFailover:
			has[p] = s.Wrote
		case setting == faults.Snapshot, setting == faults.AOFEverySec, setting == faults.SyncCommitOff:
			has[p] = wrote
		default:
			has[p] = true
		}
	}
	plan = slices.DeleteFunc(plan, func(p faults.Placement) bool { return kind != faults.None && !has[p] })
	for i := range plan {
		plan[i].Setting = setting
	}
	return plan, nil
}

// losesConnections says whether Redis forgets its connections with a fault. The relay
// keeps those of the clients all the same, as operators' proxies do, and a
// transaction of Redis is its connection's: what would run then nobody has sent.
func losesConnections(kind faults.Kind) bool {
	return kind == faults.RedisRestart || kind == faults.RedisFailover || kind == faults.RedisFreeze
}

// took says whether the counter is another when the client of a step is done than
// it was before the step.
func took(log []Step, s Step) bool {
	var before, after *int64
	reached := false
	for _, o := range log {
		if reached = reached || o.Client == s.Client && o.N == s.N; !reached {
			before = o.Counter
		}
		if o.Client == s.Client {
			after = o.Counter
		}
	}
	return before == nil || after == nil || *before != *after
}

// observations is how many fault-free runs tell which steps a foreign program makes:
// one that counts, draws lots or looks at a clock is not known from one.
const observations = 3

// ObserveSubject observes a program of its own several times. A first run is not
// looked at: what the stores learn once, scripts for example, is there after it.
func (w *World) ObserveSubject(ctx context.Context, e schemes.Entry, load faults.Workload, retries string) (faults.Observed, error) {
	var seen faults.Observed
	for range 1 + observations {
		steps, err := w.Observe(ctx, e, load, retries)
		if err != nil {
			return nil, err
		}
		seen = append(seen, steps)
	}
	return seen[1:], nil
}

// attempts is how often a run is made before the machine is called too slow.
const attempts = 5

// RunAll makes every run of a plan. Histories are written below dir before they
// are checked, and porcupine's picture of each after. An empty dir writes nothing.
func (w *World) RunAll(ctx context.Context, e schemes.Entry, load faults.Workload, retries string, plan []faults.Placement, dir string) ([]*Run, error) {
	runs := make([]*Run, len(plan))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(waiting)
	if _, foreign := e.Scheme.(clients.Launcher); foreign {
		group.SetLimit(subjectsAtOnce)
	}
	for i, p := range plan {
		group.Go(func() error {
			run, err := w.settledRun(ctx, Case{Entry: e, Workload: load, Retries: retries, Placement: p})
			if run != nil && dir != "" { // also a run that broke down
				err = errors.Join(err, run.History.WriteFile(filepath.Join(dir, run.Case.HistoryPath())))
			}
			if err != nil {
				return err
			}
			runs[i] = run
			if err := run.Check(dir); err != nil {
				return err
			}
			if dir != "" {
				return run.Checked.Picture(filepath.Join(dir, run.Case.PicturePath()))
			}
			return nil
		})
	}
	return runs, group.Wait()
}

// settledRun makes a run again when the machine stood still for so long that a
// lease may have ended without the fault's doing. Such a run shows nothing of
// the fault, so the last of several counts as one in which it did not fire.
func (w *World) settledRun(ctx context.Context, c Case) (run *Run, err error) {
	for range attempts {
		if run, err = w.Run(ctx, c); err != nil || !run.stalled() && (run.Fired || run.Vacuous || !c.onServer()) {
			return run, err
		}
	}
	run.Fired = false
	return run, nil
}

// stalled says whether, in a run with a short lease, somebody whom the fault
// did not hit took so long that a lease may have ended meanwhile, or who comes
// right after the fault came so late; or, with any scheme, somebody stood still
// for so long that its library gave up the reply it had not read.
func (r *Run) stalled() bool {
	if r.overslept() {
		return true
	}
	limit := r.Case.times().Lease * 2 / 3
	if _, leases := r.Case.Entry.Scheme.(schemes.Leaser); !leases || limit == 0 {
		return false
	}
	type span struct{ first, last time.Duration }
	spans := map[string]span{}
	hit, next := "", ""
	for _, s := range r.Steps {
		sp, known := spans[s.Request]
		if !known {
			sp.first = s.At
			if hit != "" && next == "" && s.Request != hit {
				next = s.Request
			}
		}
		sp.last = s.At
		spans[s.Request] = sp
		if s.Fault != "" {
			hit = s.Request
		}
	}
	for request, sp := range spans {
		if request != hit && sp.last-sp.first > limit {
			return true
		}
	}
	return r.Case.Placement.Kind != faults.ClientPause && !r.Case.onServer() && next != "" && spans[next].first-spans[hit].first > limit
}

// libraryPatience is how long go-redis waits for a reply (Options.ReadTimeout).
const libraryPatience = 3 * time.Second

// overslept says whether a client that was stopped goes on after its library's
// patience: it then sees an error where the reply lies in its connection, and
// sends the command again where that is the library's setting. That is what
// reply-lost shows, and not what a pause was placed for.
func (r *Run) overslept() bool {
	for _, m := range r.marks {
		if m.resume == 0 {
			continue
		}
		for _, st := range r.Steps {
			if st.Client == m.resume-1 && st.Fault != "" && st.At <= m.at && m.at-st.At > libraryPatience {
				return true
			}
		}
	}
	return false
}

// Check settles what can be settled, evaluates the laws, and asks the checkers.
// That they disagree is an error, and the history is saved in dir.
func (r *Run) Check(dir string) (err error) {
	r.Settled = r.History
	if r.Rest.Orders != nil {
		r.Settled.Ops, r.Decided = model.Settle(r.History.Ops, *r.Rest.Orders, r.audited)
	}
	r.Open = 0
	for _, o := range r.Settled.Ops {
		if o.Open {
			r.Open++
		}
	}
	r.Checked, err = histories.Check(r.Settled, checkLimit, dir)
	r.Findings = append(model.Laws(r.Settled.Ops, r.Rest), r.Checked.Finding())
	return err
}

// Kinds lists the faults the live world places.
func Kinds() []faults.Kind {
	var kinds []faults.Kind
	for _, k := range faults.Kinds() {
		if k.Live {
			kinds = append(kinds, k.ID)
		}
	}
	return kinds
}

// KindsFor is Kinds for one scheme: where nothing is leased, no pause is shorter
// or longer than a lease, and one kind of pause is enough. Faults of servers are not
// placed for a program of its own: it is told once where its servers are, and one
// process serves many runs.
func KindsFor(e schemes.Entry) []faults.Kind {
	_, leases := e.Scheme.(schemes.Leaser)
	_, foreign := e.Scheme.(clients.Launcher)
	return slices.DeleteFunc(Kinds(), func(k faults.Kind) bool {
		return k == faults.ClientPauseShort && !leases || foreign && faults.HitsServer(k)
	})
}

// Group is the runs of one fault: its places, and a run for each.
type Group struct {
	Entry    schemes.Entry
	Fault    faults.Kind
	Setting  faults.Setting
	Workload faults.Workload
	Retries  string
	Plan     []faults.Placement
	Runs     []*Run
}

// dropVacuous takes out the places that turned out to be none.
func (g *Group) dropVacuous() {
	var plan []faults.Placement
	var runs []*Run
	for i, r := range g.Runs {
		if r == nil || !r.Vacuous {
			plan, runs = append(plan, g.Plan[i]), append(runs, r)
		}
	}
	g.Plan, g.Runs = plan, runs
}

// RunGroup makes the runs of a group, whose Plan and Runs it fills; dir as in
// RunAll.
func (w *World) RunGroup(ctx context.Context, g *Group, dir string) (err error) {
	if g.Plan, err = w.Places(ctx, g.Entry, g.Workload, g.Retries, g.Fault, g.Setting); err == nil {
		g.Runs, err = w.RunAll(ctx, g.Entry, g.Workload, g.Retries, g.Plan, dir)
		g.dropVacuous()
	}
	return err
}

// RetriesFor is faults.Retries for a live run of a scheme: one that does not use
// go-redis would only be run twice.
func RetriesFor(e schemes.Entry) []string {
	if !e.Stores.Redis {
		return faults.Retries()[:1]
	}
	return faults.Retries()
}

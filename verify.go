package stockproof

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"stockproof/engines/redisstore"
	"stockproof/evidence"
	"stockproof/evidence/page"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/model"
	"stockproof/schemes"
)

// Verify judges a scheme and fails the test for each verdict that is not as
// declared: a law that breaks, a declared weakness that does not show, and
// whatever could not be decided, which is no pass. A failure prints the shortest
// execution that shows it as a schedule, and where that is kept; [Replay] runs it
// again.
func Verify(t testing.TB, scheme Scheme, options ...Option) {
	t.Helper()
	v, err := Judge(t.Context(), scheme, options...)
	if v != nil {
		t.Cleanup(func() {
			if !t.Failed() {
				if err := v.discard(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range v.Unexpected() {
		t.Error(u)
	}
	t.Log(v)
}

// Verdicts is what came out about a scheme.
type Verdicts struct {
	report evidence.Report
	dir    string
	kept   bool // somebody asked for the folder
	unseen []string
}

// Dir is the folder with evidence.json, report.html, and below it the schedules of
// all witnesses and the histories of live runs.
func (v *Verdicts) Dir() string { return v.dir }

// discard removes what nobody asked to keep.
func (v *Verdicts) discard() error {
	if v.kept {
		return nil
	}
	return os.RemoveAll(v.dir)
}

// String sums up what was judged, and within which bounds.
func (v *Verdicts) String() string {
	broken, held, open, nowhere := 0, 0, 0, 0
	executions, runs := map[string]string{}, map[string]int{}
	for _, c := range v.report.Cells {
		switch c.Verdict {
		case evidence.Violated:
			broken++
		case evidence.Holds:
			held++
		case evidence.Inconclusive:
			open++
		default:
			nowhere++
		}
		group := strings.Join([]string{faults.Row(c.Fault, c.Setting), c.Workload, c.ClientRetries}, " ")
		if executions[group] = c.Executions; c.World == string(Live) {
			runs[group] = c.Runs
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d verdicts: %d violated, %d hold, %d inconclusive, %d without a place for the fault", broken+held+open+nowhere, broken, held, open, nowhere)
	for _, line := range v.report.Bounds.Lines() {
		fmt.Fprintf(&b, "\n  %s", line)
	}
	for _, line := range v.unseen {
		fmt.Fprintf(&b, "\n  %s", line)
	}
	total := 0
	for _, n := range runs {
		total += n
	}
	if total > 0 {
		fmt.Fprintf(&b, "\n  live: %d runs", total)
	}
	return b.String()
}

// Finding is a law whose verdict is not the declared one.
type Finding struct {
	Property Property
	Where    []string // the cells: world, fault, workload, retries of go-redis
	What     string
	Schedule string // the file with the shortest execution that shows it; empty where there is none
	text     string
}

// String tells the finding with its execution.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", f.Property, f.What)
	const most = 6
	for i, where := range f.Where {
		if i == most {
			fmt.Fprintf(&b, "\n  and in %d others", len(f.Where)-most)
			break
		}
		fmt.Fprintf(&b, "\n  in %s", where)
	}
	if f.Schedule != "" {
		fmt.Fprintf(&b, "\n\n%s\nkept in %s", f.text, f.Schedule)
	}
	return b.String()
}

// Unexpected lists the findings: for each property those broken without being
// declared, those declared and not seen, and those not decided.
func (v *Verdicts) Unexpected() []Finding {
	type key struct {
		p       Property
		verdict evidence.Verdict
	}
	found := map[key]*Finding{}
	var order []key
	for _, c := range v.report.Cells {
		if c.AsDeclared() {
			continue
		}
		k := key{c.Property, c.Verdict}
		f := found[k]
		if f == nil {
			f = &Finding{Property: c.Property, What: unexpected(c)}
			found[k] = f
			order = append(order, k)
		}
		f.Where = append(f.Where, fmt.Sprintf("%s, %s, workload %s, retries %s: %s", c.World, faults.Row(c.Fault, c.Setting), c.Workload, c.ClientRetries, reason(c)))
		if c.Witness == "" {
			continue
		}
		path := filepath.Join(v.dir, c.Witness)
		if text, err := os.ReadFile(path); err == nil && (f.Schedule == "" || len(text) < len(f.text)) {
			f.Schedule, f.text = path, string(text)
		}
	}
	var list []Finding
	for _, k := range order {
		list = append(list, *found[k])
	}
	return list
}

func unexpected(c evidence.Cell) string {
	switch c.Verdict {
	case evidence.Violated:
		return "broken, and promised to hold"
	case evidence.Holds, evidence.NotApplicable:
		return "declared broken, and not seen to break"
	}
	return "not decided, which is no pass"
}

func reason(c evidence.Cell) string {
	if c.Reason == "" {
		return string(c.Verdict)
	}
	return c.Reason
}

// Judge is Verify without a test. The verdicts that there are come also with an
// error, which is ErrUsage for what cannot be asked for.
func Judge(ctx context.Context, scheme Scheme, options ...Option) (*Verdicts, error) {
	p, err := newPlan(scheme, options)
	if err != nil {
		return nil, err
	}
	v := &Verdicts{dir: p.dir, kept: p.dir != ""}
	if v.kept {
		err = os.MkdirAll(v.dir, 0o777)
	} else {
		v.dir, err = os.MkdirTemp("", "stockproof-")
	}
	if err != nil {
		return nil, err
	}
	v.report.Schema = evidence.Schema
	for _, w := range p.worlds {
		if w == Explore {
			err = p.explore(ctx, &v.report, v.dir)
		} else {
			err = p.live(ctx, &v.report, v.dir)
		}
		if err != nil {
			return v, fmt.Errorf("%s: %w", w, err)
		}
	}
	evidence.Sort(v.report.Cells)
	if len(v.report.Cells) == 0 {
		return v, fmt.Errorf("%w: none of these faults is placed in these worlds", ErrUsage)
	}
	v.unseen = p.unseen(v.report.Cells)
	if err := v.write(); err != nil {
		return v, err
	}
	if !slices.ContainsFunc(v.report.Cells, func(c evidence.Cell) bool { return c.Verdict != evidence.NotApplicable }) {
		return v, fmt.Errorf("%w: nothing was judged: none of these faults has a place in this scheme, within these bounds", ErrUsage)
	}
	return v, nil
}

// unseen tells what was asked for or declared and is in none of the cells, so that
// a pass is not taken to speak about it.
func (p *plan) unseen(cells []evidence.Cell) (lines []string) {
	judged := func(k Fault) bool {
		return slices.ContainsFunc(cells, func(c evidence.Cell) bool { return c.Fault == k })
	}
	for _, k := range p.kinds {
		if !judged(k) {
			lines = append(lines, fmt.Sprintf("not judged: %s has no place in these worlds", k))
		}
	}
	for _, w := range p.entry.Guarantees.Weaknesses {
		if k, _, err := faults.ParseRow(w.Fault); err == nil && !judged(k) {
			lines = append(lines, fmt.Sprintf("not judged: the weakness declared under %s", w.Fault))
		}
	}
	return lines
}

// write leaves the evidence in the folder.
func (v *Verdicts) write() error {
	if _, err := v.report.WriteFile(v.dir); err != nil {
		return err
	}
	_, err := page.WriteFile(v.dir, v.report)
	return err
}

func (p *plan) explore(ctx context.Context, report *evidence.Report, dir string) (err error) {
	kinds := faults.Within(p.kinds, evidence.ExploreKinds())
	if len(kinds) == 0 {
		return nil
	}
	report.Bounds.AddExplore(p.bounds)
	lab := explore.NewLab()
	defer func() { err = errors.Join(err, lab.Close()) }()
	// Faults that do not break a connection give go-redis nothing to repeat.
	cells, err := evidence.FromExplore(ctx, lab, evidence.ExploreGroups([]schemes.Entry{p.entry}, kinds, p.loads, p.retries), p.bounds, dir, nil)
	report.Cells = append(report.Cells, cells...)
	return err
}

// known refuses a weakness that nothing could show.
func known(w Weakness) error {
	if _, _, err := faults.ParseRow(w.Fault); err != nil {
		return err
	}
	for _, name := range w.Workloads {
		if _, err := faults.WorkloadByName(name); err != nil {
			return err
		}
	}
	if len(w.Breaks) == 0 {
		return fmt.Errorf("weakness under %s: no property is named", w.Fault)
	}
	for _, p := range w.Breaks {
		if !slices.ContainsFunc(model.Properties(), func(i model.PropertyInfo) bool { return i.ID == p }) {
			return fmt.Errorf("weakness under %s: unknown property %q", w.Fault, p)
		}
	}
	if w.Why == "" {
		return fmt.Errorf("weakness under %s: why is missing", w.Fault)
	}
	return nil
}

// Replay runs a schedule with a scheme again, and fails the test where something
// else happens than is written: a step, a reply, the counter, an answer, or the
// laws broken at the end. In [Live] it needs [Main].
func Replay(t testing.TB, scheme Scheme, path string, options ...Option) {
	t.Helper()
	p, err := newPlan(scheme, options)
	if err != nil {
		t.Fatal(err)
	}
	s, err := schedule.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if s.Scheme != scheme.Name() {
		t.Fatalf("%s: a schedule of scheme %s, not of %s", path, s.Scheme, scheme.Name())
	}
	for _, w := range p.worlds {
		if w == Live {
			err = p.replayLive(t.Context(), s)
		} else {
			err = p.replayEmbedded(s)
		}
		if err != nil {
			t.Errorf("%s: %s: %v", path, w, err)
		}
	}
}

func (p *plan) replayEmbedded(s *schedule.Schedule) (err error) {
	engine, err := redisstore.NewMini()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	return explore.Replay(p.entry, s, engine)
}

//go:build !nolive

package evidence

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math/big"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/explore"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/model"
	"stockproof/schemes"
)

func TestACellIsAsDeclaredOnlyWhenTheVerdictIsTheDeclaredOneAndKnown(t *testing.T) {
	for _, c := range []struct {
		verdict  Verdict
		declared Declared
		want     bool
	}{
		{Holds, Promised, true},
		{Holds, Weak, false},
		{Holds, MayShow, true},
		{Violated, Promised, false},
		{Violated, Weak, true},
		{Violated, MayShow, true},
		{Inconclusive, Promised, false},
		{Inconclusive, Weak, false},
		{Inconclusive, MayShow, false},
		{NotApplicable, Promised, true},
		{NotApplicable, MayShow, true},
		{NotApplicable, Weak, false},
		{"", Promised, false},
	} {
		require.Equal(t, c.want, Cell{Verdict: c.verdict, Declared: c.declared}.AsDeclared(), "%+v", c)
	}
}

func TestTheExitStatusPutsASurpriseBeforeADoubtAndNothingLookedAtIsADoubt(t *testing.T) {
	ok := Cell{Verdict: Holds, Declared: Promised}
	surprise := Cell{Verdict: Violated, Declared: Promised}
	doubt := Cell{Verdict: Inconclusive, Declared: Promised}
	for _, c := range []struct {
		cells []Cell
		want  int
	}{
		{nil, ExitInconclusive},
		{[]Cell{ok}, ExitOK},
		{[]Cell{ok, doubt}, ExitInconclusive},
		{[]Cell{doubt, surprise, ok}, ExitBroken},
	} {
		require.Equal(t, c.want, Report{Cells: c.cells}.Exit())
	}
	require.Equal(t, ExitInconclusive, Report{Cells: []Cell{ok}, Bounds: Bounds{Incomplete: "stopped"}}.Exit())
}

// run is a live run that found what it is given.
func run(fired bool, findings ...model.Finding) *live.Run {
	lua, err := schemes.ByName("lua-hash")
	if err != nil {
		panic(err)
	}
	return &live.Run{Case: live.Case{Entry: lua, Workload: faults.Workloads()[0]}, Fired: fired, Findings: findings}
}

func unworked(r *live.Run) *live.Run {
	r.Unworked = "background role at rest: fails"
	return r
}

func luaHash(t *testing.T) schemes.Entry {
	t.Helper()
	e, err := schemes.ByName("lua-hash")
	require.NoError(t, err)
	return e
}

func cellOf(t *testing.T, cells []Cell, p model.Property) Cell {
	t.Helper()
	for _, c := range cells {
		if c.Property == p {
			return c
		}
	}
	t.Fatalf("no cell for %s", p)
	return Cell{}
}

func TestALivePropertyHoldsOnlyWhenEveryRunFiredAndKeptIt(t *testing.T) {
	kept := model.Finding{Property: model.Oversell, Evaluated: true}
	blind := model.Finding{Property: model.Oversell, Detail: "not watched"}
	broken := func(n int64) model.Finding {
		return model.Finding{Property: model.Oversell, Evaluated: true, Broken: true, Amount: n}
	}
	for _, c := range []struct {
		name       string
		enumerated int
		runs       []*live.Run
		verdict    Verdict
		amount     int64
	}{
		{"all kept", 2, []*live.Run{run(true, kept), run(true, kept)}, Holds, 0},
		{"one did not fire", 2, []*live.Run{run(true, kept), run(false, kept)}, Inconclusive, 0},
		{"one was not made", 2, []*live.Run{run(true, kept)}, Inconclusive, 0},
		{"one did not see", 2, []*live.Run{run(true, kept), run(true, blind)}, Inconclusive, 0},
		{"one's background role did not get on", 2, []*live.Run{run(true, kept), unworked(run(true, kept))}, Inconclusive, 0},
		{"broken although the role did not get on", 1, []*live.Run{unworked(run(true, broken(2)))}, Violated, 2},
		{"none was made", 1, nil, Inconclusive, 0},
		{"there was no place", 0, nil, NotApplicable, 0},
		{"the worst counts", 3, []*live.Run{run(true, broken(1)), run(true, broken(3)), run(true, kept)}, Violated, 3},
		{"broken weighs more than a doubt", 2, []*live.Run{run(true, broken(1)), run(false, kept)}, Violated, 1},
		{"broken without the fault proves nothing about it", 1, []*live.Run{run(false, broken(1))}, Inconclusive, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			plan := func(n int) []faults.Placement { return make([]faults.Placement, n) }
			cells := FromLive(&live.Group{Entry: luaHash(t), Fault: faults.ClientCrash, Workload: faults.Workloads()[0], Retries: "off",
				Plan: plan(c.enumerated), Runs: c.runs})
			got := cellOf(t, cells, model.Oversell)
			require.Equal(t, c.verdict, got.Verdict, got.Reason)
			require.Equal(t, c.amount, got.Amount)
		})
	}
}

func TestAnExplorePropertyHoldsOnlyWhenEverySearchCoveredEverything(t *testing.T) {
	holds := explore.Verdict{Status: explore.Holds}
	result := func(exhaustive bool, enumerated, fired int, v explore.Verdict) *explore.Result {
		return &explore.Result{Exhaustive: exhaustive, Executions: big.NewInt(5), PlacementsEnumerated: enumerated, PlacementsFired: fired,
			Verdicts: map[model.Property]explore.Verdict{model.Oversell: v}}
	}
	violated := explore.Verdict{Status: explore.Violated, Amount: 2, Witness: &explore.Witness{}}
	for _, c := range []struct {
		name    string
		results []*explore.Result
		verdict Verdict
	}{
		{"both hold", []*explore.Result{result(true, 3, 3, holds), result(true, 2, 2, holds)}, Holds},
		{"one ran out of memory", []*explore.Result{result(true, 3, 3, holds), result(false, 2, 2, explore.Verdict{Status: explore.Inconclusive, Detail: "memory"})}, Inconclusive},
		{"a placement never fired", []*explore.Result{result(true, 3, 2, holds)}, Inconclusive},
		{"no place for the fault", []*explore.Result{result(true, 0, 0, violated)}, NotApplicable},
		{"a witness", []*explore.Result{result(true, 3, 3, holds), result(true, 3, 3, violated)}, Violated},
		{"cut short before any place", []*explore.Result{result(false, 0, 0, explore.Verdict{Status: explore.Inconclusive, Detail: "memory"})}, Inconclusive},
		{"cut short before any place, broken without the fault", []*explore.Result{result(false, 0, 0, violated)}, Inconclusive},
		{"no search", nil, Inconclusive},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := ExploreGroup{Entry: luaHash(t), Fault: faults.ClientCrash, Workload: faults.Workloads()[0], Retries: "off"}
			cells, err := g.judge(c.results, ExploreBounds{Stock: []int64{1, 2}}, "")
			require.NoError(t, err)
			require.Equal(t, c.verdict, cellOf(t, cells, model.Oversell).Verdict)
		})
	}
}

func report() Report {
	r := Report{Schema: Schema, Bounds: Bounds{Worlds: []string{"live"}}}
	for i, p := range model.Properties() {
		c := Cell{Scheme: "lua-hash", Fault: faults.ReplyLost, Workload: "unit", Property: p.ID, World: "live", ClientRetries: "off",
			Verdict: Holds, Declared: Promised, Clients: 3, Stock: []int64{1}, MaxFaults: 1, Runs: 4, Placements: Placements{4, 4}}
		switch i {
		case 0:
			c.Verdict, c.Amount, c.Reason = Violated, 1, "sold 2 of 1"
		case 3:
			c.Verdict, c.Declared, c.Amount = Violated, Weak, 1
		case 5:
			c.Verdict, c.Reason = Inconclusive, "1 of 4 placements fired"
		case 7:
			c.Verdict = NotApplicable
		}
		r.Cells = append(r.Cells, c)
	}
	return r
}

func TestTextAndMarkdownShowLettersDoubtsAndSurprises(t *testing.T) {
	for _, format := range []string{"text", "markdown"} {
		var b bytes.Buffer
		require.NoError(t, report().Render(&b, format))
		require.Contains(t, b.String(), "OL? !")
		require.Contains(t, b.String(), "2 verdicts are not as declared")
		require.Contains(t, b.String(), "oversell violated, declared holds — sold 2 of 1")
		require.Contains(t, b.String(), "double-deduct inconclusive")
	}
}

func TestJSONReadsBack(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report().Render(&b, "json"))
	var back Report
	require.NoError(t, json.Unmarshal(b.Bytes(), &back))
	require.Equal(t, report().Cells, back.Cells)
}

func TestJUnitCountsFailuresErrorsAndWhatDoesNotApply(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, report().Render(&b, "junit"))
	var back junitSuites
	require.NoError(t, xml.Unmarshal(b.Bytes(), &back))
	require.Len(t, back.Suites, 1)
	s := back.Suites[0]
	require.Equal(t, []int{12, 1, 1, 1}, []int{s.Tests, s.Failures, s.Errors, s.Skipped})
}

func TestAReportThatIsNotCompleteIsNeverAllGreen(t *testing.T) {
	for _, c := range []struct {
		report Report
		want   string
	}{
		{Report{Cells: []Cell{{Property: model.Oversell, Verdict: Holds, Declared: Promised}}, Bounds: Bounds{Incomplete: "redis died"}}, "redis died"},
		{Report{}, "nothing was judged"},
	} {
		var b bytes.Buffer
		require.NoError(t, c.report.Render(&b, "junit"))
		var back junitSuites
		require.NoError(t, xml.Unmarshal(b.Bytes(), &back))
		last := back.Suites[len(back.Suites)-1]
		require.Equal(t, 1, last.Errors)
		require.Equal(t, c.want, last.Cases[0].Error.Message)
		b.Reset()
		require.NoError(t, c.report.Render(&b, "text"))
		require.Contains(t, b.String(), c.want)
	}
	var b bytes.Buffer
	require.NoError(t, Report{}.Render(&b, "text"))
	require.NotContains(t, b.String(), "every verdict is as")
}

func TestExecutionsAreCountedExactlyAsLongAsThatCanBeRead(t *testing.T) {
	require.Equal(t, "999999", Count(big.NewInt(999_999)))
	require.Equal(t, "7.0e10", Count(big.NewInt(70_000_000_000)))
}

func TestEveryDeclaredWeaknessNamesWhatExists(t *testing.T) {
	for _, e := range schemes.All() {
		for _, w := range e.Guarantees.Weaknesses {
			_, _, err := faults.ParseRow(w.Fault)
			require.NoError(t, err, e.Scheme.Name())
			for _, load := range w.Workloads {
				_, err := faults.WorkloadByName(load)
				require.NoError(t, err, e.Scheme.Name())
			}
			require.Contains(t, []string{"", "off", "default"}, w.Retries)
			require.Contains(t, []string{"", "explore", "live"}, w.World)
			require.NotEmpty(t, w.Breaks)
			require.NotEmpty(t, w.Why, "%s × %s", e.Scheme.Name(), w.Fault)
			for _, p := range w.Breaks {
				_, ok := p.Info()
				require.True(t, ok, p)
			}
		}
	}
}

// explore covers what a live run can do, so what only live shows needs a reason:
// time passes in a live run while a client is merely slow, and patience ends; there
// are three clients where explore searches two; or a restart of the database ends
// also the connections on which nothing is in progress.
func TestWhatIsDeclaredForTheLiveWorldAloneHasAReason(t *testing.T) {
	for _, e := range schemes.All() {
		for _, w := range e.Guarantees.Weaknesses {
			if w.World != "live" || slices.Equal(w.Breaks, []model.Property{model.Unsold}) {
				continue
			}
			kind, setting, err := faults.ParseRow(w.Fault)
			require.NoError(t, err)
			require.True(t, twoClients(kind, setting) || kind == faults.PostgresRestart, "%s × %s", e.Scheme.Name(), w.Fault)
		}
	}
}

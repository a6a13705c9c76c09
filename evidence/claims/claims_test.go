package claims

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

func TestTheLedgerHasEveryClaimOfTheNotesOnceInBothLanguages(t *testing.T) {
	var want []string
	for i := range 15 {
		want = append(want, fmt.Sprintf("A%d", i+1))
	}
	for i := range 16 {
		want = append(want, fmt.Sprintf("B%d", i+1))
	}
	for i := range 7 {
		want = append(want, fmt.Sprintf("K%d", i+1))
	}
	var got []string
	for _, e := range All() {
		got = append(got, e.ID)
		require.NotEmpty(t, e.Rests, "%s rests on nothing", e.ID)
		require.Contains(t, []evidence.ClaimVerdict{evidence.ClaimConfirmed, evidence.ClaimRefuted, evidence.ClaimQualified}, e.Verdict, e.ID)
		require.Equal(t, e.Verdict == evidence.ClaimQualified, e.Condition != nil, "%s: a qualified claim has a condition, another has none", e.ID)
		for _, s := range []evidence.Text{e.Claim, e.Says} {
			require.NotEmpty(t, s.EN, e.ID)
			require.NotEmpty(t, s.ZH, e.ID)
			require.NotEqual(t, s.EN, s.ZH, e.ID)
		}
	}
	require.Equal(t, want, got)
}

// ideal is a report with just the evidence that a claim rests on.
func ideal(e Entry) evidence.Report {
	var r evidence.Report
	for _, p := range e.Rests {
		switch p := p.(type) {
		case breaks:
			r.Cells = append(r.Cells, cellsOf(about(p), evidence.Violated)...)
		case breaksOne:
			r.Cells = append(r.Cells, cellsOf(about(p), evidence.Violated)...)
		case keeps:
			r.Cells = append(r.Cells, cellsOf(about(p), evidence.Holds)...)
		case counted:
			r.Facts = facts
		case measured:
			r.Cost = plausible
		}
	}
	// What one proof wants kept must not be filled in by another's violation.
	seen := map[string]int{}
	var cells []evidence.Cell
	for _, c := range r.Cells {
		key := fmt.Sprint(c.Scheme, c.Fault, c.Workload, c.ClientRetries, c.Property)
		if at, ok := seen[key]; ok {
			if c.Verdict == evidence.Holds {
				cells[at].Verdict = c.Verdict
			}
			continue
		}
		seen[key] = len(cells)
		cells = append(cells, c)
	}
	r.Cells = cells
	return r
}

func cellsOf(q about, v evidence.Verdict) (cells []evidence.Cell) {
	or := func(list, all []string) []string {
		if len(list) == 0 {
			return all
		}
		return list
	}
	retries := faults.Retries()
	if q.retries != "" {
		retries = []string{q.retries}
	}
	for _, s := range or(q.schemes, []string{"lua-string"}) {
		for _, f := range or(words(q.faults), words(evidence.ExploreKinds())) {
			if v == evidence.Violated && len(q.faults) == 0 && f == string(faults.None) {
				continue // what breaks alone says nothing about a fault
			}
			for _, w := range or(q.workloads, everyWorkload) {
				for _, r := range retries {
					for _, p := range q.properties {
						cells = append(cells, evidence.Cell{Scheme: s, Fault: faults.Kind(f), Workload: w, ClientRetries: r, Property: p, World: "explore", Verdict: v, Clients: 3})
					}
				}
			}
		}
	}
	return cells
}

var facts = func() []evidence.Fact {
	f, err := Facts(context.Background())
	if err != nil {
		panic(err)
	}
	return f
}()

// plausible is a cost table as a machine with two cores might have it.
var plausible = costTable()

func costTable() []evidence.Cost {
	rate := func(r float64) *float64 { return &r }
	var all []evidence.Cost
	for scheme, perSecond := range map[string]float64{"hincrby": 90_000, "lua-hash": 70_000, "lua-string": 72_000, "lock": 3_000, "lua-lock": 900} {
		for _, futile := range []float64{0, 0.5, 0.99} {
			for _, connections := range []int{1, 8, 32, 128} {
				trips := 1.0
				if scheme == "hincrby" {
					trips += futile
				}
				all = append(all, evidence.Cost{Scheme: scheme, Experiment: "closed-loop", Futile: futile, SKUs: 1, Connections: connections, Repetitions: 5,
					RoundTrips: trips, Commands: trips, Throughput: evidence.Interval{Median: perSecond, Low: perSecond * .98, High: perSecond * 1.02},
					Latency: evidence.Percentiles{P50: 300, P90: 400, P99: 900, P999: 2000}})
			}
		}
	}
	for r, p99 := range map[float64]float64{1000: 300, 10_000: 500, 60_000: 9000} {
		all = append(all, evidence.Cost{Scheme: "lua-string", Experiment: "open-loop", OfferedRate: rate(r), Repetitions: 5, Connections: 64,
			Throughput: evidence.Interval{Median: r, Low: r, High: r}, Latency: evidence.Percentiles{P99: p99}})
	}
	all = append(all,
		evidence.Cost{Scheme: "lua-hash", Experiment: "script-length", Settings: map[string]string{"script_ms": "5"}, Repetitions: 5, Connections: 32,
			Throughput: evidence.Interval{Median: 190}, Latency: evidence.Percentiles{P99: 160_000}},
		evidence.Cost{Scheme: "lock", Experiment: "settings", Settings: map[string]string{"wait_ms": "500", "lease_ms": "10000"}, Repetitions: 5, Connections: 128, Busy: 0.1})
	return all
}

func judged(t *testing.T, e Entry, r evidence.Report) evidence.ClaimVerdict {
	t.Helper()
	return e.judge(r).Verdict
}

func TestAClaimHasItsVerdictWithAllItsEvidenceAndIsOpenWithoutAnyPieceOfIt(t *testing.T) {
	for _, e := range All() {
		t.Run(e.ID, func(t *testing.T) {
			full := ideal(e)
			c := e.judge(full)
			require.Equal(t, e.Verdict, c.Verdict, "%+v", c.Evidence)
			require.Equal(t, evidence.ClaimOpen, judged(t, e, evidence.Report{}))
			for _, p := range e.Rests {
				less := full
				switch p.(type) {
				case counted:
					less.Facts = nil
				case measured:
					less.Cost = nil
				default:
					less.Cells = nil
				}
				require.Equal(t, evidence.ClaimOpen, judged(t, e, less), "without %T", p)
			}
		})
	}
}

// Mutants: every piece of evidence of every claim is turned into its contrary.
func TestEveryClaimIsContradictedWhenAnyPieceOfItsEvidenceTurns(t *testing.T) {
	for _, e := range All() {
		for i, p := range e.Rests {
			t.Run(fmt.Sprintf("%s/%d", e.ID, i), func(t *testing.T) {
				r := ideal(e)
				r.Cells = slices.Clone(r.Cells)
				switch p := p.(type) {
				case breaks:
					turn(r.Cells, about(p), evidence.Violated, evidence.Holds)
				case breaksOne:
					turn(r.Cells, about(p), evidence.Violated, evidence.Holds)
				case keeps:
					for k, c := range r.Cells {
						if about(p).fits(c) {
							r.Cells[k].Verdict = evidence.Inconclusive
							require.Equal(t, evidence.ClaimOpen, judged(t, e, r), "a doubt is no evidence")
							r.Cells[k].Verdict = evidence.Violated
							break
						}
					}
				case counted:
					turned := slices.Clone(r.Facts)
					for k, f := range turned {
						values := maps.Clone(f.Values)
						for name, v := range values {
							values[name] = 3 - v // 1 and 2 change places, 0 and 1 do not stay
						}
						turned[k].Values = values
					}
					r.Facts = turned
				case measured:
					r.Cost = contrary(r.Cost)
				}
				require.Equal(t, evidence.ClaimContradicted, judged(t, e, r))
			})
		}
	}
}

func turn(cells []evidence.Cell, q about, from, to evidence.Verdict) {
	for i, c := range cells {
		if q.fits(c) && c.Verdict == from {
			cells[i].Verdict = to
		}
	}
}

// contrary is a cost table in which nothing is as the notes or the ledger have it.
func contrary(table []evidence.Cost) (out []evidence.Cost) {
	for _, c := range table {
		c.Busy = 0
		switch {
		case c.Settings["script_ms"] != "":
			c.Throughput, c.Latency = evidence.Interval{Median: 80_000}, evidence.Percentiles{P99: 100}
		case c.OfferedRate != nil:
			c.Throughput, c.Latency = evidence.Interval{Median: 120 * *c.OfferedRate}, evidence.Percentiles{P99: 300}
		default:
			c.Throughput = evidence.Interval{Median: 200_000, Low: 200_000, High: 200_000}
			c.RoundTrips, c.Commands = 1.5, 1.5
			c.Latency = evidence.Percentiles{P50: 60_000, P99: 60_000}
		}
		out = append(out, c)
	}
	return out
}

func TestFewerThanFiveRepetitionsSettleNothing(t *testing.T) {
	for _, e := range All() {
		if !slices.ContainsFunc(e.Rests, func(p proof) bool { _, ok := p.(measured); return ok }) {
			continue
		}
		r := ideal(e)
		once := slices.Clone(r.Cost)
		for i := range once {
			once[i].Repetitions = 1
		}
		r.Cost = once
		require.Equal(t, evidence.ClaimOpen, judged(t, e, r), e.ID)
	}
}

func TestWhatAReportDidNotLookAtContradictsNothing(t *testing.T) {
	q := about{schemes: []string{"hincrby"}, faults: kinds(faults.None), properties: props(model.FalseSoldOut)}
	all := cellsOf(q, evidence.Holds)
	require.Equal(t, evidence.Contradicts, breaks(q).judge(evidence.Report{Cells: all}).State)
	for i := range all {
		require.Equal(t, evidence.Missing, breaks(q).judge(evidence.Report{Cells: slices.Delete(slices.Clone(all), i, i+1)}).State)
		two := slices.Clone(all)
		two[i].Clients = 2
		require.Equal(t, evidence.Missing, breaks(q).judge(evidence.Report{Cells: two}).State)
		require.Equal(t, evidence.Supports, keeps(q).judge(evidence.Report{Cells: two}).State)
		two[i].Clients = 1
		require.Equal(t, evidence.Missing, keeps(q).judge(evidence.Report{Cells: two}).State)
	}
}

func TestWhatBreaksWithNoFaultIsNoEvidenceAboutAFault(t *testing.T) {
	q := about{schemes: []string{"naive"}, faults: kinds(faults.ClientPause), properties: props(model.Oversell)}
	cells := cellsOf(q, evidence.Violated)
	require.Equal(t, evidence.Supports, breaks(q).judge(evidence.Report{Cells: cells}).State)
	alone := q
	alone.faults = kinds(faults.None)
	cells = append(cells, cellsOf(alone, evidence.Violated)...)
	require.Equal(t, evidence.Missing, breaks(q).judge(evidence.Report{Cells: cells}).State)
}

func TestTheFactsAreCountedWithTheRealSchemes(t *testing.T) {
	found, err := Facts(t.Context())
	require.NoError(t, err)
	values := map[string]float64{}
	for _, f := range found {
		maps.Copy(values, f.Values)
		require.NotEmpty(t, f.Says.ZH)
	}
	for name, want := range map[string]float64{
		"hincrby sold": 1, "hincrby sold-out": 2, "lua-hash sold": 1, "lua-hash sold-out": 1, "lua-hash flushed": 2, "lock sold": 4,
	} {
		require.Equal(t, want, values[name], name)
	}
	stopped, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Facts(stopped)
	require.Error(t, err, "a count that could not be made is no count")
}

// The check value and the tags are those of the Redis cluster specification.
func TestSlotsAreThoseOfTheSpecification(t *testing.T) {
	require.Equal(t, uint16(0x31C3), Slot("123456789"))
	require.Equal(t, Slot("user1000"), Slot("{user1000}.following"))
	require.Equal(t, Slot("{bar"), Slot("foo{{bar}}zap"))
	require.NotEqual(t, Slot("bar"), Slot("foo{}{bar}"), "an empty tag is none")
	require.Equal(t, Slot("bar"), Slot("foo{bar}{zap}"))
}

func TestWhatTheLedgerNamesExistsOrIsKnownToCome(t *testing.T) {
	coming := []string{"setnx-lock", "lua-limit", "lua-journal", "degrade"}
	for _, e := range All() {
		for _, s := range e.judge(evidence.Report{}).Evidence {
			for _, name := range s.Schemes {
				if _, err := schemes.ByName(name); err != nil {
					require.Contains(t, coming, name, e.ID)
				}
			}
			for _, w := range s.Workloads {
				_, err := faults.WorkloadByName(w)
				require.NoError(t, err, e.ID)
			}
			require.NotEmpty(t, strings.TrimSpace(s.Wants.ZH), e.ID)
		}
	}
}

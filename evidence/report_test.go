package evidence_test

import (
	"bytes"
	"encoding/xml"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/model"
	"stockproof/schemes"
)

var explored struct {
	once   sync.Once
	report evidence.Report
	err    error
}

// small is a report of a real search: two schemes, three faults.
func small(t *testing.T) evidence.Report {
	t.Helper()
	explored.once.Do(func() { explored.report, explored.err = search(t) })
	require.NoError(t, explored.err)
	r := explored.report
	r.Cells = slices.Clone(r.Cells)
	return r
}

func search(t *testing.T) (r evidence.Report, err error) {
	lab := explore.NewLab()
	defer lab.Close()
	var groups []evidence.ExploreGroup
	load, err := faults.WorkloadByName("unit")
	if err != nil {
		return r, err
	}
	for _, name := range []string{"hincrby", "lua-string"} {
		e, err := schemes.ByName(name)
		if err != nil {
			return r, err
		}
		for _, kind := range []faults.Kind{faults.None, faults.ClientCrash, faults.CommitReplyLost} {
			groups = append(groups, evidence.ExploreGroup{Entry: e, Fault: kind, Workload: load, Retries: "off"})
		}
	}
	bounds := evidence.DefaultExploreBounds()
	r = evidence.Report{Schema: evidence.Schema}
	r.Bounds.AddExplore(bounds)
	if r.Cells, err = evidence.FromExplore(t.Context(), lab, groups, bounds, "", nil); err != nil {
		return r, err
	}
	if r.Facts, err = claims.Facts(t.Context()); err != nil {
		return r, err
	}
	evidence.Sort(r.Cells)
	rate := 1000.0
	r.Cost = []evidence.Cost{
		{Scheme: "hincrby", Experiment: "closed-loop", SKUs: 1, Connections: 8, Repetitions: 5, Futile: 0.99, RoundTrips: 1.99},
		{Scheme: "lua-string", Experiment: "open-loop", Settings: map[string]string{"aof": "always"}, SKUs: 1, Connections: 8, Repetitions: 5, OfferedRate: &rate},
	}
	r.Claims = claims.Judge(r)
	return r, nil
}

func TestAReportThatIsReadAgainIsTheSame(t *testing.T) {
	r := small(t)
	dir := t.TempDir()
	path, err := r.WriteFile(dir)
	require.NoError(t, err)
	again, err := evidence.ReadFile(path)
	require.NoError(t, err)
	require.Empty(t, evidence.Difference(r, again))
	var first, second bytes.Buffer
	require.NoError(t, r.JSON(&first))
	require.NoError(t, again.JSON(&second))
	require.Equal(t, first.String(), second.String())
}

func schemaOf(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.NewCompiler().Compile(filepath.Join("..", "docs", "evidence.schema.json"))
	require.NoError(t, err)
	return s
}

func instance(t *testing.T, r evidence.Report) any {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, r.JSON(&b))
	v, err := jsonschema.UnmarshalJSON(&b)
	require.NoError(t, err)
	return v
}

func TestEvidenceIsAsThePublishedSchemaSays(t *testing.T) {
	schema := schemaOf(t)
	require.NoError(t, schema.Validate(instance(t, small(t))))
	require.NoError(t, schema.Validate(instance(t, evidence.Report{Schema: evidence.Schema})))
	part := small(t)
	part.Bounds.Shard = &evidence.Shard{Index: 1, Of: 2, Asked: "verify", Version: "1"}
	require.NoError(t, schema.Validate(instance(t, part)))
	require.Contains(t, part.NotCovered()[0].EN, "this is 1 of 2")
	for name, spoil := range map[string]func(*evidence.Report){
		"another schema":            func(r *evidence.Report) { r.Schema = "stockproof/evidence/v2" },
		"an unknown verdict":        func(r *evidence.Report) { r.Cells[0].Verdict = "fine" },
		"a law that nobody knows":   func(r *evidence.Report) { r.Cells[0].Property = "beauty" },
		"a violation without proof": func(r *evidence.Report) { r.Cells[0].Verdict, r.Cells[0].Witness = evidence.Violated, "" },
		"a shard before the first":  func(r *evidence.Report) { r.Bounds.Shard = &evidence.Shard{Of: 2} },
		"a share above one": func(r *evidence.Report) {
			r.Cost = []evidence.Cost{{Futile: 2, SKUs: 1, Connections: 1, Repetitions: 1}}
		},
	} {
		r := small(t)
		spoil(&r)
		require.Error(t, schema.Validate(instance(t, r)), name)
	}
}

func TestThePublishedSchemaKnowsEveryProperty(t *testing.T) {
	schema := schemaOf(t)
	for _, p := range model.Properties() {
		r := small(t)
		r.Cells[0].Property = p.ID
		require.NoError(t, schema.Validate(instance(t, r)), p.ID)
	}
}

func TestEvidenceThatCannotBeUsedIsRefusedWithFileLineAndReason(t *testing.T) {
	const head = `{"schema":"stockproof/evidence/v1","bounds":{"worlds":[],"assumptions":[]},` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"nothing", "", "the file ends too early"},
		{"half of it", head + `"cells":[`, "e.json:2: the file ends too early"},
		{"no JSON", head + "\ncells", "e.json:3: invalid character"},
		{"another kind of value", head + `"cells":[{"amount":"many"}]}`, "e.json:2: cells.amount: string where int64 is due"},
		{"a field that is not known", head + `"cells":[],"price":1}`, `e.json: json: unknown field "price"`},
		{"something behind it", head + `"cells":[]} {}`, "e.json:2: something follows"},
		{"another schema", `{"schema":"v9"}`, `schema "v9", this program reads "stockproof/evidence/v1"`},
		{"no schema", `{}`, `schema ""`},
		{"an unknown verdict", head + `"cells":[{"scheme":"s","fault":"f","world":"live","property":"oversell","verdict":"fine"}]}`, `cell 1 (s × f): unknown verdict "fine"`},
		{"an unknown property", head + `"cells":[{"scheme":"s","fault":"f","world":"live","property":"beauty","verdict":"holds"}]}`, `unknown property "beauty"`},
		{"a cell of nothing", head + `"cells":[{"property":"oversell","verdict":"holds"}]}`, "scheme, fault or world is missing"},
		{"clients in a wrong word", head + `"cells":[{"clients":"many"}]}`, `clients "many"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := evidence.Parse([]byte(c.text), "e.json")
			var bad *evidence.BadEvidenceError
			require.ErrorAs(t, err, &bad)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

func FuzzEvidence(f *testing.F) {
	f.Add([]byte(`{"schema":"stockproof/evidence/v1","cells":[{"scheme":"s","fault":"none","world":"live","property":"oversell","verdict":"holds","clients":"any"}]}`))
	f.Add([]byte(`{"claims":[{"evidence":[{}]}],"cost":[{"offered_rate":null}]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := evidence.Parse(raw, "f")
		if err != nil {
			return
		}
		for _, format := range evidence.Formats() {
			require.NoError(t, r.Render(new(bytes.Buffer), format))
		}
		require.Empty(t, evidence.Difference(r, r))
	})
}

func TestADifferenceNamesWhatChangedAndNothingElse(t *testing.T) {
	old := small(t)
	for _, c := range []struct {
		name   string
		change func(*evidence.Report)
		want   []evidence.Change // What is left out
	}{
		{"nothing", func(*evidence.Report) {}, nil},
		{"how long it took", func(r *evidence.Report) { r.Cells[0].States++; r.Cells[0].Executions = "9" }, nil},
		{"a verdict", func(r *evidence.Report) { r.Cells[0].Verdict = evidence.Inconclusive }, []evidence.Change{{Field: "verdict", Old: string(old.Cells[0].Verdict), New: "inconclusive"}}},
		{"an amount", func(r *evidence.Report) { r.Cells[0].Amount = 7 }, []evidence.Change{{Field: "amount", Old: "0", New: "7"}}},
		{"a declaration", func(r *evidence.Report) { r.Cells[0].Declared = evidence.MayShow }, []evidence.Change{{Field: "declared", Old: "holds", New: "may-show"}}},
		{"a bound", func(r *evidence.Report) { r.Cells[0].Clients = 4 }, []evidence.Change{{Field: "bound", Old: "3 clients, 0 faults, stock [1 2], all executions", New: "4 clients, 0 faults, stock [1 2], all executions"}}},
		{"a confirmation", func(r *evidence.Report) { no := false; r.Cells[0].ConfirmedLive = &no }, []evidence.Change{{Field: "confirmed live", Old: "not tried or not decided", New: "no"}}},
		{"a cell that is gone", func(r *evidence.Report) { r.Cells = r.Cells[1:] }, []evidence.Change{{Field: "cell", Old: "holds"}}},
		{"a cell that is new", func(r *evidence.Report) { c := r.Cells[0]; c.Scheme = "mine"; r.Cells = append(r.Cells, c) }, []evidence.Change{{Field: "cell", New: "holds"}}},
		{"a number of clients that becomes any", func(r *evidence.Report) { r.Cells[0].Clients = evidence.AnyNumber }, []evidence.Change{{Field: "cell", New: "holds"}, {Field: "cell", Old: "holds"}}},
		{"a claim", func(r *evidence.Report) {
			r.Claims = slices.Clone(r.Claims)
			r.Claims[0].Verdict = evidence.ClaimContradicted
		}, []evidence.Change{{Field: "verdict", Old: "qualified", New: "contradicted"}}},
		{"a claim that is gone", func(r *evidence.Report) { r.Claims = r.Claims[1:] }, []evidence.Change{{Field: "claim", Old: "qualified"}}},
		{"it was cut short", func(r *evidence.Report) { r.Bounds.Incomplete = "stopped" }, []evidence.Change{{Field: "complete", Old: "yes", New: "no: stopped"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			changed := small(t)
			c.change(&changed)
			var got []evidence.Change
			for _, d := range evidence.Difference(old, changed) {
				require.NotEmpty(t, d.What)
				d.What = ""
				got = append(got, d)
			}
			require.Equal(t, c.want, got)
			for _, format := range evidence.DiffFormats() {
				var b bytes.Buffer
				require.NoError(t, evidence.RenderDifference(&b, evidence.Difference(old, changed), format))
				require.NotEmpty(t, b.String())
			}
		})
	}
	require.ErrorContains(t, evidence.RenderDifference(new(bytes.Buffer), nil, "poem"), "unknown format")
}

func TestAnnotationsSayWhatIsNotAsDeclaredAndEscapeWhatEndsACommand(t *testing.T) {
	r := small(t)
	render := func() string {
		var b bytes.Buffer
		require.NoError(t, r.Render(&b, "github"))
		return b.String()
	}
	require.Regexp(t, `^::notice title=stockproof::\d+ cells: `, render())
	r.Cells[0].Verdict, r.Cells[0].Reason = evidence.Violated, "100% of\nit"
	no := false
	r.Cells[1].ConfirmedLive, r.Cells[1].NotConfirmed = &no, "line 3"
	r.Cells[2].Verdict = evidence.Inconclusive
	r.Claims = []evidence.Claim{{ID: "A1", Verdict: evidence.ClaimContradicted, Evidence: []evidence.Support{{State: evidence.Contradicts, Wants: evidence.Text{EN: "one"}, Found: evidence.Text{EN: "two"}}}}}
	out := render()
	require.Contains(t, out, "::error title=stockproof%3A not as declared::hincrby × none × unit")
	require.Contains(t, out, "100%25 of%0Ait\n")
	require.Contains(t, out, "::error title=stockproof%3A the worlds disagree::")
	require.Contains(t, out, "::warning title=stockproof%3A inconclusive::")
	require.Contains(t, out, "claim A1 is contradicted::one: two\n")
	for i := range r.Cells {
		r.Cells[i].Verdict = evidence.Inconclusive
	}
	require.Contains(t, render(), "more of level warning are in evidence.json")
	r.Cells = nil
	require.Contains(t, render(), "::error title=stockproof%3A not everything was looked at::nothing was judged")
}

func TestAContradictedClaimIsABrokenReportAndAnOpenOneIsNoPass(t *testing.T) {
	r := small(t)
	require.Equal(t, evidence.ExitOK, r.Exit())
	r.Claims = []evidence.Claim{
		{ID: "A1", Verdict: evidence.ClaimContradicted, Ledger: evidence.ClaimConfirmed, Evidence: []evidence.Support{{State: evidence.Contradicts, Wants: evidence.Text{EN: "one"}, Found: evidence.Text{EN: "two"}}}},
		{ID: "A2", Verdict: evidence.ClaimOpen, Evidence: []evidence.Support{{State: evidence.Missing, Wants: evidence.Text{EN: "three"}, Found: evidence.Text{EN: "nothing"}}}},
		{ID: "A3", Verdict: evidence.ClaimConfirmed},
	}
	require.Equal(t, evidence.ExitBroken, r.Exit())
	var b bytes.Buffer
	require.NoError(t, r.Render(&b, "junit"))
	var suites struct {
		Suites []struct {
			Name                     string `xml:"name,attr"`
			Tests, Failures, Skipped int
			Cases                    []struct {
				Failure *struct {
					Message string `xml:"message,attr"`
				} `xml:"failure"`
				Skipped *struct{} `xml:"skipped"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(b.Bytes(), &suites))
	last := suites.Suites[len(suites.Suites)-1]
	require.Equal(t, "claims", last.Name)
	require.Equal(t, "one: two", last.Cases[0].Failure.Message)
	require.NotNil(t, last.Cases[1].Skipped)
	require.Nil(t, last.Cases[2].Failure)
	for _, format := range []string{"text", "markdown"} {
		b.Reset()
		require.NoError(t, r.Render(&b, format))
		require.Contains(t, b.String(), "CONTRADICTED: claim A1 is in the ledger as confirmed — one: two", format)
	}
}

func TestMarkdownForADesignDocumentSaysBoundsAndWhatIsNotCovered(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, small(t).Render(&b, "markdown"))
	for _, want := range []string{
		"| lua-string | never | never | never | 1 faults |", "| hincrby | never | always |", "### Claims", "| B4 | ", "not in this report",
		"- explore: the clients of each workload, at most 1 faults, stock 1 2, miniredis", "- explore: Redis executes commands one at a time",
		"No run on real servers is in this report.", "Faults not placed in explore: client-pause", "| hincrby | closed-loop | 8 | 1 | 99 % |  | 1.99 |",
	} {
		require.Contains(t, b.String(), want)
	}
}

// The history that is drawn is the one that was judged: porcupine says of each
// schedule of the corpus what the schedule says.
func TestTheHistoryOfAScheduleIsJudgedAsTheScheduleSays(t *testing.T) {
	files, err := filepath.Glob("../testdata/schedules/*.schedule")
	require.NoError(t, err)
	require.Greater(t, len(files), 50)
	verdicts := map[histories.Verdict]int{}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		s, err := schedule.Parse(bytes.NewReader(raw), file)
		require.NoError(t, err)
		if slices.ContainsFunc(s.Outcomes, func(a schedule.Answer) bool { return a.Outcome == schedule.Unfinished }) {
			continue // only what holds at every moment is judged there
		}
		checked, err := histories.Check(evidence.HistoryOf(s), 10*time.Second, t.TempDir())
		require.NoError(t, err)
		broken := slices.ContainsFunc(s.Violates, func(v schedule.Violation) bool { return v.Property == model.NonLinearizable })
		require.Equal(t, broken, checked.Verdict == histories.NonLinearizable, "%s: %s", file, strings.TrimSpace(string(raw)))
		verdicts[checked.Verdict]++
	}
	require.Greater(t, verdicts[histories.Linearizable], 20)
	require.Greater(t, verdicts[histories.NonLinearizable], 20)
}

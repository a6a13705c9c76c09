package page

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// sample is a report of a real search, with its witnesses in a folder: bounded
// verdicts, some for any number of clients, claims, and a cost.
var sample struct {
	once   sync.Once
	dir    string
	report evidence.Report
	err    error
}

func TestMain(m *testing.M) {
	status := m.Run()
	os.RemoveAll(sample.dir)
	os.Exit(status)
}

func sampled(t *testing.T) (evidence.Report, string) {
	t.Helper()
	sample.once.Do(func() { sample.err = makeSample(t) })
	require.NoError(t, sample.err)
	r := sample.report
	r.Cells = slices.Clone(r.Cells)
	return r, sample.dir
}

func makeSample(t *testing.T) (err error) {
	if sample.dir, err = os.MkdirTemp("", "stockproof-page-"); err != nil {
		return err
	}
	lab := explore.NewLab()
	defer lab.Close()
	var groups []evidence.ExploreGroup
	for _, name := range []string{"db-version", "hincrby", "lock", "lua-string"} {
		e, err := schemes.ByName(name)
		if err != nil {
			return err
		}
		for _, kind := range []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.ReplyLost} {
			for _, load := range faults.Workloads()[:1] {
				for _, retries := range faults.Retries() {
					groups = append(groups, evidence.ExploreGroup{Entry: e, Fault: kind, Workload: load, Retries: retries})
				}
			}
		}
	}
	bounds := evidence.DefaultExploreBounds()
	r := evidence.Report{Schema: evidence.Schema}
	if r.Cells, err = evidence.FromExplore(t.Context(), lab, groups, bounds, sample.dir, nil); err != nil {
		return err
	}
	any, err := evidence.FromAny(t.Context(), lab, groups[8:12], bounds, sample.dir, nil)
	if err != nil {
		return err
	}
	r.Cells = append(r.Cells, any...)
	r.Bounds.AddExplore(bounds)
	evidence.Sort(r.Cells)
	if r.Facts, err = claims.Facts(t.Context()); err != nil {
		return err
	}
	r.Cost = []evidence.Cost{{Scheme: "lua-string", Experiment: "closed-loop", SKUs: 1, Connections: 8, Repetitions: 5, RoundTrips: 1, Commands: 1,
		Throughput: evidence.Interval{Median: 50_000, Low: 49_000, High: 51_000}, Latency: evidence.Percentiles{P50: 150, P90: 200, P99: 400, P999: 900}}}
	r.Claims = claims.Judge(r)
	sample.report = r
	_, err = WriteFile(sample.dir, r)
	return err
}

func render(t *testing.T, r evidence.Report, dir string) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, Write(&b, r, os.DirFS(dir)))
	return b.String()
}

func TestEveryNameOfOursIsThereInChinese(t *testing.T) {
	require.Empty(t, Untranslated(), "names.go has no Chinese for these")
	var bounds evidence.Bounds
	bounds.AddExplore(evidence.DefaultExploreBounds())
	bounds.AddAny(evidence.DefaultExploreBounds())
	for _, a := range bounds.Assumptions {
		require.Contains(t, assumptions, a)
	}
	for key, w := range words {
		require.NotEmpty(t, w.EN, key)
		require.NotEmpty(t, w.ZH, key)
	}
}

// Every word that the script asks for by name exists.
func TestTheScriptAsksOnlyForWordsThatThereAre(t *testing.T) {
	asked := regexp.MustCompile(`word\("([a-z-]+)"\)`).FindAllStringSubmatch(script+diagram+cellScript, -1)
	require.Greater(t, len(asked), 40)
	for _, a := range asked {
		require.Contains(t, words, a[1])
	}
}

func TestTheReportReachesForNothingOutsideItself(t *testing.T) {
	r, dir := sampled(t)
	html := render(t, r, dir)
	for _, reach := range []string{"http://", "https://", "@import", "url(", "fetch(", "XMLHttpRequest", `src="`, "<link rel=\"stylesheet"} {
		body := regexp.MustCompile(`(?s)<script type="application/gzip".*?</script>`).ReplaceAllString(html, "")
		body = strings.ReplaceAll(body, `"http://www.w3.org/2000/svg"`, "") // a name, not an address
		require.NotContains(t, body, reach)
	}
	require.Contains(t, html, "default-src 'none'")
}

func TestWhatOthersWroteIsShownAndNotRun(t *testing.T) {
	r, dir := sampled(t)
	const evil = `</script><img src=x onerror=alert(1)>`
	for i := range r.Cells {
		if r.Cells[i].Scheme == "lock" {
			r.Cells[i].Scheme = evil
		}
		r.Cells[i].Reason += evil
	}
	r.Bounds.Incomplete = evil
	r.Claims = append(slices.Clone(r.Claims), evidence.Claim{ID: evil, Verdict: evidence.ClaimOpen, Ledger: evidence.ClaimRefuted, Says: evidence.Text{EN: evil, ZH: evil}})
	html := render(t, r, dir)
	require.NotContains(t, html, "<img")
	require.Contains(t, html, "&lt;img src=x onerror=alert(1)&gt;")
}

func TestAWitnessThatIsNotThereIsSaidToBeMissing(t *testing.T) {
	r, _ := sampled(t)
	p, err := pack(r, fstest.MapFS{}, everything)
	require.NoError(t, err)
	require.NotEmpty(t, p.chunks["lock"].Witnesses)
	for _, w := range p.chunks["lock"].Witnesses {
		require.Equal(t, "missing-file", w.Missing)
	}
	for i := range r.Cells {
		if r.Cells[i].Witness != "" {
			r.Cells[i].Witness = "../../etc/passwd"
		}
	}
	_, err = pack(r, os.DirFS(t.TempDir()), everything)
	require.NoError(t, err, "nothing is read outside the folder")
}

func TestAWitnessThatIsNoScheduleIsSaidToBeBad(t *testing.T) {
	r, _ := sampled(t)
	files := fstest.MapFS{}
	for _, c := range r.Cells {
		if c.Witness != "" {
			files[filepath.ToSlash(c.Witness)] = &fstest.MapFile{Data: []byte("schedule v9\n")}
		}
	}
	p, err := pack(r, files, everything)
	require.NoError(t, err)
	require.Equal(t, "bad-file", p.chunks["lock"].Witnesses[0].Missing)
}

func TestEqualWitnessesAndPicturesAreStoredOnce(t *testing.T) {
	r, dir := sampled(t)
	p, err := pack(r, os.DirFS(dir), everything)
	require.NoError(t, err)
	named, stored, pictures := 0, 0, 0
	for _, c := range r.Cells {
		if c.Witness != "" {
			named++
		}
	}
	for _, ch := range p.chunks {
		stored += len(ch.Witnesses)
		pictures += len(ch.Pictures)
		texts := map[string]bool{}
		for _, w := range ch.Witnesses {
			require.False(t, texts[w.Text])
			texts[w.Text] = true
			require.Empty(t, w.Missing)
			require.NotEmpty(t, w.Steps)
			require.GreaterOrEqual(t, w.Picture, 0)
		}
	}
	require.Less(t, stored, named)
	require.LessOrEqual(t, pictures, stored)
	require.Contains(t, p.index.Porcupine[0], "<title>Porcupine</title>")
}

// A page that is too large leaves pictures out first, then witnesses, and says so.
func TestALargeReportLeavesOutPicturesBeforeWitnessesAndSaysSo(t *testing.T) {
	r, dir := sampled(t)
	size := map[detail]int{}
	for _, keep := range []detail{everything, withoutPictures, withoutWitnesses} {
		var b bytes.Buffer
		require.NoError(t, write(&b, r, os.DirFS(dir), keep))
		size[keep] = b.Len()
		require.Equal(t, keep == withoutPictures, strings.Contains(b.String(), words["left-pictures"].ZH))
		require.Equal(t, keep == withoutWitnesses, strings.Contains(b.String(), words["left-witnesses"].ZH))
	}
	require.Greater(t, size[everything], size[withoutPictures])
	require.Greater(t, size[withoutPictures], size[withoutWitnesses])
}

func TestTheVerdictsInThePageAreThoseOfTheEvidence(t *testing.T) {
	r, dir := sampled(t)
	p, err := pack(r, os.DirFS(dir), everything)
	require.NoError(t, err)
	raw, err := json.Marshal(p.index)
	require.NoError(t, err)
	var back index
	require.NoError(t, json.Unmarshal(raw, &back))
	letters := map[evidence.Verdict]string{evidence.Violated: "v", evidence.Holds: "h", evidence.Inconclusive: "i", evidence.NotApplicable: "n"}
	seen := 0
	for _, c := range r.Cells {
		for _, g := range back.Groups {
			any := c.Clients == evidence.AnyNumber
			if g.Scheme != c.Scheme || g.Fault != string(c.Fault) || g.Workload != c.Workload || g.Retries != c.ClientRetries || (g.Clients == "any") != any {
				continue
			}
			seen++
			require.Equal(t, letters[c.Verdict], strings.ToLower(string(g.Verdicts[indexOf(c.Property)])))
			if c.Verdict == evidence.Violated {
				require.Equal(t, c.Amount, g.Cells[string(c.Property)].Amount)
				require.Equal(t, c.Reason, back.Strings[g.Cells[string(c.Property)].Reason])
			}
		}
	}
	require.Equal(t, len(r.Cells), seen)
}

// Without the pictures, in which porcupine lists partial linearizations in the
// order of a Go map.
func TestTheSameEvidenceGivesTheSamePage(t *testing.T) {
	r, dir := sampled(t)
	page := func() string {
		var b bytes.Buffer
		require.NoError(t, write(&b, r, os.DirFS(dir), withoutPictures))
		return b.String()
	}
	first, second := page(), page()
	require.True(t, first == second, "rendered twice, and not the same")
}

func TestAnEmptyReportIsAPage(t *testing.T) {
	require.NoError(t, Write(io.Discard, evidence.Report{Schema: evidence.Schema}, fstest.MapFS{}))
}

// What was not looked at is nothing that a scheme keeps: without one of the faults of
// clients and of the wire in the report, the sentence about all of them is not there.
func TestKeepingEveryLawUnderFaultsOfClientsTakesAllOfThem(t *testing.T) {
	cell := func(kind faults.Kind, v evidence.Verdict) evidence.Cell {
		return evidence.Cell{Scheme: "s", Fault: kind, Property: model.Oversell, World: "explore", Verdict: v}
	}
	says := func(cells []evidence.Cell) bool {
		return slices.ContainsFunc(headlines(evidence.Report{Cells: cells}), func(h headline) bool { return h.Says == words["keeps-clients"] })
	}
	cells := []evidence.Cell{cell(faults.RedisRestart, evidence.Violated)}
	for _, k := range faults.Kinds() {
		if k.Explore && !faults.HitsServer(k.ID) {
			cells = append(cells, cell(k.ID, evidence.Holds))
		}
	}
	require.True(t, says(cells))
	for i := range cells {
		require.False(t, says(slices.Delete(slices.Clone(cells), i, i+1)), "without %s", cells[i].Fault)
		for _, v := range []evidence.Verdict{evidence.Violated, evidence.Inconclusive} {
			if i > 0 {
				other := slices.Clone(cells)
				other[i].Verdict = v
				require.False(t, says(other), "%s %s", cells[i].Fault, v)
			}
		}
	}
}

package stockproof_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"stockproof/explore"
	"stockproof/faults"
)

// What docs/scale.md measures.
var (
	scaleSchemes = []string{"lua-string", "hincrby", "lock"}
	scaleKinds   = []faults.Kind{faults.ClientCrash, faults.ClientPause, faults.ReplyLost}
)

const (
	scaleClients = 6 // the most a search takes
	scaleFaults  = 2
	// scaleDaily is up to how many states the everyday suite searches again.
	scaleDaily = 30_000
)

// scaleRow is the states of a scheme and a number of faults, by the number of
// clients from 1; 0 is a search that did not fit.
type scaleRow struct {
	scheme string
	faults int
	states []uint64
}

func (r scaleRow) String() string {
	cells := []string{r.scheme, strconv.Itoa(r.faults)}
	for _, n := range r.states {
		if n == 0 {
			cells = append(cells, "does not fit")
			continue
		}
		cells = append(cells, strconv.FormatUint(n, 10))
	}
	return "| " + strings.Join(cells, " | ") + " |"
}

// searchScale covers everything with some clients and faults.
func searchScale(t *testing.T, lab *explore.Lab, scheme string, clients, maxFaults int, memory int64) *explore.Result {
	t.Helper()
	cfg := explore.Config{Entry: entry(t, scheme), Workload: workload(t, "unit"), Clients: clients, Stock: 1, Retries: "off", MemoryLimit: memory}
	if maxFaults > 0 {
		cfg.Faults, cfg.MaxFaults = scaleKinds, maxFaults
	}
	r, err := lab.Run(t.Context(), cfg)
	require.NoError(t, err)
	return r
}

// shownScale reads the table of docs/scale.md.
func shownScale(t *testing.T) (rows []scaleRow) {
	t.Helper()
	raw, err := os.ReadFile("docs/scale.md")
	require.NoError(t, err)
	_, rest, ok := strings.Cut(string(raw), "<!-- states -->\n")
	require.True(t, ok)
	table, _, _ := strings.Cut(rest, "<!-- /states -->")
	for _, line := range strings.Split(strings.TrimSpace(table), "\n")[2:] {
		var cells []string
		for _, c := range strings.Split(strings.Trim(line, "| "), "|") {
			cells = append(cells, strings.TrimSpace(c))
		}
		r := scaleRow{scheme: cells[0]}
		r.faults, err = strconv.Atoi(cells[1])
		require.NoError(t, err)
		for _, c := range cells[2:] {
			n, _ := strconv.ParseUint(c, 10, 64)
			r.states = append(r.states, n)
		}
		require.Len(t, r.states, scaleClients)
		rows = append(rows, r)
	}
	require.Len(t, rows, len(scaleSchemes)*(scaleFaults+1))
	return rows
}

// growth fits ln(states) = a + b·n + c·n² to numbers of clients from 2 on, by least
// squares: with one client nobody meets anybody.
func growth(states []uint64) (predict func(clients float64) float64) {
	var x, y []float64
	for i, n := range states {
		if n > 0 && i > 0 {
			c := float64(i + 1)
			x = append(x, 1, c, c*c)
			y = append(y, math.Log(float64(n)))
		}
	}
	var fit mat.VecDense
	if err := fit.SolveVec(mat.NewDense(len(y), 3, x), mat.NewVecDense(len(y), y)); err != nil {
		panic(err) // three different numbers of clients always solve
	}
	return func(c float64) float64 { return math.Exp(fit.AtVec(0) + fit.AtVec(1)*c + fit.AtVec(2)*c*c) }
}

// extrapolation is the second table: how the fit without the largest measured
// number of clients predicts it, and what the fit with it says of more.
func extrapolation(rows []scaleRow) string {
	out := []string{"| scheme | faults | largest measured | predicted from the smaller ones | 6 clients | 7 clients | 8 clients | 10 clients |", "| --- | --- | --- | --- | --- | --- | --- | --- |"}
	for _, r := range rows {
		if r.scheme == "lua-string" {
			continue // one step: a polynomial, of which the logarithm is no parabola
		}
		last := 0
		for i, n := range r.states {
			if n > 0 {
				last = i
			}
		}
		without := growth(r.states[:last])(float64(last + 1))
		all := growth(r.states)
		six := "measured"
		if r.states[5] == 0 {
			six = fmt.Sprintf("%.1g", all(6))
		}
		out = append(out, fmt.Sprintf("| %s | %d | %d clients: %d | %.2g (%+.0f %%) | %s | %.1g | %.1g | %.1g |", r.scheme, r.faults, last+1, r.states[last],
			without, 100*(without/float64(r.states[last])-1), six, all(7), all(8), all(10)))
	}
	return strings.Join(out, "\n")
}

func TestExploreHasTheStatesThatTheScalePageShows(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	rows := shownScale(t)
	searched := 0
	for _, r := range rows {
		for i, n := range r.states {
			if n == 0 || n > scaleDaily {
				continue
			}
			searched++
			require.Equal(t, n, searchScale(t, lab, r.scheme, i+1, r.faults, 1<<30).States, "%s, %d clients, %d faults", r.scheme, i+1, r.faults)
		}
	}
	require.Greater(t, searched, 40)
	requireShown(t, "docs/scale.md", "extrapolated", extrapolation(rows))
}

func TestTheFitOfTheScalePageFindsAKnownGrowth(t *testing.T) {
	var states []uint64
	for n := 1.0; n <= 6; n++ {
		states = append(states, uint64(math.Round(math.Exp(1+0.5*n+0.3*n*n))))
	}
	require.InEpsilon(t, math.Exp(1+0.5*8+0.3*64), growth(states)(8), 0.05)
}

package explore

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
)

// spin runs a Promela model through SPIN's verifier. It answers the letters of
// the laws that break and how many states a second the verifier made.
func spin(t testing.TB, model string, defines map[string]int) (broken string, states uint64, rate float64) {
	t.Helper()
	dir := t.TempDir()
	args := []string{"-a"}
	for name, value := range defines {
		args = append(args, fmt.Sprintf("-D%s=%d", name, value))
	}
	source := model + ".pml"
	if !filepath.IsAbs(source) {
		var err error
		source, err = filepath.Abs(filepath.Join("testdata", "promela", source))
		require.NoError(t, err)
	}
	cmd := exec.Command("spin", append(args, source)...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "install spin, or set STOCKPROOF_LIVE=off to leave out what needs it\n%s", out)
	cc := exec.Command("gcc", "-O1", "-w", "-DSAFETY", "-o", "pan", "pan.c")
	cc.Dir = dir
	out, err = cc.CombinedOutput()
	require.NoError(t, err, "%s", out)
	pan := exec.Command("./pan", "-m100000", "-w22", "-n", "-c0")
	pan.Dir = dir
	out, _ = pan.CombinedOutput() // the exit code does not tell a violation
	text := string(out)
	require.NotContains(t, text, "max search depth", text)
	require.NotContains(t, text, "invalid end state (at", text)
	seen := map[string]bool{}
	for _, m := range regexp.MustCompile(`assertion violated .*\|\|\((\d)==0\)`).FindAllStringSubmatch(text, -1) {
		seen[m[1]] = true
	}
	require.Equal(t, len(seen) > 0, number1(t, `errors: (\d+)`, text) > 0, text)
	for _, law := range spinLaws {
		if seen[strconv.Itoa(law.number)] {
			broken += law.letter
		}
	}
	seconds := number1(t, `elapsed time ([\d.e+-]+)`, text)
	states = uint64(number1(t, `([\d.e+]+) states, stored`, text))
	if seconds > 0 {
		rate = float64(states) / seconds
	}
	return broken, states, rate
}

func number1(t testing.TB, pattern, text string) float64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindStringSubmatch(text)
	require.NotNil(t, m, "no %s in\n%s", pattern, text)
	n, err := strconv.ParseFloat(m[1], 64)
	require.NoError(t, err)
	return n
}

// laws are those the Promela models check, by their number in common.h.
var spinLaws = []struct {
	letter string
	number int
}{{"O", 3}, {"T", 1}, {"N", 2}, {"L", 4}, {"P", 5}}

var spinFaults = map[faults.Kind]string{faults.ClientCrash: "CRASH", faults.ClientPause: "PAUSE",
	faults.RequestLost: "LOST", faults.ReplyLost: "REPLY"}

func spinDefines(kind faults.Kind, clients, stock, budget int) map[string]int {
	d := map[string]int{"N": clients, "S": stock, "FAULTS": budget, "FIRST": 2, "CRASH": 0, "PAUSE": 0, "LOST": 0, "REPLY": 0}
	if name := spinFaults[kind]; name != "" {
		d[name] = 1
	} else {
		d["FAULTS"] = 0
	}
	return d
}

// The schemes were also written in Promela, by hand, from their description.
// SPIN must find the same laws broken as explore does with the real code:
// transient and permanent negative stock, oversell, lost and phantom units,
// retries off, 3 clients, one fault.
func TestSpinFindsTheSameLawsBroken(t *testing.T) {
	needRealServers(t)
	lab := newLab(t)
	for model, scheme := range map[string]string{"hincrby": "hincrby", "lua": "lua-hash", "lock": "lock"} {
		for _, kind := range []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost} {
			for _, stock := range []int{1, 2} {
				if stock == 2 && (model != "lock" || kind != faults.ClientPause) {
					continue // each configuration is a compilation
				}
				t.Run(fmt.Sprintf("%s/%s/%d", model, kind, stock), func(t *testing.T) {
					t.Parallel()
					found, _, _ := spin(t, model, spinDefines(kind, 3, stock, 1))
					cfg := one(t, scheme, kind, "unit", "off")
					cfg.Stock = int64(stock)
					r := search(t, lab, cfg)
					require.True(t, r.Exhaustive, r.Why)
					require.Equal(t, only(letters(r), "OTNLP"), found, "explore and SPIN")
				})
			}
		}
	}
}

// A Promela model with a mistake is found by the comparison: here nothing
// is given back.
func TestAWrongPromelaModelIsConvicted(t *testing.T) {
	needRealServers(t)
	source, err := os.ReadFile("testdata/promela/hincrby.pml")
	require.NoError(t, err)
	bad := strings.Replace(string(source), ":: atomic { stock++; goto done }", ":: atomic { goto done }", 1)
	require.NotEqual(t, string(source), bad)
	common, err := filepath.Abs("testdata/promela/common.h")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "wrong.pml")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(bad, `"common.h"`, `"`+common+`"`, 1)), 0o600))
	d := spinDefines(faults.None, 3, 1, 0)
	broken, _, _ := spin(t, strings.TrimSuffix(path, ".pml"), d)
	require.Contains(t, broken, "N", "without its give-back hincrby stays negative")
	r := search(t, newLab(t), one(t, "hincrby", faults.None, "unit", "off"))
	require.NotContains(t, letters(r), "N")
}

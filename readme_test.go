package stockproof_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// shellBlocks are the fenced sh blocks of a Markdown file, comments cut off.
func shellBlocks(t *testing.T, path string) []string {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	var lines []string
	for _, block := range regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(raw), -1) {
		for _, line := range strings.Split(strings.TrimSpace(block[1]), "\n") {
			line, _, _ = strings.Cut(line, " #")
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return lines
}

// TestEveryCommandTheREADMEShowsWorks runs what the README and docs show. make test is
// what runs this test; that make knows it is all that can be asked here.
func TestEveryCommandTheREADMEShowsWorks(t *testing.T) {
	build := func(args ...string) string {
		bin := filepath.Join(t.TempDir(), "stockproof")
		out, err := exec.Command("go", append(append([]string{"build"}, args...), "-o", bin, "./cmd/stockproof")...).CombinedOutput()
		require.NoError(t, err, string(out))
		return bin
	}
	bin := build()
	lines := shellBlocks(t, "README.md")
	require.Greater(t, len(lines), 5)
	docs, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	for _, doc := range docs {
		lines = append(lines, shellBlocks(t, doc)...)
	}
	written := t.TempDir() // what a command writes to out/ a later one reads
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			for i, w := range words {
				if below, ok := strings.CutPrefix(w, "out/"); ok {
					words[i] = filepath.Join(written, below)
				}
			}
			want := 0
			switch {
			case line == "make test":
				words = []string{"make", "--dry-run", "test"}
			case strings.HasPrefix(line, "go run -tags nolive -gcflags=all=-l ./cmd/stockproof "):
				// Without inlining everything would be compiled once more for this test alone.
				words = append([]string{build("-tags", "nolive")}, words[6:]...)
			case words[0] == "stockproof":
				words[0] = bin
			default:
				t.Fatalf("nobody has said how to test %q", line)
			}
			if words[1] == "explore" && !strings.Contains(line, "--clients any") {
				want = 1 // the scheme shown breaks something, which is what it is shown for
			}
			if words[1] == "verify" && strings.Contains(line, "--clients 2 ") {
				want = 1 // what is declared takes three, and nothing declared may stay unseen
			}
			if words[1] == "check" && strings.Contains(line, "shop.csv") {
				want = 1 // the page says why
			}
			if words[1] == "diff" && words[2] != words[3] {
				want = 1 // what is shown is a difference
			}
			if words[1] == "soak" {
				liveWorld(t) // leaves it out only on request
				words = append(words, "--duration", "1s", "--out", t.TempDir())
				cmd := exec.Command(words[0], words[1:]...)
				out, _ := cmd.Output()
				require.Contains(t, []int{0, 1, 4}, cmd.ProcessState.ExitCode(), string(out))
				// What a second of it finds is chance; that somebody bought is not.
				require.Regexp(t, `(?m)^[0-9]+ sales judged in .* s, [1-9][0-9]* operations`, string(out))
				return
			}
			if words[1] == "subject" || words[1] == "bench" {
				liveWorld(t) // leaves it out only on request
			}
			if words[1] == "verify" {
				if strings.Contains(line, "--subject") {
					liveWorld(t)
				} else if strings.Contains(line, "live") || strings.Contains(line, "all") {
					liveWorld(t) // leaves it out only on request
					words = append(words, "--scheme", "hincrby", "--fault", "none")
				}
				// The same command on a smaller sale: TestExplore and TestLive have the
				// other workloads.
				words = append(words, "--workload", "unit")
				if !slices.Contains(words, "--out") {
					words = append(words, "--out", t.TempDir())
				}
			}
			cmd := exec.Command(words[0], words[1:]...)
			out, err := cmd.CombinedOutput()
			if want == 0 {
				require.NoError(t, err, string(out))
			}
			require.Equal(t, want, cmd.ProcessState.ExitCode(), string(out))
		})
	}
}

// The matrix of the README is short: one scheme of each idea, and the faults that
// tell them apart. The report has all.
var (
	shownSchemes = []string{"db-version", "hincrby", "lock", "lua-lock", "lua-string"}
	shownFaults  = []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.ReplyLost, faults.StoreLoses}
)

// TestTheREADMEShowsWhatTheFirstCommandFinds compares the matrix and the witness
// in the README with the real ones. UPDATE_README=1 writes them instead.
func TestTheREADMEShowsWhatTheFirstCommandFinds(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	var groups []evidence.ExploreGroup
	for _, e := range schemes.All() {
		if !slices.Contains(shownSchemes, e.Scheme.Name()) {
			continue
		}
		groups = append(groups, evidence.ExploreGroups([]schemes.Entry{e}, shownFaults, []faults.Workload{workload(t, "unit")}, faults.Retries())...)
	}
	cells, err := evidence.FromExplore(t.Context(), lab, groups, evidence.DefaultExploreBounds(), "", nil)
	require.NoError(t, err)
	evidence.Sort(cells)
	found, err := lab.Run(t.Context(), explore.Config{
		Entry: entry(t, "lock"), Workload: workload(t, "unit"), Clients: 3, Stock: 1, Retries: "off",
		Faults: []faults.Kind{faults.ClientPause}, MaxFaults: 1,
	})
	require.NoError(t, err)
	blocks := map[string]string{
		"matrix":  evidence.Report{Cells: cells}.Matrix(),
		"witness": found.Verdicts[model.Oversell].Witness.Timeline(),
	}
	for name, want := range blocks {
		var lines []string
		for _, line := range strings.Split(strings.TrimSpace(want), "\n") {
			lines = append(lines, strings.TrimRight(line, " "))
		}
		requireShown(t, "README.md", name, "```text\n"+strings.Join(lines, "\n")+"\n```")
	}
}

// requireShown compares a marked part of a document with what it should be.
// UPDATE_README=1 writes it instead.
func requireShown(t *testing.T, path, name, want string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	before, rest, ok := strings.Cut(string(raw), "<!-- "+name+" -->\n")
	require.True(t, ok, name)
	shown, after, ok := strings.Cut(rest, "\n<!-- /"+name+" -->")
	require.True(t, ok, name)
	if os.Getenv("UPDATE_README") != "" {
		text := before + "<!-- " + name + " -->\n" + want + "\n<!-- /" + name + " -->" + after
		require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
		return
	}
	require.Equal(t, want, shown, "the part %s of %s is old; UPDATE_README=1 go test -run '%s' . writes it", name, path, t.Name())
}

func TestEveryLinkOfTheREADMEToAFileLeadsToOne(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(raw), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.FileExists(t, link[1])
	}
}

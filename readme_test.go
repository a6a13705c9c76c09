package stockproof_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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

// TestEveryCommandTheREADMEShowsWorks runs what the README shows. make test is
// what runs this test; that make knows it is all that can be asked here.
func TestEveryCommandTheREADMEShowsWorks(t *testing.T) {
	bin := t.TempDir() + "/stockproof"
	out, err := exec.Command("go", "build", "-o", bin, "./cmd/stockproof").CombinedOutput()
	require.NoError(t, err, string(out))
	lines := shellBlocks(t, "README.md")
	require.Greater(t, len(lines), 5)
	for _, line := range lines {
		t.Run(line, func(t *testing.T) {
			words := strings.Fields(line)
			want := 0
			switch {
			case line == "make test":
				words = []string{"make", "--dry-run", "test"}
			case strings.HasPrefix(line, "go run ./cmd/stockproof "):
				words = append([]string{bin}, words[3:]...)
			case words[0] == "stockproof":
				words[0] = bin
			default:
				t.Fatalf("nobody has said how to test %q", line)
			}
			if words[1] == "explore" {
				want = 1 // the scheme shown breaks something, which is what it is shown for
			}
			if words[1] == "verify" {
				if strings.Contains(line, "live") || strings.Contains(line, "all") {
					liveWorld(t) // leaves it out only on request
					words = append(words, "--scheme", "hincrby", "--fault", "none", "--workload", "unit")
				}
				words = append(words, "--out", t.TempDir())
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

func TestEveryLinkOfTheREADMEToAFileLeadsToOne(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	require.NoError(t, err)
	links := regexp.MustCompile(`\]\(([^)#:]+)\)`).FindAllStringSubmatch(string(raw), -1)
	require.NotEmpty(t, links)
	for _, link := range links {
		require.FileExists(t, link[1])
	}
}

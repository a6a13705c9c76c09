package stockproof_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The commands of the page, in a module that did not know of stockproof before.
func TestThePageJudgeYourScheme(t *testing.T) {
	liveWorld(t) // it comes to live runs; leaves it out only on request
	page, err := os.ReadFile("docs/judge-your-scheme.md")
	require.NoError(t, err)
	var script []string
	for _, block := range regexp.MustCompile("(?s)```bash\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		script = append(script, block[1])
	}
	require.Len(t, script, 3)
	repository, err := os.Getwd()
	require.NoError(t, err)
	shop := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(shop, "go.mod"), []byte("module example.com/shop\n\ngo 1.26\n"), 0o666))
	sums, err := os.ReadFile("go.sum") // what is downloaded is what was checked here
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(shop, "go.sum"), sums, 0o666))

	text := strings.Join(script, "")
	text = strings.ReplaceAll(text, "-o bin/stockproof", "-o $BIN/stockproof")
	text = strings.ReplaceAll(text, "\nbin/stockproof", "\n$BIN/stockproof")
	text = strings.ReplaceAll(text, "out/subject", "$BIN/subject")
	cmd := exec.Command("bash", "-euxc", text)
	cmd.Dir = shop
	cmd.Env = append(os.Environ(), "STOCKPROOF="+repository, "BIN="+t.TempDir(), "PWD="+shop)
	if os.Getenv("STOCKPROOF_BACKEND") == "container" {
		text = strings.ReplaceAll(text, "STOCKPROOF_BACKEND=process ", "")
		cmd.Args[2] = text
	}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	require.Equal(t, 2, strings.Count(string(out), "ok  \texample.com/shop/saleproof"), string(out))
	require.FileExists(t, filepath.Join(shop, ".github", "workflows", "stockproof.yml"))
}

// Every page can be come to from the README, or from one that can.
func TestEveryPageIsLinked(t *testing.T) {
	pages, err := filepath.Glob("docs/*.md")
	require.NoError(t, err)
	linked := map[string]bool{}
	var follow func(string)
	follow = func(path string) {
		if linked[path] {
			return
		}
		linked[path] = true
		text, err := os.ReadFile(path)
		require.NoError(t, err, "linked and not there")
		for _, m := range regexp.MustCompile(`\]\(([^)#:]+\.md)[^)]*\)`).FindAllStringSubmatch(string(text), -1) {
			follow(filepath.Join(filepath.Dir(path), m[1]))
		}
	}
	follow("README.md")
	for _, page := range pages {
		require.True(t, linked[page], "%s: no page links to it", page)
	}
}

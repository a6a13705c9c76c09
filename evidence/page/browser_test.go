package page

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// browser finds Chromium. The report is for people in a browser, so a machine
// without one has not tested it.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium on PATH: scripts/setup.sh installs it, or apt-get install chromium")
	return ""
}

// tab is the sample report opened from file:// in a headless browser, with what
// the console said.
type tab struct {
	context.Context
	mu   sync.Mutex
	said []string
}

// limit bounds a browser that hangs; no wait of a test depends on it.
const limit = 2 * time.Minute

func open(t *testing.T, width, height int64, language, hash string) *tab {
	t.Helper()
	_, dir := sampled(t)
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(browser(t)), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("lang", language), chromedp.Flag("accept-lang", language))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium refuses its sandbox to root
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	ctx, cancelAllocator := chromedp.NewExecAllocator(ctx, options...)
	ctx, cancelTab := chromedp.NewContext(ctx)
	t.Cleanup(func() {
		_ = chromedp.Cancel(ctx) // waits for the browser to end
		cancelTab()
		cancelAllocator()
	})
	b := &tab{Context: ctx}
	require.NoError(t, chromedp.Listen(ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			b.said = append(b.said, fmt.Sprintf("console.%s with %d arguments", e.Type, len(e.Args)))
		case *runtime.EventExceptionThrown:
			b.said = append(b.said, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.Exception))
		case *cdplog.EventEntryAdded:
			b.said = append(b.said, e.Entry.Text)
		}
	}))
	address := url.URL{Scheme: "file", Path: filepath.ToSlash(filepath.Join(dir, Name)), Fragment: hash}
	b.do(t, chromedp.EmulateViewport(width, height), chromedp.Navigate(address.String()))
	b.until(t, `document.documentElement.dataset.ready === "yes"`)
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		require.Empty(t, b.said, "the console is silent")
	})
	return b
}

func (b *tab) do(t *testing.T, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	require.NoError(t, chromedp.Do(b, actions...))
}

// until waits for an expression to be true.
func (b *tab) until(t *testing.T, expression string) {
	t.Helper()
	_, err := chromedp.Run(b, chromedp.Poll[bool](expression, chromedp.WithPollingTimeout(limit)))
	require.NoError(t, err, expression)
}

func value[T any](t *testing.T, b *tab, expression string) T {
	t.Helper()
	v, err := chromedp.Run(b, chromedp.Evaluate[T](expression))
	require.NoError(t, err, expression)
	return v
}

// run evaluates what has no value.
func (b *tab) run(t *testing.T, expression string) {
	t.Helper()
	value[bool](t, b, "("+expression+", true)")
}

// choose sets a filter as a person does.
func (b *tab) choose(t *testing.T, filter, value string) {
	t.Helper()
	b.run(t, fmt.Sprintf(`document.querySelector(%[1]q).value = %[2]q, document.querySelector(%[1]q).dispatchEvent(new Event("change", {bubbles: true}))`, filter, value))
}

func (b *tab) text(t *testing.T, selector string) string {
	t.Helper()
	return value[string](t, b, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

const lockPause = `#matrix-grid button[data-scheme="lock"][data-fault="client-pause"]`

func TestBrowser(t *testing.T) {
	t.Run("the first screen says which scheme breaks what", func(t *testing.T) {
		b := open(t, 1280, 800, "en", "")
		require.Contains(t, b.text(t, "h1"), "Which scheme, and what does it break?")
		require.Contains(t, b.text(t, ".headlines .never"), "Never oversold here: db-version")
		require.Contains(t, b.text(t, ".headlines .some"), "hincrby, lock")
		top := value[float64](t, b, `document.querySelector(".glance tbody").getBoundingClientRect().top`)
		require.Less(t, top, 800.0, "the table begins on the first screen")
		require.Equal(t, 4, value[int](t, b, `document.querySelectorAll("#matrix-grid tbody tr").length`))
		require.Contains(t, b.text(t, lockPause), "OTN")
		require.Positive(t, value[int](t, b, `document.querySelectorAll("#any-grid button").length`), "any number of clients stands apart")
		require.Contains(t, b.text(t, "#bounds"), "explore: every interleaving of steps")
		require.Contains(t, b.text(t, "#bounds"), "No run on real servers is in this report.")
		require.Contains(t, b.text(t, "#cost"), "50000")
		// From here on the same page goes on: filters.
		b.choose(t, "#by-property", "lost-units")
		require.Contains(t, b.text(t, lockPause), "✓")
		require.Contains(t, b.text(t, `#matrix-grid button[data-scheme="lock"][data-fault="client-crash"]`), "✕")
		before := b.text(t, "#shown")
		b.choose(t, "#by-retries", "off")
		require.NotEqual(t, before, b.text(t, "#shown"))
	})
	t.Run("a cell opens its witness, by address and by keyboard alone", func(t *testing.T) {
		b := open(t, 1280, 900, "en", "cell/lock/client-pause")
		b.until(t, `document.querySelector("#cell .drawing svg") !== null`)
		require.Contains(t, b.text(t, "#cell-title"), "lock × client-pause")
		require.Contains(t, b.text(t, "#cell .reason"), "sold 2 of 1")
		drawn := value[string](t, b, `document.querySelector("#cell svg").textContent`)
		for _, want := range []string{"a", "b", "Redis", "counter", "HINCRBY", "lock-acquire", "stop", "resumes", "sold", "−1", "pass"} {
			require.Contains(t, drawn, want)
		}
		require.Equal(t, value[int](t, b, `document.querySelectorAll("#cell .steps li").length`), value[int](t, b, `Math.max(...[...document.querySelectorAll("#cell svg .no")].map((e) => Number(e.textContent) || 0))`))
		require.Contains(t, b.text(t, "#cell div.command"), "stockproof replay witnesses/lock.client-pause.unit.retries-off.oversell.schedule")
		b.run(t, `[...document.querySelectorAll("#cell details")].at(-1).open = true`)
		b.until(t, `document.querySelector("#cell iframe")?.srcdoc.includes("const data = ")`)
		// Escape closes, focus goes back to the cell, Enter opens it again.
		b.do(t, chromedp.KeyEvent(kb.Escape))
		b.until(t, `!document.querySelector("#cell").open`)
		b.until(t, fmt.Sprintf("document.activeElement === document.querySelector('%s')", lockPause))
		b.do(t, chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
		b.until(t, `document.querySelector("#cell").open`)
		require.Contains(t, b.text(t, "#cell-title"), "lock × reply-lost", "the next cell")
		require.True(t, value[bool](t, b, `document.querySelector("#cell").contains(document.activeElement)`))
		b.do(t, chromedp.KeyEvent(kb.Escape))
		b.until(t, `!document.querySelector("#cell").open`)
		// The first stop of the keyboard leads past the rest, to the matrix.
		require.Equal(t, "#matrix", value[string](t, b, `document.querySelector("a").getAttribute("href")`))
	})
	t.Run("it speaks Chinese to who reads it, and switches", func(t *testing.T) {
		b := open(t, 1280, 800, "zh-CN", "")
		require.Equal(t, "zh-Hans", value[string](t, b, "document.documentElement.lang"))
		require.Contains(t, b.text(t, "h1"), "哪种方案")
		require.Contains(t, b.text(t, "#matrix-grid thead"), "客户端崩溃")
		require.Contains(t, b.text(t, "#claim-B9 summary"), "哈希标签")
		require.NotContains(t, b.text(t, "#answer"), "scheme")
		b.do(t, chromedp.Click(chromedp.CSS("#language")))
		require.Equal(t, "en", value[string](t, b, "document.documentElement.lang"))
		require.Contains(t, b.text(t, "#matrix-grid thead"), "client-crash")
		require.NotContains(t, b.text(t, "main"), "方案")
	})
	t.Run("a phone never scrolls sideways", func(t *testing.T) {
		b := open(t, 360, 740, "en", "")
		overflow := `document.documentElement.scrollWidth - document.documentElement.clientWidth`
		require.Zero(t, value[int](t, b, overflow))
		require.Zero(t, value[int](t, b, `Math.max(0, ...[...document.querySelectorAll("#matrix-table, .glance")].map((e) => e.scrollWidth - e.clientWidth))`), "the matrix is cards")
		b.run(t, `location.hash = "cell/lock/client-pause"`)
		b.until(t, `document.querySelector("#cell .drawing svg") !== null`)
		require.Zero(t, value[int](t, b, overflow))
		require.Empty(t, value[string](t, b, `[...document.querySelectorAll("#cell *")].filter((e) => !e.closest(".drawing, .steps, pre") && e.getBoundingClientRect().right > 361).map((e) => e.tagName + "." + e.className).join(" ")`))
		require.Zero(t, value[int](t, b, `document.querySelector("#cell").scrollWidth - document.querySelector("#cell").clientWidth`))
	})
}

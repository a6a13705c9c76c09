package catalogue

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults/schedule"
	"stockproof/model"
)

func compareIDs(a, b string) int { return strings.Compare(a, b) }

// reported is how many failures were reported.
const reported = 74

func TestEveryReportedFailureIsRunOrHasAReason(t *testing.T) {
	all := scenarios()
	require.Len(t, all, reported)
	for i, c := range all {
		require.Equal(t, fmt.Sprintf("O-%02d", i+1), c.ID)
		require.NotEmpty(t, c.Title)
		require.NotEqual(t, c.run == nil, c.NotShown == "", "%s: either run or a reason", c.ID)
		require.Equal(t, c.run == nil, len(c.Expected) == 0, c.ID)
	}
}

// What an entry says, on real servers: its numbers, and the laws that it breaks.
func TestReportedFailuresOnRealServers(t *testing.T) {
	set, r, db := openShops(t)
	var mu sync.Mutex
	seen := map[string]Numbers{}
	t.Run(string(set.Backend), func(t *testing.T) {
		for _, c := range scenarios() {
			if c.run == nil {
				continue
			}
			t.Run(c.ID, func(t *testing.T) {
				t.Parallel()
				s := newShop(t, set, r, db, c.ID)
				n := c.run(s)
				require.Empty(t, c.Convict(n), "%s: %s", c.Title, n)
				mu.Lock()
				seen[c.ID] = n
				mu.Unlock()
			})
		}
	})
	if !t.Failed() && len(seen) == reported-len(notShown) {
		requireRecord(t, record(t, seen))
	}
}

// What the schedules that an entry names break is what the entry says; that they are
// true, in explore and live, is for the test of the corpus.
func TestTheSchedulesThatAnEntryNamesBreakWhatItSays(t *testing.T) {
	for _, c := range scenarios() {
		for _, name := range c.Schedules {
			s := readSchedule(t, name)
			shows := slices.ContainsFunc(c.Breaks, s.Shows)
			require.True(t, shows || len(c.Breaks) == 0 && len(s.Violates) > 0, "%s: %s violates %s", c.ID, name, s.ViolatesText())
		}
	}
}

func readSchedule(t *testing.T, name string) *schedule.Schedule {
	s, err := schedule.ReadFile(filepath.Join("..", "testdata", "schedules", name+".schedule"))
	require.NoError(t, err)
	return s
}

func TestANumberALawAndAnEntryThatAreOtherwiseAreConvicted(t *testing.T) {
	e := Entry{Breaks: laws(model.Oversell), Expected: Numbers{"S": 1, "yes": 2, "final": 0}}
	seen := Numbers{"S": 1, "R": 2, "yes": 2, "final": 0}
	require.Empty(t, e.Convict(seen))
	for name := range e.Expected {
		other := Numbers{}
		for k, v := range seen {
			other[k] = v
		}
		other[name]++
		require.NotEmpty(t, e.Convict(other), name)
		delete(other, name)
		require.NotEmpty(t, e.Convict(other), name)
	}
	for _, p := range []model.Property{model.NegativePermanent, model.NegativeTransient, model.LostUnits, model.PhantomUnits, model.DoubleSale, model.OrderMismatch, model.FalseSoldOut, model.Stuck} {
		e.Breaks = laws(p)
		require.NotEmpty(t, e.Convict(seen), p)
	}
}

func TestLawsFollowFromNumbers(t *testing.T) {
	for text, want := range map[string][]model.Property{
		"S=2 R=2 yes=2 final=0":           nil,
		"S=2 R=3 yes=2 refused=1 final=0": nil,
		"S=1 yes=2 final=0":               {model.Oversell},
		"S=1 yes=1 orders=2 final=0":      {model.Oversell, model.OrderMismatch},
		"S=1 yes=1 final=-1":              {model.NegativePermanent, model.LostUnits},
		"S=1 yes=1 lowest=-1 final=0":     {model.NegativeTransient},
		"S=2 yes=0 final=1":               {model.LostUnits},
		"S=2 back=1 yes=2 final=1":        nil,
		"S=2 yes=1 final=2":               {model.PhantomUnits},
		"S=2 yes=1 refused=1 final=1":     {model.FalseSoldOut},
		"S=5 mine=2 yes=2 final=3":        {model.DoubleSale},
		"S=5 R=2 yes=0 errors=2 final=5":  {model.Stuck},
		"S=5 R=2 yes=1 errors=1 final=4":  nil,
	} {
		n := Numbers{}
		for _, word := range strings.Fields(text) {
			name, value, _ := strings.Cut(word, "=")
			v, err := strconv.ParseInt(value, 10, 64)
			require.NoError(t, err)
			n[name] = v
		}
		require.Equal(t, want, n.Laws(), text)
		require.ElementsMatch(t, strings.Fields(text), strings.Fields(n.String()), text)
	}
}

const recordFile = "../docs/track-record.md"

// record is the table of docs/track-record.md.
func record(t *testing.T, seen map[string]Numbers) string {
	var b strings.Builder
	b.WriteString("| entry | failure | scheme | fault | laws broken | expected | seen on real servers | with the code of a scheme, explore and live |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range scenarios() {
		if c.run == nil {
			continue
		}
		var broken, schedules []string
		for _, p := range c.Breaks {
			broken = append(broken, string(p))
		}
		for _, name := range c.Schedules {
			s := readSchedule(t, name)
			schedules = append(schedules, fmt.Sprintf("[%s](../testdata/schedules/%s.schedule): S=%d, %s", name, name, s.Stock, s.ViolatesText()))
		}
		title, expected, came := c.Title, c.Expected, seen[c.ID].String()
		if c.Otherwise != "" {
			title += " ¹"
		}
		if c.Reported != nil {
			expected = c.Reported
		}
		if c.Built {
			came += " (by construction)"
		}
		if c.Says != "" {
			broken = append(broken, "reported: "+c.Says)
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.ID, title, c.Scheme, c.Fault, strings.Join(broken, ", "), expected, came, strings.Join(schedules, "<br>"))
	}
	b.WriteString("\n¹ Not as reported, or not only:\n\n")
	for _, c := range scenarios() {
		if c.Otherwise != "" {
			fmt.Fprintf(&b, "- **%s** %s.\n", c.ID, c.Otherwise)
		}
	}
	b.WriteString("\nNot run:\n\n")
	for _, c := range scenarios() {
		if c.run == nil {
			fmt.Fprintf(&b, "- **%s** %s: %s.\n", c.ID, c.Title, c.NotShown)
		}
	}
	return b.String()
}

// requireRecord compares the table with the one in the page; UPDATE_TRACK_RECORD=1
// writes it instead.
func requireRecord(t *testing.T, table string) {
	const begin, end = "<!-- record -->\n", "<!-- /record -->"
	page, err := os.ReadFile(recordFile)
	require.NoError(t, err)
	head, rest, found := strings.Cut(string(page), begin)
	require.True(t, found)
	old, tail, found := strings.Cut(rest, end)
	require.True(t, found)
	if os.Getenv("UPDATE_TRACK_RECORD") != "" {
		require.NoError(t, os.WriteFile(recordFile, []byte(head+begin+table+end+tail), 0o644))
		return
	}
	require.Equal(t, table, old, "UPDATE_TRACK_RECORD=1 go test ./catalogue writes it")
}

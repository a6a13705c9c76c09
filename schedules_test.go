package stockproof_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/live"
	"stockproof/model"
	"stockproof/schemes"
)

const scheduleFolder = "testdata/schedules"

// TestSchedules replays every schedule of testdata/schedules: to add a test, add
// a file. Where there is none for a known weakness, or one is no longer the
// shortest way to see it, UPDATE_SCHEDULES=1 go test -run Schedules . writes
// the files and the table of docs/schedules.md; comments in them are kept. The
// name of a scheme instead of the 1 writes the files of that one only, and
// UPDATE_SCHEDULES=missing leaves the files that are there as they are.
func TestSchedules(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	if os.Getenv("UPDATE_SCHEDULES") != "" {
		writeSchedules(t, lab)
	}
	for _, path := range scheduleFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".schedule"), func(t *testing.T) {
			s, err := schedule.ReadFile(path)
			require.NoError(t, err)
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			require.Equal(t, s.String(), string(text), "the file is as it would be printed")
			require.NotEmpty(t, s.Notes[schedule.PartVersion].Above, "a comment at the top says what one sees")
		})
		for _, world := range scheduleWorlds {
			s, err := schedule.ReadFile(path)
			require.NoError(t, err)
			if world.cannot(s) != "" {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(path), ".schedule")+"/"+world.name, func(t *testing.T) {
				require.NoError(t, world.replay(t, lab, s), path)
			})
		}
	}
	compareDocs(t)
}

// scheduleWorlds are the worlds in which schedules are replayed. cannot is why a
// world cannot replay a schedule, empty where it can; docs/schedules.md tells
// it, so nothing is left out unseen.
var scheduleWorlds = []struct {
	name   string
	cannot func(*schedule.Schedule) string
	replay func(*testing.T, *explore.Lab, *schedule.Schedule) error
}{
	{
		name:   "explore",
		cannot: func(*schedule.Schedule) string { return "" },
		replay: func(_ *testing.T, lab *explore.Lab, s *schedule.Schedule) error { return lab.Replay(s, "miniredis") },
	},
	{
		name:   "live",
		cannot: func(s *schedule.Schedule) string { return strings.Join(live.Cannot(s), "; ") },
		replay: func(t *testing.T, _ *explore.Lab, s *schedule.Schedule) error {
			t.Parallel()
			return liveWorld(t).Replay(t.Context(), s, live.ReplayOptions{})
		},
	},
}

// compareDocs holds what docs/schedules.md shows against the files;
// UPDATE_SCHEDULES=1 writes it.
func compareDocs(t *testing.T) {
	const doc, shownFile = "docs/schedules.md", scheduleFolder + "/lock-pause-oversell.schedule"
	s, err := schedule.ReadFile(shownFile)
	require.NoError(t, err)
	raw, err := os.ReadFile(doc)
	require.NoError(t, err)
	text := string(raw)
	for name, want := range map[string]string{
		"example":   "```text\n" + s.String() + "```\n",
		"ascii":     "```text\n" + s.ASCII() + "```\n",
		"mermaid":   "```mermaid\n" + s.Mermaid() + "```\n",
		"schedules": scheduleTable(t),
	} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, ok := strings.Cut(text, begin)
		require.True(t, ok, "%s shows no %s", doc, name)
		shown, after, ok := strings.Cut(rest, end)
		require.True(t, ok, "the %s of %s has no end", name, doc)
		if os.Getenv("UPDATE_SCHEDULES") != "" {
			text = before + begin + want + end + after
			continue
		}
		require.Equal(t, want, shown, "the %s of %s is old; UPDATE_SCHEDULES=1 go test -run Schedules . writes it", name, doc)
	}
	if os.Getenv("UPDATE_SCHEDULES") != "" {
		require.NoError(t, os.WriteFile(doc, []byte(text), 0o644))
	}
}

func scheduleTable(t *testing.T) string {
	var b strings.Builder
	b.WriteString("| weakness | scheme | go-redis retries | violates | steps | worlds |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, path := range scheduleFiles(t) {
		s, err := schedule.ReadFile(path)
		require.NoError(t, err)
		var worlds []string
		for _, world := range scheduleWorlds {
			if why := world.cannot(s); why != "" {
				worlds = append(worlds, "not "+world.name+": "+why)
			} else {
				worlds = append(worlds, world.name)
			}
		}
		name := strings.TrimSuffix(filepath.Base(path), ".schedule")
		fmt.Fprintf(&b, "| [%s](../%s) | %s | %s | %s | %d | %s |\n",
			strings.TrimPrefix(name, s.Scheme+"-"), path, s.Scheme, s.Retries, s.ViolatesText(), len(s.Steps), strings.Join(worlds, ", "))
	}
	return b.String()
}

func scheduleFiles(t *testing.T) []string {
	files, err := filepath.Glob(filepath.Join(scheduleFolder, "*.schedule"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// alterations are ways to make a schedule tell something else than what happens.
// Each answers the line at which that must be noticed, 0 when the schedule has
// nothing to alter.
var alterations = []struct {
	what  string
	alter func(*schedule.Schedule) int
}{
	{"reply", func(s *schedule.Schedule) int {
		i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Reply.Kind != schedule.None })
		s.Steps[i].Reply = schedule.Reply{Kind: schedule.Error, Text: "OTHER"}
		return s.Steps[i].Note.Line
	}},
	{"outcome", func(s *schedule.Schedule) int {
		last := &s.Outcomes[len(s.Outcomes)-1]
		if last.Outcome == model.Failed {
			last.Outcome = model.Unknown
		} else {
			last.Outcome = model.Failed
		}
		return s.Notes[schedule.PartOutcome].Line
	}},
	{"stock", func(s *schedule.Schedule) int {
		s.Final = schedule.Stock{Known: true, Units: s.Final.Units + 1} // also where it cannot be read
		return s.Notes[schedule.PartFinal].Line
	}},
	{"violates", func(s *schedule.Schedule) int {
		if len(s.Violates) == 0 {
			s.Violates = []schedule.Violation{{Property: model.Stuck, Amount: 1}}
		} else {
			s.Violates[0].Amount++
		}
		return s.Notes[schedule.PartViolates].Line
	}},
	{"two steps of a client in the other order", func(s *schedule.Schedule) int {
		for i := range s.Steps[1:] {
			a, b := &s.Steps[i], &s.Steps[i+1]
			if a.Kind == schedule.Command && b.Kind == schedule.Command && a.Client == b.Client && a.Action() != b.Action() &&
				a.Fault == "" && a.Reply.Kind != schedule.Blocked && !strings.Contains(a.Action()+b.Action(), "lock-renew") {
				a.Note, b.Note = b.Note, a.Note
				*a, *b = *b, *a
				return a.Note.Line
			}
		}
		return 0
	}},
	{"a step less", func(s *schedule.Schedule) int {
		for i := range s.Steps[1:] {
			a, b := &s.Steps[i], &s.Steps[i+1]
			if a.Kind == schedule.Command && b.Kind == schedule.Command && a.Client == b.Client && a.Action() != b.Action() &&
				len(a.Answers) == 0 && a.Fault == "" && a.Reply.Kind != schedule.Blocked && !strings.Contains(a.Action()+b.Action(), "lock-renew") {
				line := b.Note.Line
				s.Steps = slices.Delete(s.Steps, i, i+1)
				return line
			}
		}
		return 0
	}},
	{"an answer less", func(s *schedule.Schedule) int {
		for i := range s.Steps {
			if st := &s.Steps[i]; len(st.Answers) > 0 {
				st.Answers = nil
				return st.Note.Line
			}
		}
		return 0
	}},
	{"violates nothing", func(s *schedule.Schedule) int {
		if len(s.Violates) == 0 {
			return 0
		}
		s.Violates = nil
		return s.Notes[schedule.PartViolates].Line
	}},
}

// A schedule in which one reply, outcome, stock or law is another one, or two
// steps stand in the other order, is refused at that line: in explore every file
// of the corpus with every alteration, in live every file with one of them; where
// a server restarts or stands still, with one that tells without regard to time.
func TestAnAlteredScheduleIsRefusedAtTheAlteredLine(t *testing.T) {
	lab := explore.NewLab()
	t.Cleanup(func() { require.NoError(t, lab.Close()) })
	refused := map[string]int{}
	for n, path := range scheduleFiles(t) {
		for _, a := range alterations {
			s, err := schedule.ReadFile(path)
			require.NoError(t, err)
			line := a.alter(s)
			if line == 0 {
				continue
			}
			next := line // which a client's answer may meet in live: it comes when it comes
			if i := slices.IndexFunc(s.Steps, func(st schedule.Step) bool { return st.Note.Line > line }); i >= 0 && a.what == "an answer less" {
				next = s.Steps[i].Note.Line
			}
			for _, world := range scheduleWorlds {
				if world.cannot(s) != "" || world.name == "live" && a.what != alteredLive(s, n) {
					continue
				}
				refused[world.name+" "+a.what]++
				t.Run(fmt.Sprintf("%s/%s/%s", filepath.Base(path), a.what, world.name), func(t *testing.T) {
					var diverged *schedule.DivergenceError
					require.ErrorAs(t, world.replay(t, lab, s), &diverged)
					if world.name == "live" && diverged.Line == next {
						return
					}
					require.Equal(t, line, diverged.Line, "%v", diverged)
				})
			}
		}
	}
	for _, world := range scheduleWorlds {
		for _, a := range alterations {
			require.NotZero(t, refused[world.name+" "+a.what], "%s: %s", world.name, a.what)
		}
	}
}

// alteredLive names the alteration of the n-th file that is tried on real servers.
func alteredLive(s *schedule.Schedule, n int) string {
	if slices.ContainsFunc(s.Faults(), faults.HitsServer) {
		return []string{"outcome", "stock"}[n%2]
	}
	return alterations[n%len(alterations)].what
}

// weakness is what one file of the corpus shows.
type weakness struct {
	entry    schemes.Entry
	fault    faults.Kind
	setting  faults.Setting
	retries  string
	property model.Property
	why      string
}

// serious orders the properties by what they cost: a weakness is named after
// the first that it breaks.
var serious = []model.Property{model.Oversell, model.DoubleSale, model.LostUnits, model.PhantomUnits, model.OrderMismatch,
	model.FalseSoldOut, model.NonLinearizable, model.NegativePermanent, model.DoubleDeduct, model.NegativeTransient, model.Stuck, model.Unsold}

// ofTheWider are the faults for whose weaknesses schemes of the wider set have a
// file: those that tell them apart. Lost messages and a Redis that loses writes
// do to them what they do to the others.
var ofTheWider = []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.RequestDelayed}

// weaknesses lists what the schemes declare that explore must show: for each
// scheme and fault the most serious property that is not broken without the
// fault too, once without the retries of go-redis and once with them where that
// is another one. Of schemes of the wider set there are fewer: see telling and
// ofTheWider.
func weaknesses() (list []weakness) {
	for _, e := range schemes.All() {
		from := len(list)
		anyway := map[model.Property]string{}
		for _, retries := range []string{"off", "default"} {
			for p, why := range declaredOf(e, string(faults.None), retries) {
				anyway[p] = why
			}
		}
		for _, kind := range evidence.ExploreKinds() {
			for _, setting := range evidence.SettingsFor(e, kind) {
				var before model.Property
				for _, retries := range faults.RetriesFor(kind) {
					if _, one := telling[e.Scheme.Name()]; e.Wider && !one && (retries != "off" || !slices.Contains(ofTheWider, kind)) {
						continue
					}
					says := declaredOf(e, faults.Row(kind, setting), retries)
					for _, p := range serious {
						why, ok := says[p]
						if _, free := anyway[p]; !ok || free && kind != faults.None {
							continue
						}
						if p != before {
							list = append(list, weakness{e, kind, setting, retries, p, why})
						}
						before = p
						break
					}
				}
			}
		}
		if tells, one := telling[e.Scheme.Name()]; one {
			kept := slices.DeleteFunc(list[from:], func(w weakness) bool {
				return w.retries != "off" || w.fault != tells.fault || w.property != tells.property
			})
			list = list[:from+len(kept)]
		}
	}
	return list
}

// telling is, of schemes of the wider set, the weakness that tells one from the
// others: that a buyer who dies takes a unit along is true of most.
var telling = map[string]struct {
	fault    faults.Kind
	property model.Property
}{
	"watch-multi": {faults.None, model.Unsold},
	"setnx-lock":  {faults.ClientPause, model.Oversell},
	"token-list":  {faults.None, model.FalseSoldOut},
	"segmented":   {faults.None, model.FalseSoldOut},
	"lua-journal": {faults.DuplicateRequest, model.DoubleSale},
	"lock-fenced": {faults.ClientPause, model.Oversell},
}

// declaredOf are the properties that a scheme declares broken in explore, in
// any workload, and why.
func declaredOf(e schemes.Entry, row, retries string) map[model.Property]string {
	says := map[model.Property]string{}
	for _, w := range e.Guarantees.Weaknesses {
		if kind, _, _ := strings.Cut(row, "("); w.Fault != kind && w.Fault != row || w.World == "live" || w.Retries != "" && w.Retries != retries {
			continue
		}
		for _, p := range w.Breaks {
			says[p] = w.Why
		}
	}
	return says
}

// faultNames are the faults in the names of files.
var faultNames = map[faults.Kind]string{faults.ClientCrash: "crash", faults.ClientPause: "pause", faults.DuplicateRequest: "submitted-twice"}

func (w weakness) file() string {
	parts := []string{w.entry.Scheme.Name()}
	if name, ok := faultNames[w.fault]; ok {
		parts = append(parts, name)
	} else if w.fault != faults.None {
		parts = append(parts, string(w.fault))
	}
	if w.setting != faults.NoSetting {
		parts = append(parts, string(w.setting))
	}
	if w.retries == "default" {
		parts = append(parts, "retried")
	}
	return strings.Join(append(parts, string(w.property)), "-") + ".schedule"
}

// Every known weakness has its file, which shows it.
func TestEveryKnownWeaknessHasASchedule(t *testing.T) {
	for _, w := range weaknesses() {
		s, err := schedule.ReadFile(filepath.Join(scheduleFolder, w.file()))
		require.NoError(t, err, "UPDATE_SCHEDULES=1 go test -run Schedules . writes it")
		require.Equal(t, w.entry.Scheme.Name(), s.Scheme, w.file())
		require.Equal(t, []faults.Kind{w.fault}, s.Faults(), w.file())
		require.Equal(t, w.retries, s.Retries, w.file())
		require.True(t, slices.ContainsFunc(s.Violates, func(v schedule.Violation) bool { return v.Property == w.property }), w.file())
	}
}

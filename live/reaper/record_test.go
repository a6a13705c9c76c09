package reaper

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhatIsTakenOffTheListIsLeftAlone(t *testing.T) {
	in := `{"id":1,"kind":"dir","path":"/tmp/stockproof-a"}
{"id":2,"kind":"process","pid":77,"start":5}
{"id":1,"kind":"done"}
{"id":3,"kind":"containers","label":"k=v"}
`
	var complaints []error
	got := readRecords(strings.NewReader(in), func(err error) { complaints = append(complaints, err) })
	require.Empty(t, complaints)
	require.Equal(t, []record{{ID: 2, Kind: kindProcess, PID: 77, Start: 5}, {ID: 3, Kind: kindContainers, Label: "k=v"}}, got)
}

func TestABadLineIsReportedAndTheRestStillCounts(t *testing.T) {
	good := `{"id":9,"kind":"dir","path":"/tmp/stockproof-a"}` + "\n"
	for name, bad := range map[string]string{
		"not JSON":            "garbage\n",
		"unknown kind":        `{"id":1,"kind":"world"}` + "\n",
		"root folder":         `{"id":1,"kind":"dir","path":"/"}` + "\n",
		"a folder not ours":   `{"id":1,"kind":"dir","path":"/home/stockproof"}` + "\n",
		"a way out":           `{"id":1,"kind":"dir","path":"/tmp/stockproof-a/.."}` + "\n",
		"relative folder":     `{"id":1,"kind":"dir","path":"stockproof-a"}` + "\n",
		"init":                `{"id":1,"kind":"process","pid":1,"start":1}` + "\n",
		"every process":       `{"id":1,"kind":"process","pid":-1,"start":1}` + "\n",
		"no start time":       `{"id":1,"kind":"process","pid":50}` + "\n",
		"no such signal":      `{"id":1,"kind":"process","pid":50,"start":1,"signal":99}` + "\n",
		"family, no mark":     `{"id":1,"kind":"family","pid":50,"start":1}` + "\n",
		"family, short mark":  `{"id":1,"kind":"family","pid":50,"start":1,"label":"A=b"}` + "\n",
		"every container":     `{"id":1,"kind":"containers","label":""}` + "\n",
		"label without value": `{"id":1,"kind":"containers","label":"k="}` + "\n",
		"too long":            strings.Repeat("x", 3*maxLine) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			complaints := 0
			got := readRecords(strings.NewReader(bad+good), func(error) { complaints++ })
			require.Equal(t, 1, complaints)
			require.Equal(t, []record{{ID: 9, Kind: kindDir, Path: "/tmp/stockproof-a"}}, got)
		})
	}
}

func TestATornLastLineDoesNotCount(t *testing.T) {
	in := `{"id":1,"kind":"dir","path":"/tmp/stockproof-a"}` + "\n" + `{"id":2,"kind":"dir","path":"/tmp/stockproof-b"}`
	got := readRecords(strings.NewReader(in), func(err error) { t.Error(err) })
	require.Len(t, got, 1)
}

func FuzzRecords(f *testing.F) {
	f.Add(`{"id":2,"kind":"process","pid":77,"start":5}` + "\n" + `{"id":2,"kind":"done"}` + "\n")
	f.Add(`{"id":3,"kind":"memory","pid":12,"segment":4}` + "\n")
	f.Add(strings.Repeat("a", maxLine+3) + "\n{}\n")
	f.Fuzz(func(t *testing.T, in string) {
		for _, rec := range readRecords(strings.NewReader(in), func(error) {}) {
			require.NoError(t, rec.valid(), "nothing invalid reaches the part that kills and deletes")
			line, err := json.Marshal(rec)
			require.NoError(t, err)
			require.Equal(t, []record{rec}, readRecords(strings.NewReader(string(line)+"\n"), func(err error) { t.Error(err) }))
		}
	})
}

func TestAProcessNameCannotConfuseTheStatusLine(t *testing.T) {
	line := func(name string) string {
		return fmt.Sprintf("42 (%s) S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1000 10 0", name)
	}
	want := stat{parent: 7, group: 8, session: 9, state: 'S', start: 123456}
	for _, name := range []string{"sleep", "a b", ") R 1 1 1", "(", "", "))"} {
		got, err := parseStat(line(name))
		require.NoError(t, err, name)
		require.Equal(t, want, got, name)
	}
	for _, bad := range []string{"", "42", "42 (x)", "42 (x) S 1 2", strings.Replace(line("x"), " 123456 ", " soon ", 1)} {
		_, err := parseStat(bad)
		require.Error(t, err, bad)
	}
	own, err := readStat(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, os.Getppid(), own.parent)
}

func FuzzStat(f *testing.F) {
	f.Add("42 (sleep) S 7 8 9 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 123456 1000 10 0")
	f.Add("1 ((a) b) Z 1 1 1")
	f.Fuzz(func(t *testing.T, line string) {
		if st, err := parseStat(line); err != nil {
			require.Zero(t, st)
		}
	})
}

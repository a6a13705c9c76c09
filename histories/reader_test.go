package histories

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What the fast parser accepts, encoding/json must accept with the same result.
func FuzzPlainLinesSayWhatJSONSays(f *testing.F) {
	for _, line := range []string{
		`{"client":0,"op":"deduct","qty":1,"call":10,"return":null,"outcome":"unknown","request":"a.1"}`,
		`{"client":-0, "op":"read","call":-12,"return":18446744073709551616,"outcome":"value","value":3}`,
		`{"client":1,"client":2}`, `{"CLIENT":1}`, `{"client":01}`, `{"client":1.0}`, `{"client":1e2}`, `{"client":- 1}`, `{"request":"\u0061"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		plain, ok := parsePlain(raw)
		if !ok {
			return
		}
		var l operationLine
		require.NoError(t, strict(raw, &l))
		require.Equal(t, l, plain)
	})
}

func TestTheLinesOfTheCorpusAreReadTheFastWay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus, "*.jsonl"))
	require.NoError(t, err)
	n := 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, line := range bytes.Split(bytes.TrimSpace(raw), []byte("\n"))[1:] {
			_, ok := parsePlain(line)
			require.True(t, ok, "%s: %s", file, line)
			n++
		}
	}
	require.Greater(t, n, 1000)
}

func FuzzDecodeAudits(f *testing.F) {
	f.Add([]byte(`{"sku":"s","audited":99,"stock":1}` + "\n" + `{"sku":"s","request":"a","qty":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		audits, err := DecodeAudits(bytes.NewReader(raw), "f")
		if err != nil {
			var line *LineError
			require.ErrorAs(t, err, &line)
			return
		}
		for _, a := range audits {
			for _, o := range a.Orders {
				require.NotEmpty(t, o.Request)
				require.Positive(t, o.Qty)
			}
		}
	})
}

// longHistory is n deducts of one unit by one client, the last one sold too
// much when that is wanted.
type longHistory struct {
	n, at int
	over  bool
	rest  []byte
}

func (l *longHistory) Read(p []byte) (int, error) {
	for len(l.rest) < 4096 && l.at <= l.n {
		if l.at == 0 {
			initial := l.n
			if l.over {
				initial--
			}
			l.rest = fmt.Appendf(l.rest, `{"sku":"s","initial":%d}`+"\n", initial)
		} else {
			l.rest = fmt.Appendf(l.rest, `{"client":0,"op":"deduct","qty":1,"call":%d,"return":%d,"outcome":"sold","request":"r%d"}`+"\n", l.at*10, l.at*10+5, l.at)
		}
		l.at++
	}
	if len(l.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func TestAHistoryTooLongToKeepIsJudgedWhileItIsRead(t *testing.T) {
	loaded := mostLoaded
	mostLoaded = 500
	t.Cleanup(func() { mostLoaded = loaded })
	for _, over := range []bool{false, true} {
		path := filepath.Join(t.TempDir(), "long.jsonl")
		f, err := os.Create(path)
		require.NoError(t, err)
		_, err = io.Copy(f, &longHistory{n: 1000, over: over})
		require.NoError(t, err)
		require.NoError(t, f.Close())
		file, err := Scan(path, Options{})
		require.NoError(t, err)
		reports, err := file.Judge()
		require.NoError(t, err)
		require.Len(t, reports, 1)
		require.Equal(t, 1000, reports[0].Operations)
		if !over {
			require.Equal(t, Linearizable, reports[0].Verdict)
			require.Empty(t, reports[0].Laws)
			continue
		}
		require.Equal(t, NonLinearizable, reports[0].Verdict)
		require.EqualValues(t, 1, reports[0].Laws[0].Amount)
		require.Equal(t, 1000, reports[0].Explanation.Operation)
	}
}

func TestAnotherHeaderBeginsAnotherHistoryWithItsOwnClock(t *testing.T) {
	text := `{"sku":"a","initial":1}
{"client":0,"op":"deduct","qty":1,"call":50,"return":90,"outcome":"sold","request":"r"}
{"sku":"b","initial":1}
{"client":0,"op":"deduct","qty":1,"call":5,"return":9,"outcome":"sold","request":"r"}
`
	r := NewReader(strings.NewReader(text), "f")
	for _, sku := range []string{"a", "b"} {
		h, err := r.NextHistory()
		require.NoError(t, err)
		require.Equal(t, sku, h.SKU)
		_, err = r.NextOperation()
		require.NoError(t, err)
		_, err = r.NextOperation()
		require.Equal(t, io.EOF, err)
	}
	_, err := r.NextHistory()
	require.Equal(t, io.EOF, err)
	twice := NewReader(strings.NewReader(text+`{"sku":"a","initial":1}`), "f")
	for range 2 {
		_, err = twice.NextHistory()
		require.NoError(t, err)
		for err == nil {
			_, err = twice.NextOperation()
		}
	}
	_, err = twice.NextHistory()
	require.ErrorContains(t, err, `f:5: a second header of sku "a", the first is in line 1`)
}

// BenchmarkReader is the time of one line.
func BenchmarkReader(b *testing.B) {
	r := NewReader(&longHistory{n: b.N}, "f")
	_, err := r.NextHistory()
	require.NoError(b, err)
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := r.NextOperation(); err != nil {
			b.Fatal(err)
		}
	}
}

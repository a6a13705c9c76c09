package histories

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"stockproof/model"
)

const corpus = "../testdata/histories"

func corpusVerdicts(t *testing.T) map[string]bool {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(corpus, "verdicts.json"))
	require.NoError(t, err)
	var verdicts map[string]bool
	require.NoError(t, json.Unmarshal(raw, &verdicts))
	require.NotEmpty(t, verdicts)
	return verdicts
}

func TestEveryHistoryOfTheCorpusGetsItsKnownVerdict(t *testing.T) {
	for name, legal := range corpusVerdicts(t) {
		t.Run(name, func(t *testing.T) {
			h, err := ReadFile(filepath.Join(corpus, name+".jsonl"))
			require.NoError(t, err)
			want := NonLinearizable
			if legal {
				want = Linearizable
			}
			c, err := Check(h, 20*time.Second, t.TempDir())
			require.NoError(t, err)
			require.Equal(t, want, c.Verdict)
			require.Equal(t, want, c.Exact.Ruling, "the stock checker needs no help")
		})
	}
}

func TestEveryHistoryFileHasAVerdict(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(corpus, "*.jsonl"))
	require.NoError(t, err)
	verdicts := corpusVerdicts(t)
	require.Len(t, files, len(verdicts))
	for _, f := range files {
		require.Contains(t, verdicts, strings.TrimSuffix(filepath.Base(f), ".jsonl"))
	}
}

func TestWhatNeitherCheckerDecidesIsUndecidedAndNotEvaluated(t *testing.T) {
	h := History{Initial: 2000}
	for i := range 400 { // every operation concurrent with every other
		h.Ops = append(h.Ops, model.Operation{Client: i, Op: model.Restock, Qty: 3 + int64(i%50), Call: 0, Return: 2, Outcome: model.OK})
		h.Ops = append(h.Ops, model.Operation{Client: 400 + i, Op: model.Read, Call: 0, Return: 1, Outcome: model.Value, Value: 2001 + int64(i)})
	}
	c := CheckExactly(h, model.Limits{Work: 10})
	require.Equal(t, Undecided, c.Verdict)
	require.False(t, c.Finding().Evaluated)
}

func TestTheStockCheckerDecidesWherePorcupineHasNoTime(t *testing.T) {
	h := History{Initial: 2000}
	for i := range 4000 { // every operation concurrent with every other, and one sale too many
		h.Ops = append(h.Ops, model.Operation{Client: i, Op: model.Deduct, Qty: 1 + int64(i%2), Call: 0, Return: 1, Outcome: model.Sold})
	}
	c, err := Check(h, time.Nanosecond, t.TempDir())
	require.NoError(t, err)
	require.Equal(t, Undecided, c.Porcupine)
	require.Equal(t, NonLinearizable, c.Verdict)
}

// A checker that is wrong must stop everything, and leave what it was wrong on.
func TestCheckersThatDisagreeAreAnInternalErrorAndTheHistoryIsSaved(t *testing.T) {
	h, err := ReadFile(filepath.Join(corpus, "002_one_sold.jsonl"))
	require.NoError(t, err)
	for name, lie := range map[string]func(*Checked){
		"another verdict":                        func(c *Checked) { c.Verdict, c.Exact.Order = NonLinearizable, nil },
		"a linearization that is none":           func(c *Checked) { c.Exact.Order = []int{0, 0} },
		"a linearization with something missing": func(c *Checked) { c.Exact.Order = []int{} },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			c, err := Check(h, time.Minute, dir)
			require.NoError(t, err)
			lie(&c)
			require.ErrorIs(t, c.settle(dir), ErrDisagree)
			saved, err := filepath.Glob(filepath.Join(dir, "disagreement-*.jsonl"))
			require.NoError(t, err)
			require.Len(t, saved, 1)
			again, err := ReadFile(saved[0])
			require.NoError(t, err)
			require.Equal(t, h, again)
		})
	}
}

func TestThePictureOfAnIllegalHistoryIsWritten(t *testing.T) {
	h, err := ReadFile(filepath.Join(corpus, "005_oversell_by_one_concurrent.jsonl"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "pictures", "h.html")
	c, err := Check(h, time.Minute, "")
	require.NoError(t, err)
	require.True(t, c.Finding().Broken)
	require.NoError(t, c.Picture(path))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "deduct(1) → sold")
}

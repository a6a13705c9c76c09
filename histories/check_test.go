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
			require.Equal(t, want, Check(h, 20*time.Second).Verdict)
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

func TestAHistoryPorcupineCannotDecideInTimeIsUndecidedAndNotEvaluated(t *testing.T) {
	h := History{Initial: 2000}
	for i := range 4000 { // every operation concurrent with every other, and one sale too many
		h.Ops = append(h.Ops, model.Operation{Client: i, Op: model.Deduct, Qty: 1 + int64(i%2), Call: 0, Return: 1, Outcome: model.Sold})
	}
	c := Check(h, time.Nanosecond)
	require.Equal(t, Undecided, c.Verdict)
	require.False(t, c.Finding().Evaluated)
}

func TestThePictureOfAnIllegalHistoryIsWritten(t *testing.T) {
	h, err := ReadFile(filepath.Join(corpus, "005_oversell_by_one_concurrent.jsonl"))
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "pictures", "h.html")
	c := Check(h, time.Minute)
	require.True(t, c.Finding().Broken)
	require.NoError(t, c.Picture(path))
	page, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(page), "deduct(1) → sold")
}

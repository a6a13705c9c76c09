package histories

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/model"
)

func TestAHistoryThatIsSavedWhileRecordedIsReadableAtEveryMoment(t *testing.T) {
	r := NewRecorder("n", "s", 3)
	before := r.Call(0, model.Deduct, 1, "a.1")
	path := filepath.Join(t.TempDir(), "deep", "h.jsonl")
	require.NoError(t, r.SaveTo(path))
	same := func() {
		t.Helper()
		back, err := ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, r.History(), back)
	}
	same()
	reads := r.Call(1, model.Read, 0, "")
	same()
	r.Return(before, model.SoldOut, 0)
	same()
	r.Return(reads, model.Value, -1<<62)
	same()
	died := r.Call(2, model.Deduct, 2, "b.1 <&> \"quoted\"")
	doubt := r.Call(3, model.Deduct, 2, "c.1")
	r.Return(doubt, model.Unknown, 0)
	same()
	require.True(t, r.History().Ops[died].Open)
	require.NoError(t, r.Close())
	require.NoError(t, r.Close(), "twice is harmless")
	same()
}

func TestAHistoryThatCannotBeSavedSaysSo(t *testing.T) {
	r := NewRecorder("n", "s", 3)
	require.Error(t, r.SaveTo(filepath.Join(os.DevNull, "h.jsonl")))
	require.NoError(t, r.SaveTo(filepath.Join(t.TempDir(), "h.jsonl")))
	require.NoError(t, r.saved.file.Close())
	r.Call(0, model.Deduct, 1, "a.1")
	require.ErrorContains(t, r.Close(), "save the history")
}

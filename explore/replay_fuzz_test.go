package explore

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/engines/redisstore"
	"stockproof/faults/schedule"
	"stockproof/schemes"
)

// Whatever stands in a schedule, a replay ends with an answer or with the line
// at which it went another way.
func FuzzReplay(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "testdata", "schedules", "*.schedule"))
	require.NoError(f, err)
	require.NotEmpty(f, files)
	for _, path := range files {
		text, err := os.ReadFile(path)
		require.NoError(f, err)
		f.Add(string(text))
	}
	engine, err := redisstore.NewMini()
	require.NoError(f, err)
	f.Cleanup(func() { engine.Close() })
	f.Fuzz(func(t *testing.T, text string) {
		s, err := schedule.Parse(strings.NewReader(text), "fuzz")
		if err != nil {
			return
		}
		entry, err := schemes.ByName(s.Scheme)
		if err != nil {
			return
		}
		err = Replay(entry, s, engine)
		var diverged *schedule.DivergenceError
		if errors.As(err, &diverged) && diverged.Line < 1 {
			t.Fatalf("a divergence without its line: %v", err)
		}
	})
}

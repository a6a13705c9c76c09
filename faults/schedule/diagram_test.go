package schedule

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The diagrams of every schedule in testdata are kept beside it.
// UPDATE_SCHEDULES=1 writes them anew.
func TestDiagramsAreThoseKept(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.schedule"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, path := range files {
		s, err := ReadFile(path)
		require.NoError(t, err)
		for end, drawn := range map[string]string{".mmd": s.Mermaid(), ".txt": s.ASCII()} {
			golden := strings.TrimSuffix(path, ".schedule") + end
			if os.Getenv("UPDATE_SCHEDULES") != "" {
				require.NoError(t, os.WriteFile(golden, []byte(drawn), 0o644))
			}
			kept, err := os.ReadFile(golden)
			require.NoError(t, err)
			require.Equal(t, string(kept), drawn, "%s is old; UPDATE_SCHEDULES=1 go test ./faults/schedule writes it", golden)
		}
	}
}

// What would end a statement of Mermaid's is escaped.
func TestMermaidTextIsEscaped(t *testing.T) {
	require.Equal(t, "a#59; b#35;", mermaidText("a; b#"))
}

package tail

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheLogKeepsTheLastLinesAndSeesTheReadyLineInPieces(t *testing.T) {
	log := New(func(line string) bool { return strings.Contains(line, "Ready to accept connections") })
	for i := range 3 * keptLines {
		fmt.Fprintf(log, "line %d\n", i)
	}
	for _, piece := range []string{"Ready to acc", "ept connections", "\n\n  \nand then\r\nunfinished"} {
		select {
		case <-log.Ready():
			t.Fatal("ready before the whole line was there")
		default:
		}
		_, err := io.WriteString(log, piece)
		require.NoError(t, err)
	}
	<-log.Ready()
	last := log.Last()
	require.Equal(t, []string{"Ready to accept connections", "and then", "unfinished"}, last[len(last)-3:])
	require.Len(t, last, keptLines+1)

	_, err := io.WriteString(log, strings.Repeat("x", 10*keptWidth)+"\n")
	require.NoError(t, err)
	require.Len(t, log.Last()[keptLines-1], keptWidth, "a long line is cut")
}

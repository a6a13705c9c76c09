package wire

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/tidwall/redcon"
)

// command encodes argv as clients do.
func command(argv ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(argv))
	for _, a := range argv {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b.String()
}

var respValues = []struct{ raw, text string }{
	{"+OK\r\n", `OK`},
	{"-ERR no such key\r\n", `ERR no such key`},
	{":-3\r\n", `-3`},
	{"$1\r\n1\r\n", `"1"`},
	{"$0\r\n\r\n", `""`},
	{"$-1\r\n", `nil`},
	{"*-1\r\n", `nil`},
	{"_\r\n", `nil`},
	{"*0\r\n", `[]`},
	{"$4\r\n\r\n\x00\xff\r\n", `"\r\n\x00\xff"`},
	{"*3\r\n:1\r\n$-1\r\n*2\r\n+a\r\n$1\r\nb\r\n", `[1, nil, [a, "b"]]`},
	{"%2\r\n+k\r\n:1\r\n$1\r\nl\r\n*0\r\n", `{k: 1, "l": []}`},
	{"~2\r\n:1\r\n:2\r\n", `[1, 2]`},
	{",3.14\r\n", `3.14`},
	{"#t\r\n", `true`},
	{"#f\r\n", `false`},
	{"(3492890328409238509324850943850943825024385\r\n", `3492890328409238509324850943850943825024385`},
	{"!9\r\nERR no \r\n\r\n", "ERR no \r\n"},
	{"=8\r\ntxt:some\r\n", `"some"`},
	{"|1\r\n+ttl\r\n:3600\r\n:5\r\n", `5`},
	{"*2\r\n|1\r\n+a\r\n:1\r\n:5\r\n_\r\n", `[5, nil]`},
}

func TestEachTypeIsWrittenAsAPersonWould(t *testing.T) {
	for _, v := range respValues {
		var s respScanner
		n, err := s.scan([]byte(v.raw + "+next\r\n"))
		require.NoError(t, err, "%q", v.raw)
		require.Equal(t, len(v.raw), n, "%q", v.raw)
		got, rest := parseValue([]byte(v.raw))
		require.Empty(t, rest, "%q", v.raw)
		require.Equal(t, v.text, got.text(), "%q", v.raw)
	}
}

func TestAValueIsFoundHoweverItIsCut(t *testing.T) {
	for _, v := range respValues {
		var s respScanner
		for i := range len(v.raw) {
			n, err := s.scan([]byte(v.raw[:i]))
			require.NoError(t, err, "%q", v.raw[:i])
			require.Zero(t, n, "%q is complete after %d bytes", v.raw, i)
		}
		n, err := s.scan([]byte(v.raw))
		require.NoError(t, err)
		require.Equal(t, len(v.raw), n)
	}
}

func TestWhatIsNoRESPIsRefused(t *testing.T) {
	for _, raw := range []string{
		"hello\r\n", "$x\r\n", "$-2\r\n", "$1\r\nabc", "$99999999999\r\n", "*99999999999\r\n", "%-1\r\n", "*1\n", "\r\n", "$?\r\n", "*+1\r\n",
		"=-1\r\n", strings.Repeat("*1\r\n", maxDepth+1), "+" + strings.Repeat("x", maxLine+1), "$67108864\r\n",
	} {
		var s respScanner
		_, err := s.scan([]byte(raw))
		require.Error(t, err, "%.40q", raw)
	}
	for _, raw := range []string{"*1\r\n$-1\r\n", "*1\r\n:1\r\n", "*2\r\n$1\r\na\r\n*0\r\n"} {
		_, err := parseCommand([]byte(raw))
		require.Error(t, err, "%q", raw)
	}
}

func TestACommandKeepsItsBytes(t *testing.T) {
	argv := []string{"SET", "k$-1\r\n", "\x00\xff\r\n*1\r\n", ""}
	got, err := parseCommand([]byte(command(argv...)))
	require.NoError(t, err)
	require.Equal(t, argv, got)
}

// FuzzRESP: any bytes in any pieces end in the same value, never a panic, and
// where redcon knows the types it finds the same end.
func FuzzRESP(f *testing.F) {
	for _, v := range respValues {
		f.Add([]byte(v.raw), uint8(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		var whole respScanner
		n, err := whole.scan(b)
		var pieces respScanner
		m, perr := 0, error(nil)
		for i := 0; m == 0 && perr == nil && i < len(b); {
			i = min(len(b), i+int(size)+1)
			m, perr = pieces.scan(b[:i])
		}
		require.Equal(t, n, m)
		require.Equal(t, err == nil, perr == nil, "%v, %v", err, perr)
		if n > 0 {
			v, rest := parseValue(b[:n])
			require.Empty(t, rest)
			v.text()
			_, _ = parseCommand(b[:n])
		}
		if rn, r := redcon.ReadNextRESP(b); err == nil && r.Type != 0 && n > 0 && onlyRESP2(b[:n]) {
			require.Equal(t, rn, n, "redcon differs on %q", b)
		}
	})
}

func onlyRESP2(b []byte) bool { return !strings.ContainsAny(string(b), "_,#(!=%~>|") }

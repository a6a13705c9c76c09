package histories

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/model"
)

const header = `{"name":"n","sku":"s","initial":3}` + "\n"

func TestABadLineIsRejectedWithItsNumberAndReason(t *testing.T) {
	good := `{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold"}` + "\n"
	for _, c := range []struct{ name, text, want string }{
		{"an empty file", "", "f:1: missing header"},
		{"a header without initial", `{"sku":"s"}`, `f:1: header: "initial" is missing`},
		{"negative stock", `{"sku":"s","initial":-1}`, "f:1: header: initial units -1 are negative"},
		{"an operation where the header belongs", good, `f:1: missing header {"name":…,"sku":…,"initial":n}: the first line is an operation`},
		{"no JSON", header + "sold!\n", "f:2: invalid character 's'"},
		{"two values in a line", header + strings.TrimSpace(good) + good, "f:2: more than one JSON value"},
		{"a blank line is counted", header + "\n" + `{}`, `f:3: "client" is missing`},
		{"no call", header + `{"client":0,"op":"deduct","qty":1,"return":2,"outcome":"sold"}`, `f:2: "call" is missing`},
		{"an unknown op", header + `{"client":0,"op":"buy","qty":1,"call":1,"return":2,"outcome":"sold"}`, `f:2: unknown op "buy"`},
		{"an outcome of another op", header + `{"client":0,"op":"restock","qty":1,"call":1,"return":2,"outcome":"sold"}`, `f:2: outcome "sold" does not fit op "restock"`},
		{"no quantity", header + `{"client":0,"op":"deduct","call":1,"return":2,"outcome":"sold"}`, "f:2: qty 0: a deduct has at least one unit"},
		{"a negative quantity", header + `{"client":0,"op":"deduct","qty":-4,"call":1,"return":2,"outcome":"sold"}`, "f:2: qty -4"},
		{"a fractional quantity", header + `{"client":0,"op":"deduct","qty":1.5,"call":1,"return":2,"outcome":"sold"}`, "f:2: json: cannot unmarshal number 1.5"},
		{"a read with a quantity", header + `{"client":0,"op":"read","qty":1,"call":1,"return":2,"outcome":"value","value":1}`, "f:2: qty 1: a read has none"},
		{"a read without its value", header + `{"client":0,"op":"read","call":1,"return":2,"outcome":"value"}`, `f:2: "value" belongs to`},
		{"a sale with a value", header + `{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold","value":3}`, `f:2: "value" belongs to`},
		{"an answer without a return", header + `{"client":0,"op":"deduct","qty":1,"call":1,"return":null,"outcome":"sold"}`, `f:2: return is null`},
		{"a return before its call", header + good + `{"client":0,"op":"deduct","qty":1,"call":3,"return":2,"outcome":"sold"}`, "f:3: return 2 is before call 3"},
		{"a clock that goes backwards", header + good + `{"client":1,"op":"deduct","qty":1,"call":0,"return":2,"outcome":"sold"}`, "f:3: the clock goes backwards: call 0 after call 1"},
		{"two operations of one client at once", header + "\n" + good + `{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold"}`, "f:4: operations of client 0 overlap: call 1, but that of line 3 returned at 2"},
		{"a request twice", header + `{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold","request":"r"}` + "\n" + `{"client":1,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold","request":"r"}`, `f:3: request "r" of a deduct is there already`},
		{"two histories where one is wanted", header + good + `{"sku":"t","initial":3}`, "f:3: a second header"},
		{"a field nobody knows", header + `{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold","price":1}`, `f:2: json: unknown field "price"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Decode(strings.NewReader(c.text), "f")
			var line *LineError
			require.ErrorAs(t, err, &line)
			require.Contains(t, err.Error(), c.want)
		})
	}
}

func TestWhatIsWrittenIsReadBack(t *testing.T) {
	h := History{Name: "n", SKU: "s", Initial: 3, Ops: []model.Operation{
		{Client: 0, Op: model.Deduct, Qty: 2, Call: 1, Return: 4, Outcome: model.SoldOut, Request: "a.1"},
		{Client: 1, Op: model.Restock, Qty: 1, Call: 2, Return: 3, Outcome: model.OK},
		{Client: 2, Op: model.Deduct, Qty: 1, Call: 5, Open: true, Outcome: model.Unknown},
		{Client: 3, Op: model.Deduct, Qty: 1, Call: 5, Return: 9, Outcome: model.Unknown},
		{Client: 1, Op: model.Read, Call: 6, Return: 7, Outcome: model.Value, Value: -1},
	}}
	path := filepath.Join(t.TempDir(), "deep", "h.jsonl")
	require.NoError(t, h.WriteFile(path))
	back, err := ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, h, back)
}

func TestAnOperationWhoseClientDiedStaysAnOpenUnknown(t *testing.T) {
	r := NewRecorder("n", "s", 1)
	died := r.Call(0, model.Deduct, 1, "a.1")
	doubt := r.Call(1, model.Deduct, 1, "b.1")
	r.Return(doubt, model.Unknown, 0)
	r.Return(r.Call(2, model.Deduct, 1, "c.1"), model.SoldOut, 0)
	ops := r.History().Ops
	require.True(t, ops[died].Open)
	require.True(t, ops[doubt].Open)
	require.Equal(t, model.Unknown, ops[doubt].Outcome)
	require.Equal(t, model.SoldOut, ops[2].Outcome)
	require.GreaterOrEqual(t, ops[2].Return, ops[2].Call)
}

func FuzzDecode(f *testing.F) {
	files, err := filepath.Glob(filepath.Join(corpus, "0*.jsonl"))
	require.NoError(f, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		h, err := Decode(bytes.NewReader(raw), "f")
		if err != nil {
			var line *LineError
			require.ErrorAs(t, err, &line)
			return
		}
		var buf bytes.Buffer
		require.NoError(t, h.Encode(&buf))
		back, err := Decode(&buf, "g")
		require.NoError(t, err)
		require.Equal(t, h, back)
	})
}

// Two restocks of 2^63-1 units would wrap around to -2, and a false sold-out be
// found right.
func TestUnitsThatCouldWrapAroundAreRefused(t *testing.T) {
	for _, text := range []string{
		`{"sku":"s","initial":9223372036854775807}`,
		`{"sku":"s","initial":2}` + "\n" + `{"client":0,"op":"restock","qty":9223372036854775807,"call":1,"return":2,"outcome":"ok"}`,
	} {
		_, err := Decode(strings.NewReader(text), "f")
		require.ErrorContains(t, err, "more than 1099511627776")
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"stockproof/evidence"
	"stockproof/histories"
)

// written is a file with this text.
func written(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func checkJSON(t *testing.T, want int, args ...string) []histories.Report {
	t.Helper()
	status, stdout, stderr := command(t, append([]string{"check", "--format", "json"}, args...)...)
	require.Equal(t, want, status, stderr)
	var reports []histories.Report
	require.NoError(t, json.Unmarshal([]byte(stdout), &reports))
	return reports
}

func TestCheckJudgesEachSKUOfAFileAndSaysWhyInWords(t *testing.T) {
	path := written(t, "two.jsonl", `{"sku":"good","initial":1}
{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold"}
{"sku":"bad","initial":5}
{"client":0,"op":"deduct","qty":1,"call":5000000,"return":9000000,"outcome":"sold"}
{"client":1,"op":"deduct","qty":2,"call":12100000,"return":12900000,"outcome":"sold_out","request":"r7"}
`)
	status, stdout, _ := command(t, "check", path)
	require.Equal(t, evidence.ExitBroken, status)
	require.Contains(t, stdout, "linearizable, 1 operations, 1 units of good")
	require.Contains(t, stdout, "non-linearizable, 2 operations, 5 units of bad")
	require.Contains(t, stdout, "operation 2 (request r7, client 1 deduct(2) = sold-out) ran between 12.1 ms and 12.9 ms; at least 4 units were unsold during all of it")
	require.Contains(t, stdout, "false-sold-out = 1")

	reports := checkJSON(t, evidence.ExitBroken, path)
	require.Len(t, reports, 2)
	require.Equal(t, histories.Linearizable, reports[0].Verdict)
	require.True(t, reports[0].Confirmed)
	e := reports[1].Explanation
	require.Equal(t, 2, e.Operation)
	require.Equal(t, []int{2}, e.Needed, "whatever the sale did, the sold-out is false")
	require.True(t, e.Minimal)
}

func TestCheckReadsCompressedFiles(t *testing.T) {
	raw, err := os.ReadFile(corpus + "004_oversell_by_one_sequential.jsonl")
	require.NoError(t, err)
	var gz, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	_, err = g.Write(raw)
	require.NoError(t, err)
	require.NoError(t, g.Close())
	z, err := zstd.NewWriter(&zst)
	require.NoError(t, err)
	_, err = z.Write(raw)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	for name, packed := range map[string]string{"h.jsonl.gz": gz.String(), "h.jsonl.zst": zst.String()} {
		path := written(t, name, packed)
		require.Equal(t, histories.NonLinearizable, checkJSON(t, evidence.ExitBroken, path)[0].Verdict)
		torn := written(t, name, packed[:len(packed)/2])
		status, _, stderr := command(t, "check", torn)
		require.Equal(t, evidence.ExitUsage, status, "half a file is no history")
		require.Contains(t, stderr, "EOF")
	}
}

func TestCheckSettlesUnknownsFromTheOrders(t *testing.T) {
	history := written(t, "h.jsonl", `{"sku":"s","initial":2}
{"client":0,"op":"deduct","qty":1,"call":1,"return":null,"outcome":"unknown","request":"a"}
{"client":1,"op":"deduct","qty":1,"call":2,"return":null,"outcome":"unknown","request":"b"}
{"client":2,"op":"deduct","qty":1,"call":3,"return":4,"outcome":"sold_out","request":"c"}
`)
	open := checkJSON(t, evidence.ExitOK, history)
	require.Equal(t, 2, open[0].Open, "while both are in doubt, the sold-out may be right")

	orders := written(t, "orders.jsonl", `{"sku":"s","audited":99,"stock":1}`+"\n"+`{"sku":"s","request":"a","qty":1}`+"\n")
	settled := checkJSON(t, evidence.ExitBroken, "--orders", orders, history)[0]
	require.Equal(t, 2, settled.Settled)
	require.Zero(t, settled.Open)
	require.Equal(t, histories.NonLinearizable, settled.Verdict)

	lost := written(t, "lost.jsonl", `{"sku":"s","audited":99,"stock":0}`+"\n"+`{"sku":"s","request":"a","qty":1}`+"\n")
	var laws []string
	for _, l := range checkJSON(t, evidence.ExitBroken, "--orders", lost, history)[0].Laws {
		laws = append(laws, fmt.Sprintf("%s=%d", l.Property, l.Amount))
	}
	require.Contains(t, laws, "lost-units=1")

	for text, want := range map[string]string{
		`{"sku":"s","request":"a"}`:                                          ":1: qty 0",
		`{"sku":"s","qty":1}`:                                                `:1: a line has either "request"`,
		`{"sku":"s","stock":1}` + "\n" + `{"sku":"s","stock":1}`:             ":2: a second audit",
		`{"sku":"s","request":"","qty":1}`:                                   ":1: an order without a request id",
		`{"sku":"s","audited":3,"stock":1}`:                                  "the audit at 3 is before 4",
		`{"sku":"s","request":"a","qty":1}` + "\n" + `{"sku":"s","price":1}`: `:2: json: unknown field "price"`,
	} {
		status, _, stderr := command(t, "check", "--orders", written(t, "o.jsonl", text), history)
		require.Equal(t, evidence.ExitUsage, status, text)
		require.Contains(t, stderr, want)
	}
}

func TestCheckAcceptsARequestSubmittedTwiceOnlyWhenToldSo(t *testing.T) {
	path := written(t, "h.jsonl", `{"sku":"s","initial":2}
{"client":0,"op":"deduct","qty":1,"call":1,"return":2,"outcome":"sold","request":"a"}
{"client":0,"op":"deduct","qty":1,"call":3,"return":4,"outcome":"sold","request":"a"}
`)
	status, _, stderr := command(t, "check", path)
	require.Equal(t, evidence.ExitUsage, status)
	require.Contains(t, stderr, `:3: request "a" of a deduct is there already`)
	r := checkJSON(t, evidence.ExitBroken, "--resubmits", path)[0]
	require.Equal(t, histories.Linearizable, r.Verdict)
	require.EqualValues(t, "double-sale", r.Laws[0].Property)
}

func TestCheckSaysUndecidedAndExitsWith4WhenNobodyDecides(t *testing.T) {
	text := `{"sku":"s","initial":100}` + "\n"
	for i := range 150 { // no sum of even quantities is odd, but there are many sums
		text += fmt.Sprintf(`{"client":%d,"op":"restock","qty":%d,"call":1,"return":9,"outcome":"ok"}`+"\n", i, 2+2*(i%40))
	}
	text += `{"client":150,"op":"read","call":1,"return":8,"outcome":"value","value":1001}` + "\n"
	path := written(t, "h.jsonl", text)
	status, stdout, _ := command(t, "check", "--work", "10000", "--porcupine", "0", path)
	require.Equal(t, evidence.ExitInconclusive, status)
	require.Contains(t, stdout, "undecided")
	require.Regexp(t, `operations \d+ to \d+ were not decided`, stdout)
}

func TestCheckNeedsNoPorcupine(t *testing.T) {
	for name, status := range map[string]int{"121_gen_q1_wide": evidence.ExitOK, "109_gen_q5_deduct_mut": evidence.ExitBroken} {
		r := checkJSON(t, status, "--porcupine", "0", corpus+name+".jsonl")[0]
		require.Empty(t, r.Porcupine)
		require.Equal(t, status == evidence.ExitOK, r.Confirmed)
	}
}

package main

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/require"

	"stockproof/evidence"
)

const foreignLogs = "../../testdata/foreign/"

func TestLogsOfOthersAreJudged(t *testing.T) {
	packed := filepath.Join(t.TempDir(), "jepsen.edn.gz")
	plain, err := os.ReadFile(foreignLogs + "jepsen.edn")
	require.NoError(t, err)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err = z.Write(plain)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	require.NoError(t, os.WriteFile(packed, b.Bytes(), 0o666))
	dense := filepath.Join(t.TempDir(), "jepsen.edn.zst")
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(dense, w.EncodeAll(plain, nil), 0o666))
	buys := filepath.Join(t.TempDir(), "buys.edn")
	require.NoError(t, os.WriteFile(buys, bytes.ReplaceAll(plain, []byte(":deduct"), []byte(":buy")), 0o666))
	shop := []string{"check", foreignLogs + "shop.csv", "--sku", "phone", "--columns", "client=buyer,sku=article,qty=units,call=start,return=end,outcome=answer,request=order",
		"--outcomes", "success=sold,none=sold_out,timeout=unknown"}
	for _, c := range []struct {
		name   string
		args   []string
		status int
		want   string
	}{
		{"two of two sold", []string{"check", foreignLogs + "jepsen.edn", "--initial", "2"}, evidence.ExitOK, "linearizable, 4 operations, 2 units"},
		{"compressed", []string{"check", packed, "--initial", "2"}, evidence.ExitOK, "linearizable, 4 operations, 2 units"},
		{"compressed with Zstandard", []string{"check", dense, "--initial", "2"}, evidence.ExitOK, "linearizable, 4 operations, 2 units"},
		{"with another word for deduct", []string{"check", buys, "--initial", "2", "--ops", "buy=deduct"}, evidence.ExitOK, "linearizable, 4 operations, 2 units"},
		{"a sold-out that cannot be", []string{"check", foreignLogs + "jepsen.edn", "--initial", "3"}, evidence.ExitBroken, "non-linearizable"},
		{"two of one sold", append(shop, "--initial", "1"), evidence.ExitBroken, "oversell = 1: sold 2 of 1"},
		{"settled from the orders", append(shop, "--initial", "3", "--orders", orders(t)), evidence.ExitBroken, "1 settled, 0 open"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, stdout, stderr := command(t, c.args...)
			require.Equal(t, c.status, status, stdout+stderr)
			require.Contains(t, stdout, c.want)
		})
	}
}

func orders(t *testing.T) string {
	path := filepath.Join(t.TempDir(), "orders.jsonl")
	require.NoError(t, os.WriteFile(path, []byte(`{"sku":"phone","request":"o-1","qty":1}
{"sku":"phone","request":"o-3","qty":1}
{"sku":"phone","request":"o-4","qty":1}
`), 0o666))
	return path
}

func TestABadLogOfOthersIsRefusedWithItsLine(t *testing.T) {
	late := filepath.Join(t.TempDir(), "late.csv")
	require.NoError(t, os.WriteFile(late, []byte("client,call,return,outcome\na,5,6,sold\n\nb,1,2,sold\n"), 0o666))
	overlap := filepath.Join(t.TempDir(), "overlap.csv")
	require.NoError(t, os.WriteFile(overlap, []byte("client,call,return,outcome\na,5,9,sold\na,6,7,sold\n"), 0o666))
	for want, args := range map[string][]string{
		"say with --initial":                             {foreignLogs + "jepsen.edn"},
		"are about logs of others":                       {corpus + "002_one_sold.jsonl", "--initial", "1"},
		late + ":4: the clock goes backwards":            {late, "--initial", "1"},
		overlap + ":3: operations of client 0 overlap":   {overlap, "--initial", "1"},
		foreignLogs + "shop.csv:1: no column \"client\"": {foreignLogs + "shop.csv", "--initial", "1", "--sku", "phone"},
		`unknown field "when"`:                           {late, "--initial", "1", "--columns", "when=call"},
		"--ops: buy=take":                                {late, "--initial", "1", "--ops", "buy=take"},
		"--outcomes: yes=bought":                         {late, "--initial", "1", "--outcomes", "yes=bought"},
		`--time-unit "h"`:                                {late, "--initial", "1", "--time-unit", "h"},
		`--from "xml"`:                                   {late, "--initial", "1", "--from", "xml"},
	} {
		status, stdout, stderr := command(t, append([]string{"check"}, args...)...)
		require.Equal(t, evidence.ExitUsage, status, want)
		require.Contains(t, stderr, want)
		require.Empty(t, stdout)
	}
}

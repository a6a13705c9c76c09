package foreign

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/model"
)

func translate(t *testing.T, f Format, text string, o Options) (string, error) {
	t.Helper()
	tr, err := NewTranslator(strings.NewReader(text), f, o)
	require.NoError(t, err)
	ours, err := io.ReadAll(tr)
	return string(ours), err
}

func TestJepsenEventsBecomeOperationsInOrderOfCall(t *testing.T) {
	ours, err := translate(t, EDN, `; a comment
[
{:type :invoke, :f :deduct, :value 2, :process 0, :time 10}
#jepsen.history.Op{:type :invoke, :f :restock, :value {:qty 3, :request "c-1"}, :process 1, :time 20, :index 7}
{:type :info, :f :kill, :process :nemesis, :time 25}
{:type :ok, :f :restock, :value nil, :process 1, :time 30}
{:type :invoke, :f :deduct, :process 1, :time 35, :request :r9}
{:type :fail, :f :deduct, :process 1, :time 40, :error :sold-out}
{:type :fail, :f :deduct, :process 0, :time 50, :error [:timeout "before it was sent"]}
{:type :invoke, :f :deduct, :process 0, :time 55}
{:type :ok, :f :deduct, :value :busy, :process 0, :time 56}
{:type :invoke, :f :read, :process 2, :time 60}
{:type :ok, :f :read, :value 4, :process 2, :time 70}
{:type :invoke, :f :deduct, :process 3, :time 80}
{:type :info, :f :deduct, :process 3, :time 90, :error :timeout}
{:type :invoke, :f :deduct, :process 4, :time 95}
]
`, Options{Initial: 7})
	require.NoError(t, err)
	require.Equal(t, `{"initial":7,"sku":""}
{"client":0,"op":"deduct","qty":2,"call":10,"return":50,"outcome":"failed"}
{"client":1,"op":"restock","qty":3,"call":20,"return":30,"outcome":"ok","request":"c-1"}
{"client":1,"op":"deduct","qty":1,"call":35,"return":40,"outcome":"sold_out","request":"r9"}
{"client":0,"op":"deduct","qty":1,"call":55,"return":56,"outcome":"busy"}
{"client":2,"op":"read","qty":0,"call":60,"return":70,"outcome":"value","value":4}
{"client":3,"op":"deduct","qty":1,"call":80,"return":null,"outcome":"unknown"}
{"client":4,"op":"deduct","qty":1,"call":95,"return":null,"outcome":"unknown"}
`, ours)
}

func TestRowsBecomeOperations(t *testing.T) {
	ours, err := translate(t, CSV, "Begin,End,Who,What,N,Said,Left,Art\n"+
		"1.5,2,ann,,,yes,,a\n2,,bob,deduct,3,?,,a\n2,3,eve,deduct,1,yes,,b\n3,4,ann,READ,,value,-1,a\n4,5.25,bob,restock,2,OK,,a\n",
		Options{SKU: "a", Initial: 9, Unit: "ms",
			Columns:  map[string]string{"client": "who", "call": "begin", "return": "end", "op": "what", "qty": "n", "outcome": "said", "value": "left", "sku": "art"},
			Outcomes: map[string]model.Outcome{"yes": model.Sold, "?": model.Unknown}})
	require.NoError(t, err)
	require.Equal(t, `{"initial":9,"sku":"a"}
{"client":0,"op":"deduct","qty":1,"call":0,"return":500000,"outcome":"sold"}
{"client":1,"op":"deduct","qty":3,"call":500000,"return":null,"outcome":"unknown"}
{"client":0,"op":"read","qty":0,"call":1500000,"return":2500000,"outcome":"value","value":-1}
{"client":1,"op":"restock","qty":2,"call":2500000,"return":3750000,"outcome":"ok"}
`, ours)
}

func TestABadLineIsRefusedWithItsNumber(t *testing.T) {
	call := "{:type :invoke, :f :deduct, :process 0, :time 1}\n"
	head := "client,op,qty,call,return,outcome,value\n"
	for _, c := range []struct {
		format Format
		text   string
		line   int
		want   string
	}{
		{EDN, call + call, 2, "what it called in line 1 has not returned"},
		{EDN, "{:type :ok, :f :deduct, :process 0, :time 1}", 1, "has called nothing"},
		{EDN, call + "{:type :ok, :f :read, :process 0, :time 2}", 2, "called deduct in line 1, and this is a read"},
		{EDN, call + "{:type :done, :f :deduct, :process 0, :time 2}", 2, `unknown :type "done"`},
		{EDN, "{:type :invoke, :f :deduct, :time 1}", 1, ":process is missing"},
		{EDN, "{:type :invoke, :f :deduct, :process 0}", 1, ":time is missing"},
		{EDN, "{:type :invoke, :f :deduct, :process 0, :time 1, :value :many}", 1, "is no quantity"},
		{EDN, "{:type :invoke, :f :read, :process 0, :time 1}\n{:type :ok, :f :read, :process 0, :time 1, :value nil}", 2, "of a read is no number"},
		{EDN, "[{:type :invoke}", 1, "one operation map"},
		{EDN, "{:type :invoke :f}", 1, "Unexpected token"},
		{EDN, "#jepsen.history.Op\n", 1, "one operation map"},
		{EDN, call + "{:type :ok, :f :deduct, :process 0, :time 2} {:type :invoke, :f :deduct, :process 1, :time 3}", 2, "something is behind"},
		{EDN, call + "{:type :fail, :f :deduct, :process 0, :time 2, :error :sold}", 2, ":fail cannot mean sold"},
		{EDN, "", 1, "no operation is in the log"},
		{CSV, "client,call,return,outcome\n", 1, "no operation is in the log"},
		{CSV, "client,call,return,outcome,Outcome\na,1,2,sold,busy\n", 1, "two columns are called \"outcome\""},
		{CSV, "", 1, "column names is missing"},
		{CSV, "client,call,return\n", 1, `no column "outcome"`},
		{CSV, "client,call,return,outcome,sku\n", 1, "say which one with --sku"},
		{CSV, head + "a,deduct,1,1,2\n", 2, "wrong number of fields"},
		{CSV, head + "a,deduct,1,1,2,\"sold,\n", 2, "quote"},
		{CSV, head + ",deduct,1,1,2,sold,\n", 2, "client is empty"},
		{CSV, head + "a,deduct,one,1,2,sold,\n", 2, `qty: "one" is no whole number`},
		{CSV, head + "a,deduct,1,soon,2,sold,\n", 2, `call: "soon" is no number and no RFC 3339 time`},
		{CSV, head + "a,deduct,1,1e99,2,sold,\n", 2, "is no number"},
		{CSV, head + "a,deduct,1,99999999999999999999,2,sold,\n", 2, "too large"},
		{CSV, head + "a,deduct,1,1,,sold out,\n", 2, "say which with --outcomes"},
		{CSV, head + "a,deduct,1,1,later,sold,\n", 2, "return:"},
		{CSV, head + "a,read,,1,2,value,none,\n", 2, "wrong number of fields"},
		{CSV, head + "a,read,,1,2,value,none\n", 2, `value: "none"`},
	} {
		_, err := translate(t, c.format, c.text, Options{})
		var bad *LineError
		require.ErrorAs(t, err, &bad, c.text)
		require.ErrorContains(t, err, c.want, c.text)
		require.Equal(t, c.line, bad.Line, c.text)
	}
	_, err := NewTranslator(strings.NewReader(""), "xml", Options{})
	require.ErrorContains(t, err, `unknown format "xml"`)
}

func TestAnArticleThatIsNotInTheLogIsNoPass(t *testing.T) {
	_, err := translate(t, CSV, "client,call,return,outcome,sku\na,1,2,sold,phone\n", Options{SKU: "phnoe"})
	require.ErrorContains(t, err, `no operation is in the log for article "phnoe"`)
}

func TestOtherWordsForOperationsAndAByteOrderMarkAreRead(t *testing.T) {
	o := Options{Ops: map[string]model.Op{"buy": model.Deduct}}
	want := `"op":"deduct","qty":1,`
	for format, text := range map[Format]string{
		EDN: "{:type :invoke, :f :buy, :process 0, :time 1}\n{:type :ok, :f :buy, :process 0, :time 2}\n",
		CSV: "\ufeffclient,op,call,return,outcome\na,buy,1,2,sold\n",
	} {
		ours, err := translate(t, format, text, o)
		require.NoError(t, err, format)
		require.Contains(t, ours, want, format)
	}
}

func TestALineOfOursKnowsWhereItComesFrom(t *testing.T) {
	tr, err := NewTranslator(strings.NewReader("\n\n{:type :invoke, :f :read, :process 0, :time 1}\n{:type :invoke, :f :read, :process 1, :time 2}\n"), EDN, Options{})
	require.NoError(t, err)
	_, err = io.ReadAll(tr)
	require.NoError(t, err)
	require.Equal(t, []int{1, 3, 4}, []int{tr.Line(1), tr.Line(2), tr.Line(3)})
}

func fuzz(f *testing.F, format Format) {
	f.Fuzz(func(t *testing.T, text string) {
		o := Options{Initial: 1, Unit: "ms"}
		tr, err := NewTranslator(strings.NewReader(text), format, o)
		require.NoError(t, err)
		if _, err := io.ReadAll(tr); err != nil {
			var bad *LineError
			require.True(t, errors.As(err, &bad), "%v", err)
			require.Positive(t, bad.Line)
			require.LessOrEqual(t, bad.Line, strings.Count(text, "\n")+2)
		}
	})
}

func FuzzEDN(f *testing.F) {
	f.Add("{:type :invoke, :f :deduct, :value {:qty 1}, :process 0, :time 1}\n{:type :ok, :f :deduct, :process 0, :time 2}\n")
	f.Add("#jepsen.history.Op")
	f.Add("#jepsen.history.Op{:type :info, :f :read, :process :nemesis, :time 1}")
	fuzz(f, EDN)
}

func FuzzCSV(f *testing.F) {
	f.Add("client,op,qty,call,return,outcome,value\na,read,,1,2.5,value,3\nb,deduct,1,2026-11-11T00:00:00Z,,unknown,\n")
	fuzz(f, CSV)
}

package schedule

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/faults"
	"stockproof/model"
)

func everything(t testing.TB) string {
	text, err := os.ReadFile(filepath.Join("testdata", "everything.schedule"))
	require.NoError(t, err)
	return string(text)
}

// small is the shortest schedule there is, with a place for steps.
func small(steps ...string) string {
	return "schedule v1\nscheme   lock\nconfig   retries=off\nstock    goods:1001 1\nclient   a deduct 1\nclient   b deduct 1, deduct 1\n---\n" +
		strings.Join(append(steps, ""), "\n") + "---\noutcome\nstock    1\nviolates nothing\n"
}

func parse(t testing.TB, text string) *Schedule {
	s, err := Parse(strings.NewReader(text), "test")
	require.NoError(t, err)
	return s
}

func TestACanonicalFileIsPrintedAsItWasRead(t *testing.T) {
	for _, text := range []string{everything(t), small(), small("# remark", "", "a  GET x                                            => nil")} {
		require.Equal(t, text, parse(t, text).String())
	}
}

func TestLineEndsBlanksAndABOMDoNotMatter(t *testing.T) {
	canonical := everything(t)
	windows := "\ufeff" + strings.ReplaceAll(canonical, "\n", "\r\n")
	require.Equal(t, canonical, parse(t, windows).String())
	tabs := strings.ReplaceAll(canonical, "  ! ", "\t!\t")
	require.Equal(t, canonical, parse(t, tabs).String())
}

func TestEveryPartIsRead(t *testing.T) {
	s := parse(t, everything(t))
	require.Equal(t, "lua-lock", s.Scheme)
	require.Equal(t, "default", s.Retries)
	require.EqualValues(t, 300, s.Times.Lease.Milliseconds())
	require.Equal(t, Call{Op: model.Deduct, Qty: 1, As: "a.1"}, s.Clients[3].Calls[0])
	require.Equal(t, "a.1", s.Clients[3].Request(1))
	byKind := map[Kind]int{}
	byFault := map[faults.Kind]int{}
	for i, st := range s.Steps {
		byKind[st.Kind]++
		byFault[st.Fault]++
		require.Equal(t, strings.Split(everything(t), "\n")[st.Note.Line-1], strings.TrimRight(s.Text(i)+"  "+st.Note.Beside, " "))
	}
	for _, k := range []Kind{Command, GoesOn, Deadlock, Arrives, Never, Resume, Submits, Wait, Loses, Flush,
		Restarts, FallsBehind, Refuses, TakesOver, Freezes, Thaws, Evicts, Expires, Loads, Reconciles} {
		require.NotZero(t, byKind[k], k)
	}
	for k := range faultWords {
		require.NotZero(t, byFault[k], k)
	}
	require.Equal(t, Reply{Kind: Rows, Items: []Reply{
		{Kind: Row, Items: []Reply{{Kind: Text, Text: "é"}, {Kind: Nil}, {Kind: Bool, Text: "true"}}},
		{Kind: Row, Items: []Reply{{Kind: Int, Int: -3}, {Kind: Text, Text: "x"}, {Kind: Bool, Text: "false"}}}}}, s.Steps[10].Reply)
	require.Equal(t, []Answer{{"a", 1, model.Unknown, 0}, {"b", 1, model.SoldOut, 0}, {"b", 2, model.OK, 0}, {"b", 3, model.Value, -1},
		{"c", 1, Unfinished, 0}, {"d", 1, model.Sold, 0}}, s.Outcomes)
	require.Equal(t, []model.Order{{Request: "a.1", Qty: 1}, {Request: "b 1", Qty: 2}}, *s.Orders)
	require.False(t, s.Final.Known)
	require.Len(t, s.Violates, 3)
}

// Each bad file is refused at the line that is bad, and says why.
func TestABadLineIsNamedWithItsReason(t *testing.T) {
	const line = 8 // of the first step of small
	for _, c := range []struct {
		text   string
		line   int
		reason string
	}{
		{"", 1, `the file ends where "schedule" was due`},
		{"schedule v2\n", 1, "this program reads v1"},
		{"\n# x\nscheme lock\n", 3, `"scheme" where "schedule" was due`},
		{strings.Replace(small(), "scheme   lock", "scheme", 1), 2, "want one name"},
		{strings.Replace(small(), "scheme   lock", "scheme a b", 1), 2, "want one name"},
		{strings.Replace(small(), "retries=off", "retries=3", 1), 3, "there are off and default"},
		{strings.Replace(small(), "retries=off", "retries=off retries=off", 1), 3, "twice"},
		{strings.Replace(small(), "retries=off", "lease=1s", 1), 3, "retries is missing"},
		{strings.Replace(small(), "retries=off", "retries=off lease=0s", 1), 3, "at least one"},
		{strings.Replace(small(), "retries=off", "retries=off lease=1s lease=1s", 1), 3, "twice"},
		{strings.Replace(small(), "retries=off", "retries=off colour=red", 1), 3, "there are lease"},
		{strings.Replace(small(), "goods:1001 1", "1001 1", 1), 4, "goods:SKU"},
		{strings.Replace(small(), "goods:1001 1", "goods:1001 -1", 1), 4, "number of units"},
		{strings.Replace(small(), "goods:1001 1", "goods:1001 1 2", 1), 4, "number of units"},
		{strings.Replace(small(), "client   a", "client   Ann", 1), 5, "a name is"},
		{strings.Replace(small(), "client   b", "client   a", 1), 6, "twice"},
		{strings.Replace(small(), "a deduct 1", "a steal 1", 1), 5, "want deduct N"},
		{strings.Replace(small(), "a deduct 1", "a deduct 0", 1), 5, "number of units"},
		{strings.Replace(small(), "a deduct 1", "a deduct 1 as b.1", 1), 5, "no request"},
		{strings.Replace(small(), "a deduct 1", "a read 1", 1), 5, "want deduct N"},
		{small("c  GET x => nil"), line, "no client c"},
		{strings.Replace(small(), "retries=off", "retries=off replicas=2", 1), 3, "one replica"},
		{strings.Replace(small(), "retries=off", "replicas=1 replicas=1 retries=off", 1), 3, "twice"},
		{strings.Replace(small(), "b deduct 1, deduct 1", "b load 1 as a.1", 1), 6, "of a job"},
		{strings.Replace(small("b  GET x => nil"), "b deduct 1, deduct 1", "b load 1", 1), line, "begins with a line of its own"},
		{small("a  loads"), line, "is not to"},
		{small("redis restarts"), line, "there are the settings"},
		{small("redis restarts on"), line, "there are the settings"},
		{small("redis restarts aof-everysec"), line, "a number of writes"},
		{small("redis restarts aof-everysec 0"), line, "a number of writes"},
		{small("redis restarts rdb 2"), line, "in this order"},
		{small("postgres restarts rdb"), line, "there are the settings"},
		{small("redis sleeps"), line, "want a client"},
		{small("redis goes off"), line, "due"},
		{small("redis goes on"), line, "already"},
		{small("redis freezes", "redis freezes"), line + 1, "already"},
		{small("redis freezes", "a  GET x => nil"), line + 1, "only give up"},
		{small("a  GET x  ! gives-up"), line, "stands still"},
		{small("redis evicts"), line, "which key"},
		{small("replica takes over 1"), line, "not fallen behind"},
		{small("replica falls behind", "replica falls behind"), line + 1, "no replica"},
		{small("primary refuses writes"), line, "fallen behind"},
		{small("replica falls behind", "replica takes over many"), line + 1, "a number of writes"},
		{small("walk"), line, "want a client"},
		{small("a"), line, "does what"},
		{small("a  resmue"), line, "no command of Redis"},
		{small("a  resume"), line, "not paused"},
		{small("a  GET x"), line, "reply are missing"},
		{small("a  GET x =>"), line, "without a reply"},
		{small("a  GET x => yes"), line, "no reply"},
		{small("a  GET x => 99999999999999999999"), line, "too large"},
		{small(`a  GET x => "1`), line, "quotes"},
		{small("a  GET x => [1"), line, "without its ]"},
		{small("a  GET x => (1)"), line, "no reply"},
		{small("a  GET x => error"), line, "without its code"},
		{small("a  GET x => nil nil"), line, "in this order"},
		{small("a  GET x ! pause => nil"), line, "in this order"},
		{small("a  GET x => nil ! flood"), line, "no fault of a step"},
		{small("a  GET x => nil ! request-lost"), line, "no reply is due"},
		{small("a  GET x => nil ! commit-reply-lost"), line, "COMMIT"},
		{small("a  GET x => nil ; stock"), line, "operation of a client"},
		{small("a  GET x => nil ; stock 1, stock 2"), line, "twice"},
		{small("a  GET x => nil ; a=ok"), line, "no outcome of a deduct"},
		{small("a  GET x => nil ; a=unfinished"), line, "no answer"},
		{small("a  GET x => nil ; b=sold"), line, "several operations"},
		{small("a  GET x => nil ; b.3=sold"), line, "2 operations"},
		{small("a  GET x => nil ; wakes z"), line, "not there"},
		{small("a  GET x => nil ! crash", "a  GET x => nil"), line + 1, "has crashed"},
		{small("a  GET x => nil ! pause", "a  GET x => nil"), line + 1, "is paused"},
		{small("a  GET x => nil ! pause", "   wait 1ms", "a  resume", "a  resume"), line + 3, "not paused"},
		{small("a  arrives: GET x => nil"), line, "no such request"},
		{small("a  GET x ! request-delayed", "a  arrives: GET y => nil"), line + 1, "no such request"},
		{small("a  GET x ! request-delayed", "a  arrives: GET x"), line + 1, "has a reply"},
		{small("a  GET x ! request-delayed", "a  never arrives: GET x => 1"), line + 1, "nobody replies"},
		{small("a  never GET x"), line, "never arrives"},
		{small("a  SQL"), line, "without a statement"},
		{small("a  SQL it's => no rows"), line, "left open"},
		{small("a  SQL/1 COMMIT => COMMIT"), line, "just SQL"},
		{small("a  SQL goes on => 1 row"), line, "no statement that waits"},
		{small("a  SQL goes on"), line, "reply are missing"},
		{small("a  SQL SELECT 1 => blocked ! pause"), line, "no place"},
		{small("a  SQL SELECT 1 => blocked", "a  SQL SELECT 1 => no rows"), line + 1, "statement that waits"},
		{small("a  SQL SELECT 1 => 2 row"), line, "no reply of the database"},
		{small("a  SQL SELECT 1 => (1"), line, "without its )"},
		{small("a  SQL SELECT 1 => (x)"), line, "no value"},
		{small("a  submits c.1 again"), line, "want submits"},
		{small("   wait"), line, "no time"},
		{small("   wait 1us"), line, "whole milliseconds"},
		{small("   wait 11m"), line, "the most is 10m0s"},
		{small("   wait 1ms => nil"), line, "nobody replies"},
		{small("   wait 1ms ! crash"), line, "client's own step"},
		{small("   store loses"), line, "store loses N"},
		{small("   store loses 0"), line, "store loses N"},
		{small("   script kill"), line, "script flush"},
		{small("a  GET \x01 => nil"), line, "control character"},
		{small("a  GET \xff => nil"), line, "not UTF-8"},
		{small("#" + strings.Repeat("x", maxLine)), line, "longer than"},
		{strings.TrimSuffix(small(), "violates nothing\n"), line + 3, `the file ends where "violates" was due`},
		{strings.Replace(small(), "outcome", "outcome  a=sold a=sold", 1), line + 1, "twice"},
		{strings.Replace(small(), "outcome", "outcome  sold", 1), line + 1, "operation of a client"},
		{strings.Replace(small(), "stock    1\n", "stock    many\n", 1), line + 2, "want a number of units"},
		{strings.Replace(small(), "violates nothing", "violates", 1), line + 3, "violates what"},
		{strings.Replace(small(), "violates nothing", "violates decency=1", 1), line + 3, "no property"},
		{strings.Replace(small(), "violates nothing", "violates stuck=x", 1), line + 3, "want a number"},
		{strings.Replace(small(), "violates nothing", "violates stuck=1 stuck=1", 1), line + 3, "twice"},
		{strings.Replace(small(), "violates", "orders   x\nviolates", 1), line + 3, "request=units"},
		{strings.Replace(small(), "violates", "orders   a.1=0\nviolates", 1), line + 3, "number of units"},
		{small() + "more\n", line + 4, "after the end"},
	} {
		_, err := Parse(strings.NewReader(c.text), "bad.schedule")
		var bad *LineError
		require.ErrorAs(t, err, &bad, "%.300s", c.text)
		require.Equal(t, "bad.schedule", bad.File)
		require.Equal(t, c.line, bad.Line, "%v\n%.300s", err, c.text)
		require.Contains(t, bad.Reason, c.reason, "%.300s", c.text)
	}
}

func TestALongLineIsRead(t *testing.T) {
	long := strings.Repeat("ключ", 10_000)
	s := parse(t, small("a  GET "+long+" => nil"))
	require.Equal(t, []string{"GET", long}, s.Steps[0].Words)
}

// Whatever words, statements and replies there are, they come back.
func TestAnyWordStatementAndReplyCanBeWritten(t *testing.T) {
	texts := []string{"", " ", "a", "=>", "!", ";", "#x", "x#", `"`, `'`, "a b", "\n", "\x00", "\xff", "é", "{a}", "[", ")", "it's ; so", "goes on", "nil", "a => b", "-- x", "$1"}
	for _, text := range texts {
		s := parse(t, small())
		s.Steps = []Step{
			{Kind: Command, Client: "a", Server: Redis, Words: []string{"GET", text, text}, Reply: Reply{Kind: List, Items: []Reply{
				{Kind: Text, Text: text}, {Kind: Status, Text: text}, {Kind: Error, Text: text}, {Kind: Nil}}}},
			{Kind: Command, Client: "a", Server: Redis, Words: []string{"GET"}, Reply: Reply{Kind: Status, Text: text}},
			{Kind: Command, Client: "a", Server: SQL, Statement: "x " + text, Reply: Reply{Kind: Rows, Items: []Reply{{Kind: Row, Items: []Reply{{Kind: Text, Text: text}, {Kind: Nil}}}}}},
		}
		again := parse(t, s.String())
		for i := range again.Steps {
			again.Steps[i].Note = Note{}
		}
		require.Equal(t, s.Steps, again.Steps, "%q\n%s", text, s)
	}
}

func TestScriptsAndArgumentsAreWrittenForPeople(t *testing.T) {
	require.Equal(t, []string{"HGET", "k", "f"}, RedisWords([]string{"hget", "k", "f"}))
	require.Equal(t, []string{"EVALSHA", "script-01234567", "k"}, RedisWords([]string{"evalsha", "0123456789", "1", "k"}))
	require.Equal(t, "UPDATE goods SET stock = stock - 1 WHERE sku = 'a''b' AND x = null AND y = true AND z = $4",
		StatementText("UPDATE goods\n\tSET stock = stock - $1 WHERE sku = $2 AND x = $3 AND y = true AND z = $4", []string{"1", "a'b", Null}))
	require.Equal(t, "VALUES (12, '012', 'a.1')", StatementText("VALUES ($1, $2, $3)", []string{"12", "012", "a.1"}))
}

func FuzzParse(f *testing.F) {
	f.Add(everything(f))
	f.Add(small())
	f.Add(small("a  SQL \"x\" => [1", "a  GET x => error A"))
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(strings.NewReader(text), "fuzz")
		if err != nil {
			if bad := new(LineError); !errors.As(err, &bad) || bad.Line < 1 || bad.Line > strings.Count(text, "\n")+2 || bad.Reason == "" {
				t.Fatalf("an error without its line: %v", err)
			}
			return
		}
		once := s.String()
		again, err := Parse(strings.NewReader(once), "again")
		if err != nil {
			t.Fatalf("what was printed cannot be read: %v\n%s", err, once)
		}
		if twice := again.String(); twice != once {
			t.Fatalf("printed differently the second time:\n%q\n%q", once, twice)
		}
		for _, x := range []*Schedule{s, again} {
			x.Notes = nil
			for i := range x.Steps {
				x.Steps[i].Note = Note{}
			}
		}
		if !reflect.DeepEqual(s, again) {
			t.Fatalf("another schedule the second time:\n%+v\n%+v", s, again)
		}
	})
}

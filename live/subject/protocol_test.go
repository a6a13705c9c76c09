package subject

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/model"
)

const goodHello = `{"protocol":"stockproof/subject/v1","name":"x","version":"1","stores":["redis"],"operations":["deduct","read"],"stock":{"key":"k:{sku}"}}`

func TestAHelloThatIsNotOneIsRefusedWithTheReason(t *testing.T) {
	_, err := parseHello([]byte(goodHello))
	require.NoError(t, err)
	for change, want := range map[[2]string]string{
		{goodHello, `ready`}:                         "one JSON object",
		{goodHello, `[1]`}:                           "one JSON object",
		{goodHello, `{}`}:                            `"protocol" is missing`,
		{`}}`, `}} x`}:                               "nothing behind it",
		{`/v1`, `/v2`}:                               "is not spoken here",
		{`"name":"x"`, `"name":"../x"`}:              "name",
		{`"name":"x"`, `"name":"x","name":"y"`}:      "twice",
		{`"name":"x"`, `"Name":"x"`}:                 "unknown field",
		{`"version":"1"`, `"version":"a b"`}:         "version",
		{`"version":"1"`, `"version":1`}:             "version",
		{`["redis"]`, `["mysql"]`}:                   "unknown store",
		{`["redis"]`, `[]`}:                          "stores",
		{`["redis"]`, `["postgres"]`}:                "not among the stores",
		{`"deduct",`, ``}:                            "deduct is missing",
		{`"deduct"`, `"deduct","refund"`}:            "unknown operation",
		{`"deduct"`, `"deduct","load"`}:              "one of them",
		{`,"stock":{"key":"k:{sku}"}`, ``}:           "neither",
		{`k:{sku}`, `k`}:                             "no {sku}",
		{`"key":"k:{sku}"`, `"field":"f"`}:           "neither",
		{`"key"`, `"kye"`}:                           "kye",
		{`"stock"`, `"leases":["lock"],"stock"`}:     "no {sku}",
		{`"stock"`, `"leases":"lock:{sku}","stock"`}: "leases",
	} {
		line := strings.Replace(goodHello, change[0], change[1], 1)
		_, err := parseHello([]byte(line))
		var rule *ProtocolError
		require.ErrorAs(t, err, &rule, line)
		require.ErrorContains(t, err, want, line)
	}
}

func TestAnAnswerThatIsNotOneIsRefusedWithTheReason(t *testing.T) {
	deduct, read, list := request{ID: 4, Op: model.Deduct}, request{ID: 4, Op: model.Read}, request{ID: 4, Op: opOrders}
	for _, c := range []struct {
		req        request
		line, want string // an empty want: it is one
	}{
		{deduct, `{"id":4,"outcome":"sold"}`, ""},
		{deduct, `{"id":4,"outcome":"unknown","error":"EOF"}`, ""},
		{read, `{"id":4,"outcome":"value","value":-3}`, ""},
		{list, `{"id":4,"outcome":"orders","orders":[{"request":"a","qty":1}]}`, ""},
		{list, `{"id":4,"outcome":"orders","orders":[]}`, ""},
		{deduct, `{"id":5,"outcome":"sold"}`, "request 4 is answered with id 5"},
		{deduct, `{"id":4.5,"outcome":"sold"}`, "id"},
		{deduct, `{"id":"4","outcome":"sold"}`, "id"},
		{deduct, `{"outcome":"sold"}`, `"id" is missing`},
		{deduct, `{"id":4}`, `"outcome" is missing`},
		{deduct, `{"id":4,"outcome":"sold-out"}`, "there are sold, sold_out, busy, failed, unknown"},
		{deduct, `{"id":4,"outcome":"ok"}`, "no answer to deduct"},
		{deduct, `{"id":4,"outcome":"sold","value":1}`, "value belongs"},
		{deduct, `{"id":4,"outcome":"sold","orders":[]}`, "orders belong"},
		{deduct, `{"id":4,"outcome":"sold","note":""}`, "unknown field"},
		{read, `{"id":4,"outcome":"value"}`, "value belongs"},
		{read, `{"id":4,"outcome":"value","value":null}`, "value"},
		{read, `{"id":4,"outcome":"unknown"}`, "no answer to read"},
		{list, `{"id":4,"outcome":"orders","orders":[{"request":"a"}]}`, "qty of at least 1"},
		{list, `{"id":4,"outcome":"orders","orders":[{"request":"a","qty":1,"x":1}]}`, "orders"},
		{request{ID: 4, Op: "refund"}, `{"id":4,"outcome":"ok"}`, "no answer to refund"},
		{request{ID: 4, Op: "refund"}, `{"id":4,"outcome":"failed"}`, ""},
	} {
		_, err := parseAnswer([]byte(c.line), c.req)
		if c.want == "" {
			require.NoError(t, err, c.line)
			continue
		}
		require.ErrorContains(t, err, c.want, c.line)
	}
}

func FuzzLines(f *testing.F) {
	f.Add(goodHello)
	f.Add(`{"id":1,"outcome":"value","value":3}`)
	f.Add(`{"id":1,"outcome":"orders","orders":[{"request":"a","qty":1}],"error":"x"}`)
	f.Fuzz(func(t *testing.T, line string) {
		if h, err := parseHello([]byte(line)); err == nil {
			require.True(t, json.Valid([]byte(line)))
			require.Regexp(t, `^[A-Za-z0-9._+@-]+$`, h.Scheme(), "it goes into file names")
			require.True(t, h.Key != "" || h.Operations[opLoad])
		}
		for _, op := range []model.Op{model.Deduct, model.Restock, model.Read, opLoad, opOrders} {
			if a, err := parseAnswer([]byte(line), request{ID: 1, Op: op}); err == nil {
				require.True(t, isAnswer(op, a.Outcome))
			}
		}
	})
}

func TestADeclarationThatIsNotOneIsRefusedWithItsLine(t *testing.T) {
	good := "{\n \"subject\": \"x\",\n \"weaknesses\": [\n  {\"fault\": \"none\", \"breaks\": [\"oversell\"], \"why\": \"w\"}\n ]\n}\n"
	d, err := parseDeclared("f", []byte(good))
	require.NoError(t, err)
	require.Len(t, d.Guarantees.Weaknesses, 1)
	for change, want := range map[[2]string]string{
		{"oversell", "overdose"}:                       `f:4: weakness: unknown property "overdose"`,
		{"none", "meteor"}:                             `f:4: weakness: unknown fault "meteor"`,
		{"none", "request-delayed"}:                    "f:4: weakness: fault request-delayed is not placed",
		{"none", "script-flush"}:                       "f:4: weakness: fault script-flush is not placed",
		{`"why": "w"`, `"why": ""`}:                    "f:4: weakness: why is missing",
		{`"breaks"`, `"workloads": ["big"], "breaks"`}: `f:4: weakness: unknown workload "big"`,
		{`["oversell"]`, `[]`}:                         "f:4: weakness: breaks is missing",
		{`"why": "w"`, `"because": "w"`}:               "f:4: weakness: json: unknown field",
		{`"subject": "x"`, `"subject": "X y"`}:         `f:6: subject "X y"`,
		{`"subject"`, `"sub"`}:                         `f:2: unknown field "sub"`,
		{good, "nothing"}:                              "f:1: a declaration is",
		{good, `{"subject":"x"}`}:                      "weaknesses is missing",
	} {
		_, err := parseDeclared("f", []byte(strings.Replace(good, change[0], change[1], 1)))
		require.ErrorContains(t, err, want, change[1])
	}
	_, err = ReadDeclared("nowhere.json")
	require.ErrorContains(t, err, "nowhere.json: no such file")
}

func FuzzDeclared(f *testing.F) {
	f.Add(`{"subject":"x","weaknesses":[{"fault":"none","breaks":["oversell"],"why":"w"}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseDeclared("f", []byte(text)); err == nil {
			require.NotEmpty(t, d.Subject)
		}
	})
}

func TestThePageShowsTheRulesAndAHelloThatIsOne(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "subject-protocol.md"))
	require.NoError(t, err)
	var table strings.Builder
	for _, r := range rules {
		fmt.Fprintf(&table, "| %s | %s |\n", r.name, r.says)
	}
	require.Contains(t, string(raw), "<!-- rules -->\n"+table.String()+"<!-- /rules -->")
	hello := regexp.MustCompile(`(?s)    (\{"protocol".*?\]\})\n`).FindStringSubmatch(string(raw))
	require.NotNil(t, hello)
	_, err = parseHello([]byte(strings.ReplaceAll(hello[1], "\n    ", "")))
	require.NoError(t, err)
	declared := regexp.MustCompile(`(?s)    (\{"subject".*?\]\})\n`).FindStringSubmatch(string(raw))
	require.NotNil(t, declared)
	_, err = parseDeclared("page", []byte(declared[1]))
	require.NoError(t, err)
}

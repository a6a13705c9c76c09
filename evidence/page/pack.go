package page

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/faults/schedule"
	"stockproof/histories"
	"stockproof/model"
	"stockproof/schemes"
)

// packed is the data of a page: index, which every view needs, and the witnesses
// of each scheme, which are unpacked when one is looked at.
type packed struct {
	index  index
	chunks map[string]*chunk
	order  []string // of chunks
	left   string
}

// index is the matrix. Repeated texts stand once in Strings.
type index struct {
	Words      map[string]evidence.Text `json:"words"`
	Properties []named                  `json:"properties"`
	Faults     []named                  `json:"faults"`
	Workloads  []named                  `json:"workloads"`
	Schemes    []named                  `json:"schemes"`
	Strings    []string                 `json:"strings"`
	Groups     []group                  `json:"groups"`
	// Porcupine is its page without the data of a history, which goes in between.
	Porcupine [2]string `json:"porcupine"`
}

// named is something with an identifier and a summary in both languages.
type named struct {
	ID     string        `json:"id"`
	Name   evidence.Text `json:"name"`
	Says   evidence.Text `json:"says"`
	Letter string        `json:"letter,omitempty"`
	Unit   evidence.Text `json:"unit,omitzero"`
	Stores string        `json:"stores,omitempty"`
	Why    []why         `json:"why,omitempty"`
}

// why is a declared weakness in the words of the scheme's author.
type why struct {
	Fault string `json:"fault"`
	Text  string `json:"text"`
}

// group is the cells of a scheme × fault × workload × retries × world. Verdicts
// has one letter for each property, in their order: v, h, i, n, or a dot for
// none; capitals where it is not as declared. Cells has the rest of those that
// have something to say.
type group struct {
	Scheme     string           `json:"s"`
	Fault      string           `json:"f"`
	Workload   string           `json:"w"`
	Retries    string           `json:"r"`
	World      string           `json:"o"`
	Clients    string           `json:"c"`
	MaxFaults  int              `json:"m"`
	Stock      []int64          `json:"k"`
	Exhaustive bool             `json:"x"`
	Runs       int              `json:"n,omitempty"`
	Executions string           `json:"e,omitempty"`
	States     uint64           `json:"t,omitempty"`
	Places     [2]int           `json:"p"`
	Unknowns   [2]int           `json:"u"` // settled, open
	Verdicts   string           `json:"v"`
	Cells      map[string]*said `json:"d,omitempty"` // by property
}

// said is what a cell says beside its verdict.
type said struct {
	Amount    int64  `json:"a,omitempty"`
	Reason    int    `json:"r,omitempty"` // in Strings
	Witness   int    `json:"w"`           // in the scheme's chunk; -1 for none
	Path      int    `json:"p,omitempty"` // in Strings
	Confirmed string `json:"c,omitempty"` // yes or no
	Doubt     int    `json:"q,omitempty"` // in Strings: why it is not confirmed
	Declared  string `json:"l,omitempty"`
}

// chunk is the witnesses of a scheme.
type chunk struct {
	Witnesses []witness         `json:"witnesses"`
	Pictures  []json.RawMessage `json:"pictures"`
	byText    map[string]int
	byPicture map[string]int
}

// witness is a schedule, or a live history, to be shown.
type witness struct {
	Text    string   `json:"text"`              // of the schedule
	Missing string   `json:"missing,omitempty"` // why there is no schedule
	Clients []string `json:"clients"`
	Stock   int64    `json:"stock"`
	Steps   []step   `json:"steps"`
	Picture int      `json:"picture"` // -1 for none
}

// step is what a diagram draws of a step.
type step struct {
	Kind    string   `json:"k"`
	Client  int      `json:"c"` // -1 for none
	Server  string   `json:"s,omitempty"`
	Label   string   `json:"l"`
	Reply   string   `json:"r,omitempty"`
	Fault   string   `json:"f,omitempty"`
	Stock   string   `json:"n,omitempty"`
	Answers []string `json:"a,omitempty"`
	Text    string   `json:"t"`
}

func pack(r evidence.Report, files fs.FS, keep detail) (*packed, error) {
	p := &packed{chunks: map[string]*chunk{}, index: index{Words: words, Strings: []string{""}}}
	switch keep {
	case withoutPictures:
		p.left = "left-pictures"
	case withoutWitnesses:
		p.left = "left-witnesses"
	}
	for _, i := range model.Properties() {
		p.index.Properties = append(p.index.Properties, named{ID: string(i.ID), Name: propertyName(i), Says: propertyText(i), Letter: i.Letter, Unit: translated(units, i.Unit, i.Unit)})
	}
	p.index.Faults = kindsOf(r)
	for _, w := range faults.Workloads() {
		p.index.Workloads = append(p.index.Workloads, named{ID: w.Name, Name: translated(workloadNames, w.Name, w.Name), Says: translated(workloadNames, w.Summary, w.Summary)})
	}
	for _, name := range r.Schemes() {
		p.index.Schemes = append(p.index.Schemes, schemeNamed(name))
	}
	seen := map[string]int{"": 0}
	text := func(s string) int {
		i, ok := seen[s]
		if !ok {
			i = len(p.index.Strings)
			seen[s] = i
			p.index.Strings = append(p.index.Strings, s)
		}
		return i
	}
	at := map[evidence.Group]int{}
	for _, c := range r.Cells {
		of := c.GroupOf()
		i, ok := at[of]
		if !ok {
			i = len(p.index.Groups)
			at[of] = i
			p.index.Groups = append(p.index.Groups, groupOf(c))
		}
		g := &p.index.Groups[i]
		k := indexOf(c.Property)
		v := []byte(g.Verdicts)
		v[k] = letter(c)
		g.Verdicts = string(v)
		d := &said{Amount: c.Amount, Reason: text(c.Reason), Witness: -1, Declared: string(c.Declared), Doubt: text(c.NotConfirmed)}
		if c.ConfirmedLive != nil {
			d.Confirmed = map[bool]string{true: "yes", false: "no"}[*c.ConfirmedLive]
		}
		if c.Witness != "" {
			d.Path = text(filepath.ToSlash(c.Witness))
			if keep < withoutWitnesses {
				w, err := p.witness(c, files, keep)
				if err != nil {
					return nil, err
				}
				d.Witness = w
			}
		}
		if d.Reason+d.Path+d.Doubt > 0 || d.Amount != 0 || letter(c) < 'a' {
			g.Cells[string(c.Property)] = d
		}
	}
	return p, nil
}

func groupOf(c evidence.Cell) group {
	of := c.GroupOf()
	clients := fmt.Sprint(int(c.Clients))
	if c.Clients == evidence.AnyNumber {
		clients = "any"
	}
	return group{Scheme: of.Scheme, Fault: string(of.Fault), Workload: of.Workload, Retries: of.Retries, World: c.World, Clients: clients,
		MaxFaults: c.MaxFaults, Stock: c.Stock, Exhaustive: c.Exhaustive, Runs: c.Runs, Executions: c.Executions, States: c.States,
		Places: [2]int{c.Placements.Enumerated, c.Placements.Fired}, Unknowns: [2]int{c.Settled, c.Open},
		Verdicts: strings.Repeat(".", len(model.Properties())), Cells: map[string]*said{}}
}

func indexOf(p model.Property) int {
	for i, info := range model.Properties() {
		if info.ID == p {
			return i
		}
	}
	panic("page: a property that evidence.Parse has let pass: " + p)
}

// letter is a verdict in group.Verdicts.
func letter(c evidence.Cell) byte {
	l := map[evidence.Verdict]byte{evidence.Violated: 'v', evidence.Holds: 'h', evidence.Inconclusive: 'i', evidence.NotApplicable: 'n'}[c.Verdict]
	if !c.AsDeclared() && c.Verdict != evidence.Inconclusive {
		l -= 'a' - 'A'
	}
	return l
}

// kindsOf lists the kinds of fault there are, and those that only a report knows.
func kindsOf(r evidence.Report) []named {
	var list []named
	rows := map[faults.Kind][]string{} // of the matrix, which may tell settings of a kind apart
	for _, c := range r.Cells {
		if row := string(c.GroupOf().Fault); !slices.Contains(rows[c.Fault], row) {
			rows[c.Fault] = append(rows[c.Fault], row)
		}
	}
	add := func(k faults.Kind, says evidence.Text) {
		names := rows[k]
		if len(names) == 0 {
			names = []string{string(k)}
		}
		delete(rows, k)
		name := translated(faultNames, string(k), string(k))
		for _, row := range names {
			setting := strings.TrimPrefix(row, string(k))
			list = append(list, named{ID: row, Name: evidence.Text{EN: name.EN + setting, ZH: name.ZH + setting}, Says: says})
		}
	}
	for _, k := range faults.Kinds() {
		add(k.ID, translated(faultNames, k.Summary, k.Summary))
	}
	for _, k := range slices.Sorted(maps.Keys(rows)) {
		add(k, evidence.Text{})
	}
	return list
}

func schemeNamed(name string) named {
	n := named{ID: name, Name: evidence.Text{EN: name, ZH: name}, Says: schemeText(name)}
	e, err := schemes.ByName(name)
	if err != nil {
		return n // somebody else's
	}
	switch {
	case e.Stores.Redis && e.Stores.SQL:
		n.Stores = "Redis, PostgreSQL"
	case e.Stores.SQL:
		n.Stores = "PostgreSQL"
	default:
		n.Stores = "Redis"
	}
	told := map[why]bool{}
	for _, w := range e.Guarantees.Weaknesses {
		if because := (why{w.Fault, w.Why}); !told[because] {
			told[because] = true
			n.Why = append(n.Why, because)
		}
	}
	return n
}

// witness puts the witness of a cell among those of its scheme, once.
func (p *packed) witness(c evidence.Cell, files fs.FS, keep detail) (int, error) {
	ch := p.chunks[c.Scheme]
	if ch == nil {
		ch = &chunk{Witnesses: []witness{}, Pictures: []json.RawMessage{}, byText: map[string]int{}, byPicture: map[string]int{}}
		p.chunks[c.Scheme] = ch
		p.order = append(p.order, c.Scheme)
	}
	name := path.Clean(filepath.ToSlash(c.Witness))
	file := strings.TrimSuffix(name, ".jsonl")
	if file != name {
		file += ".schedule" // what the proxies saw of a live run
	}
	raw, err := fs.ReadFile(files, file)
	w := witness{Text: string(raw), Picture: -1}
	if err != nil {
		w.Missing = "missing-file"
	}
	if i, ok := ch.byText[w.Text]; ok && err == nil {
		return i, nil
	}
	var history histories.History
	if err == nil {
		s, err := schedule.Parse(bytes.NewReader(raw), file)
		if err != nil {
			w.Missing = "bad-file"
		} else {
			w.fill(s)
			history = evidence.HistoryOf(s)
		}
	}
	if w.Missing != "" && file == name {
		w.Text = ""
	}
	if keep == everything && len(history.Ops) > 0 {
		if w.Picture, err = p.picture(ch, history); err != nil {
			return 0, err
		}
	}
	ch.byText[w.Text] = len(ch.Witnesses)
	ch.Witnesses = append(ch.Witnesses, w)
	return len(ch.Witnesses) - 1, nil
}

func (w *witness) fill(s *schedule.Schedule) {
	w.Stock = s.Stock
	number := map[string]int{"": -1}
	for i, c := range s.Clients {
		w.Clients = append(w.Clients, c.Name)
		number[c.Name] = i
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		out := step{Kind: string(st.Kind), Client: number[st.Client], Server: string(st.Server), Label: st.Label(), Reply: st.Reply.String(), Text: s.Text(i)}
		if k := st.FaultKind(); k != faults.None {
			out.Fault = string(k)
		}
		if st.Stock != nil {
			out.Stock = st.Stock.String()
		}
		for _, a := range st.Answers {
			out.Answers = append(out.Answers, s.AnswersText([]schedule.Answer{a}))
		}
		w.Steps = append(w.Steps, out)
	}
}

// porcupineTime bounds the check behind one picture. Schedules have a handful of
// operations and need microseconds.
const porcupineTime = 2 * time.Second

// porcupineData is where porcupine's page has its data.
var porcupineData = []string{"const data = ", "\n"}

// picture is porcupine's picture of a history: only its data, once.
func (p *packed) picture(ch *chunk, h histories.History) (int, error) {
	checked, err := histories.Check(h, porcupineTime, "")
	if err != nil {
		return 0, err
	}
	var b bytes.Buffer
	if err := checked.Draw(&b); err != nil {
		return 0, err
	}
	before, rest, ok := strings.Cut(b.String(), porcupineData[0])
	data, after, ends := strings.Cut(rest, porcupineData[1])
	if !ok || !ends || !json.Valid([]byte(data)) {
		return 0, fmt.Errorf("porcupine's picture does not have its data where it had")
	}
	p.index.Porcupine = [2]string{before + porcupineData[0], porcupineData[1] + after}
	if i, ok := ch.byPicture[data]; ok {
		return i, nil
	}
	ch.byPicture[data] = len(ch.Pictures)
	ch.Pictures = append(ch.Pictures, json.RawMessage(data))
	return len(ch.Pictures) - 1, nil
}

// html is the data as script elements that no browser runs.
func (p *packed) html() template.HTML {
	var b strings.Builder
	put := func(id string, v any) {
		fmt.Fprintf(&b, "<script type=\"application/gzip\" id=\"%s\">%s</script>\n", template.HTMLEscapeString(id), squeeze(v))
	}
	put("index", p.index)
	for _, scheme := range p.order {
		put("witnesses-"+scheme, p.chunks[scheme])
	}
	return template.HTML(b.String())
}

// squeeze is a value as JSON, gzip and base64.
func squeeze(v any) string {
	var b bytes.Buffer
	enc := base64.NewEncoder(base64.StdEncoding, &b)
	zip, err := gzip.NewWriterLevel(enc, gzip.BestCompression)
	if err == nil {
		if err = json.NewEncoder(zip).Encode(v); err == nil {
			err = zip.Close()
		}
	}
	if err != nil {
		panic(err) // plain data into memory
	}
	enc.Close()
	return b.String()
}

package evidence

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// markdown writes what a design document needs: what each scheme breaks, the
// matrix, the claims, the bounds, and what was not looked at.
func (r Report) markdown(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### What each scheme breaks\n\n%s\n\n", r.GlanceMarkdown())
	b.WriteString("“always” is with no fault at all; a number is how many kinds of fault it takes one of; “never” is within the bounds below.\n\n")
	fmt.Fprintf(&b, "### Matrix\n\n%s\n\n%s\n\n%s\n", r.matrix().RenderMarkdown(), strings.Join(legend(), "  \n"), r.summary())
	if len(r.Claims) > 0 {
		b.WriteString("\n### Claims\n\n| id | claim | verdict | why |\n| --- | --- | --- | --- |\n")
		for _, c := range r.Claims {
			fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", c.ID, markdownCell(c.Claim.EN), c.Verdict, markdownCell(c.why()))
		}
	}
	if len(r.Cost) > 0 {
		fmt.Fprintf(&b, "\n### Cost\n\n%s\n", r.costs().RenderMarkdown())
	}
	b.WriteString("\n### Bounds and assumptions\n\n")
	for _, line := range append(r.Bounds.Lines(), r.Bounds.Assumptions...) {
		fmt.Fprintf(&b, "- %s\n", line)
	}
	b.WriteString("\n### Not covered\n\n")
	for _, line := range r.NotCovered() {
		fmt.Fprintf(&b, "- %s\n", line.EN)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// why is the paragraph of a claim, or what is missing.
func (c Claim) why() string {
	switch c.Verdict {
	case ClaimOpen:
		return "not in this report: " + c.missing()
	case ClaimContradicted:
		return fmt.Sprintf("the ledger says %s, but: %s", c.Ledger, c.contradiction())
	case ClaimQualified:
		if c.Condition != nil {
			return "Only when " + c.Condition.EN + ". " + c.Says.EN
		}
	}
	return c.Says.EN
}

func markdownCell(s string) string { return strings.NewReplacer("|", "\\|", "\n", " ").Replace(s) }

// GlanceMarkdown is the table of what each scheme breaks: a row for each, a column
// for each property, and Glance.Word where they meet.
func (r Report) GlanceMarkdown() string {
	var b strings.Builder
	b.WriteString("| scheme |")
	for _, p := range model.Properties() {
		fmt.Fprintf(&b, " %s |", p.ID)
	}
	b.WriteString("\n|" + strings.Repeat(" --- |", len(model.Properties())+1) + "\n")
	glances := r.Glances()
	for _, name := range r.Schemes() {
		fmt.Fprintf(&b, "| %s |", name)
		for _, p := range model.Properties() {
			fmt.Fprintf(&b, " %s |", glances[name][p.ID].Word())
		}
		b.WriteString("\n")
	}
	return strings.TrimRight(b.String(), "\n")
}

// Word is a glance as one word.
func (g Glance) Word() string {
	switch {
	case g.Alone:
		return "always"
	case len(g.Faults) > 0:
		return fmt.Sprintf("%d faults", len(g.Faults))
	case g.Open:
		return "?"
	case g.Held:
		return "never"
	}
	return ""
}

// Lines says the bounds in words.
func (b Bounds) Lines() []string {
	var lines []string
	for _, w := range []struct {
		name   string
		bounds *worldBounds
	}{{"explore", b.Explore}, {"live", b.Live}} {
		if w.bounds == nil {
			continue
		}
		clients := fmt.Sprintf("%d clients", w.bounds.Clients)
		switch w.bounds.Clients {
		case AnyNumber:
			clients = "any number of clients"
		case 0:
			clients = "the clients of each workload"
		}
		line := fmt.Sprintf("%s: %s, at most %d faults, stock %s", w.name, clients, w.bounds.MaxFaults, strings.Trim(fmt.Sprint(w.bounds.Stock), "[]"))
		for _, more := range append([]string{w.bounds.Engine, w.bounds.Backend}, w.bounds.Versions...) {
			if more != "" {
				line += ", " + more
			}
		}
		lines = append(lines, line)
	}
	if c := b.Confirmed; c != nil {
		lines = append(lines, fmt.Sprintf("%d of %d witnesses of explore came out the same on real servers (%s), %d otherwise, %d not decided", c.AsFound, c.Witnesses, c.Backend, len(c.Otherwise), len(c.Open)))
	}
	if b.Unconfirmed != "" {
		lines = append(lines, "nothing that explore found was replayed on real servers: "+strings.ReplaceAll(b.Unconfirmed, "\n", " "))
	}
	return lines
}

// NotCovered says what this report says nothing about.
func (r Report) NotCovered() []Text {
	var lines []Text
	add := func(en, zh string) { lines = append(lines, Text{en, zh}) }
	if r.Bounds.Incomplete != "" {
		add("The run did not finish: "+r.Bounds.Incomplete, "运行没有完成："+r.Bounds.Incomplete)
	}
	if s := r.Bounds.Shard; s != nil {
		add(fmt.Sprintf("The other shards: this is %d of %d of what %q asks.", s.Index, s.Of, s.Asked),
			fmt.Sprintf("其他分片：这是 %q 的第 %d 片，共 %d 片。", s.Asked, s.Index, s.Of))
	}
	seen := map[string]map[faults.Kind]bool{}
	open := 0
	for _, c := range r.Cells {
		if seen[c.World] == nil {
			seen[c.World] = map[faults.Kind]bool{}
		}
		seen[c.World][c.Fault] = true
		if c.Verdict == Inconclusive {
			open++
		}
	}
	for _, world := range []string{"explore", "live"} {
		var out []string
		for _, k := range faults.Kinds() {
			if !seen[world][k.ID] {
				out = append(out, string(k.ID))
			}
		}
		switch {
		case len(seen[world]) == 0 && world == "live":
			add("No run on real servers is in this report.", "本报告没有真实服务器上的运行。")
		case len(seen[world]) == 0:
			add("No exhaustive search is in this report.", "本报告没有穷举搜索。")
		case len(out) > 0:
			add(fmt.Sprintf("Faults not placed in %s: %s.", world, strings.Join(out, ", ")), fmt.Sprintf("%s 中没有注入的故障：%s。", world, strings.Join(out, "、")))
		}
	}
	var others []string
	judged := r.Schemes()
	for _, e := range schemes.All() {
		if name := e.Scheme.Name(); !slices.Contains(judged, name) {
			others = append(others, name)
		}
	}
	if len(others) > 0 && len(others) < len(schemes.All()) { // a subject's report is about the subject
		add(fmt.Sprintf("Schemes not judged here: %s.", strings.Join(others, ", ")), fmt.Sprintf("这里没有评判的方案：%s。", strings.Join(others, "、")))
	}
	if open > 0 {
		add(fmt.Sprintf("%d verdicts are inconclusive: they are no pass.", open), fmt.Sprintf("%d 个结论未定：未定不等于通过。", open))
	}
	if len(r.Cost) == 0 {
		add("Cost was not measured here.", "这里没有测量开销。")
	}
	add("More clients, more faults in one execution, and more units than the bounds say; several articles in one request.",
		"超出界限的客户端数、单次执行的故障数与库存件数；一次请求购买多种商品。")
	return lines
}

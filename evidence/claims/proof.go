package claims

import (
	"fmt"
	"slices"
	"strings"

	"stockproof/evidence"
	"stockproof/faults"
	"stockproof/model"
)

// proof is a question to a report.
type proof interface {
	judge(evidence.Report) evidence.Support
}

// about is which cells a question is about. An empty list means any.
type about struct {
	schemes    []string
	faults     []faults.Kind
	workloads  []string
	retries    string
	properties []model.Property
}

// The workloads of the notes, and the faults of clients and wires.
var (
	everyWorkload = []string{"unit", "mixed", "restock"}
	clientAndWire = []faults.Kind{faults.None, faults.ClientCrash, faults.ClientPause, faults.RequestLost, faults.ReplyLost, faults.RequestDelayed, faults.DuplicateRequest}
)

// safety lists the laws that are about safety: all but the cost of busy answers.
func safety() []model.Property {
	var list []model.Property
	for _, p := range model.Properties() {
		if p.ID != model.Unsold {
			list = append(list, p.ID)
		}
	}
	return list
}

func (q about) fits(c evidence.Cell) bool {
	return (len(q.schemes) == 0 || slices.Contains(q.schemes, c.Scheme)) &&
		(len(q.faults) == 0 || slices.Contains(q.faults, c.Fault)) &&
		(len(q.workloads) == 0 || slices.Contains(q.workloads, c.Workload)) &&
		(q.retries == "" || q.retries == c.ClientRetries) &&
		(len(q.properties) == 0 || slices.Contains(q.properties, c.Property))
}

// says is the question in words.
func (q about) says(verbEN, verbZH string) evidence.Text {
	where := func(sep, any string, list []string) string {
		if len(list) == 0 {
			return any
		}
		return strings.Join(list, sep)
	}
	props := words(q.properties)
	if len(q.properties) == len(safety()) {
		props = nil
	}
	en := fmt.Sprintf("%s %s %s under %s", where(", ", "some scheme", q.schemes), verbEN, where(", ", "every safety law", props), where(", ", "any fault", words(q.faults)))
	zh := fmt.Sprintf("%s %s %s，故障：%s", where("、", "某个方案", q.schemes), verbZH, where("、", "所有安全性质", props), where("、", "任意", words(q.faults)))
	if len(q.workloads) > 0 {
		en += ", workload " + strings.Join(q.workloads, ", ")
		zh += "，负载：" + strings.Join(q.workloads, "、")
	}
	if q.retries != "" {
		en += ", retries " + q.retries
		zh += "，重试：" + map[string]string{"off": "关闭", "default": "默认"}[q.retries]
	}
	return text(en, zh)
}

func words[T ~string](list []T) []string {
	var out []string
	for _, s := range list {
		out = append(out, string(s))
	}
	return out
}

func (q about) support(wants evidence.Text) evidence.Support {
	return evidence.Support{Kind: "cells", Wants: wants, Schemes: q.schemes, Faults: words(q.faults), Workloads: q.workloads,
		Retries: q.retries, Properties: words(q.properties)}
}

// breaks wants every named scheme to break every named property under every
// named fault, in some workload and with some retries that fit.
type breaks about

func (b breaks) judge(r evidence.Report) evidence.Support {
	q := about(b)
	s := q.support(q.says("breaks", "破坏"))
	s.State = evidence.Supports
	for _, scheme := range orAny(q.schemes) {
		for _, kind := range orAny(q.faults) {
			for _, p := range orAny(q.properties) {
				one := q
				one.schemes, one.faults, one.properties = only(scheme), only(kind), only(p)
				state, n, witness := one.broken(r.Cells)
				s.Cells += n
				if s.Witness == "" {
					s.Witness = witness
				}
				if state != evidence.Supports && s.State != evidence.Contradicts {
					s.State = state
					s.Found = one.foundInstead(state)
				}
			}
		}
	}
	if s.State == evidence.Supports {
		s.Found = text(fmt.Sprintf("it does, in %d cells", s.Cells), fmt.Sprintf("确实如此，共 %d 个单元格", s.Cells))
	}
	return s
}

func (q about) foundInstead(state evidence.SupportState) evidence.Text {
	what := strings.Trim(strings.Join(slices.Concat(q.schemes, words(q.faults), words(q.properties)), " × "), " ")
	if state == evidence.Contradicts {
		return text(what+" holds", what+" 成立")
	}
	return text(what+" is not in this report, or not decided", what+" 不在本报告中，或未定")
}

// leastClients is how many clients a search must have had before what it did not
// find says anything about a claim: a winner, a loser, and somebody who comes
// after the fault.
const leastClients = 3

// leastRivals is how many clients a search must have had before what held in it
// says anything: with one nobody meets anybody.
const leastRivals = 2

// covered says whether a cell comes from a search with so many clients.
func covered(c evidence.Cell, least evidence.Clients) bool {
	return c.World == "explore" && c.Clients >= least
}

// twin is a cell apart from its fault.
type twin struct {
	scheme, workload, retries, world string
	property                         model.Property
}

func twinOf(c evidence.Cell) twin {
	return twin{c.Scheme, c.Workload, c.ClientRetries, c.World, c.Property}
}

// broken looks for a violated cell among those that fit. A row of a fault has
// the executions without it as well, so what breaks with no fault says nothing
// about one.
func (q about) broken(cells []evidence.Cell) (state evidence.SupportState, n int, witness string) {
	state = evidence.Missing
	doubt := false
	alone := map[twin]bool{}
	looked := map[[2]string]bool{} // workload and retries
	for _, c := range cells {
		if c.Fault == faults.None && c.Verdict == evidence.Violated {
			alone[twinOf(c)] = true
		}
	}
	for _, c := range cells {
		if !q.fits(c) || c.Fault != faults.None && alone[twinOf(c)] {
			continue
		}
		switch c.Verdict {
		case evidence.Violated:
			n++
			if witness == "" {
				witness = c.Witness
			}
		case evidence.Holds:
			if covered(c, leastClients) {
				looked[[2]string{c.Workload, c.ClientRetries}] = true
			}
		case evidence.Inconclusive:
			doubt = true
		}
	}
	loads, retries := q.workloads, faults.Retries()
	if len(loads) == 0 {
		loads = everyWorkload
	}
	if q.retries != "" {
		retries = []string{q.retries}
	}
	all := true
	for _, load := range loads {
		for _, r := range retries {
			all = all && looked[[2]string{load, r}]
		}
	}
	switch {
	case n > 0:
		state = evidence.Supports
	case all && !doubt:
		state = evidence.Contradicts // looked for everywhere, and not there
	}
	return state, n, witness
}

// breaksOne wants one of the named properties to be broken in some cell that fits.
type breaksOne about

func (b breaksOne) judge(r evidence.Report) evidence.Support {
	q := about(b)
	s := q.support(q.says("breaks one of", "破坏其中之一："))
	s.State, s.Cells, s.Witness = q.broken(r.Cells)
	s.Found = text(fmt.Sprintf("it does, in %d cells", s.Cells), fmt.Sprintf("确实如此，共 %d 个单元格", s.Cells))
	if s.State != evidence.Supports {
		s.Found = q.foundInstead(s.State)
	}
	return s
}

// keeps wants every cell that fits to hold: in explore for each named scheme,
// every named fault (or every fault that explore places), every workload of the
// notes, and both retry settings; and nothing otherwise in the live world.
type keeps about

func (k keeps) judge(r evidence.Report) evidence.Support {
	q := about(k)
	s := q.support(q.says("keeps", "遵守"))
	s.State = evidence.Supports
	if len(q.workloads) == 0 {
		q.workloads = everyWorkload
	}
	kinds := q.faults
	if len(kinds) == 0 {
		kinds = evidence.ExploreKinds()
	}
	type place struct {
		scheme            string
		kind              faults.Kind
		workload, retries string
		property          model.Property
	}
	seen := map[place]bool{}
	held := 0
	for _, c := range r.Cells {
		if !q.fits(c) {
			continue
		}
		if covered(c, leastRivals) {
			seen[place{c.Scheme, c.Fault, c.Workload, c.ClientRetries, c.Property}] = true
		}
		what := fmt.Sprintf("%s × %s × %s, retries %s, %s: %s", c.Scheme, c.Fault, c.Workload, c.ClientRetries, c.World, c.Property)
		switch {
		case c.Verdict == evidence.Violated:
			s.State, s.Witness = evidence.Contradicts, c.Witness
			s.Found = text(what+" is violated", what+" 被违反")
		case c.Verdict == evidence.Inconclusive && c.Clients != evidence.AnyNumber && s.State == evidence.Supports:
			s.State = evidence.Missing
			s.Found = text(what+" is inconclusive", what+" 未定")
		case c.Verdict == evidence.Holds:
			held++
		}
	}
	s.Cells = held
	for _, scheme := range q.schemes {
		for _, kind := range kinds {
			for _, load := range q.workloads {
				for _, retries := range faults.RetriesFor(kind) {
					for _, p := range q.properties {
						if q.retries != "" && q.retries != retries || seen[place{scheme, kind, load, retries, p}] || s.State != evidence.Supports {
							continue
						}
						s.State = evidence.Missing
						what := fmt.Sprintf("%s × %s × %s, retries %s: %s", scheme, kind, load, retries, p)
						s.Found = text("explore did not look at "+what, "没有探索 "+what)
					}
				}
			}
		}
	}
	if s.State == evidence.Supports && held == 0 {
		s.State, s.Found = evidence.Missing, text("nothing here can break", "这里没有可以破坏的")
	}
	if s.State == evidence.Supports {
		s.Found = text(fmt.Sprintf("it does, in all %d cells", held), fmt.Sprintf("确实如此，全部 %d 个单元格", held))
	}
	return s
}

// orAny is a list, or one empty element for any.
func orAny[T ~string](list []T) []T {
	if len(list) == 0 {
		return []T{""}
	}
	return list
}

func only[T ~string](v T) []T {
	if v == "" {
		return nil
	}
	return []T{v}
}

// counted wants a fact to have values that a test accepts.
type counted struct {
	fact  string
	wants evidence.Text
	holds func(values map[string]float64) bool
}

func (f counted) judge(r evidence.Report) evidence.Support {
	s := evidence.Support{Kind: "fact", State: evidence.Missing, Wants: f.wants, Fact: f.fact, Found: text("not counted in this report", "本报告没有计数")}
	for _, known := range r.Facts {
		if known.ID != f.fact {
			continue
		}
		s.State, s.Found = evidence.Contradicts, known.Says
		if f.holds(known.Values) {
			s.State = evidence.Supports
		}
	}
	return s
}

// measured asks the cost table. Its test answers what it found, whether the
// table has what it needs, and whether that is as wanted.
type measured struct {
	wants evidence.Text
	test  func(costs) (found evidence.Text, there, holds bool)
}

func (m measured) judge(r evidence.Report) evidence.Support {
	s := evidence.Support{Kind: "cost", State: evidence.Missing, Wants: m.wants, Found: text("not measured here", "这里没有测量")}
	if found, there, holds := m.test(r.Cost); there {
		s.State, s.Found = evidence.Contradicts, found
		if holds {
			s.State = evidence.Supports
		}
	}
	return s
}

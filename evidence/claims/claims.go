// Package claims is the ledger of what design notes on flash-sale stock claim,
// and of what is well known about it. Each claim names the evidence its verdict
// rests on as something that can be asked of a report; a claim whose evidence is
// not all there is open, and one that the evidence speaks against says so.
package claims

import (
	"slices"

	"stockproof/evidence"
)

// Entry is one line of the ledger.
type Entry struct {
	ID        string // stable: A1 to A15, B1 to B16, K1 to K7
	Claim     evidence.Text
	Verdict   evidence.ClaimVerdict // confirmed, refuted or qualified
	Condition *evidence.Text        // of a qualified claim
	Says      evidence.Text         // one paragraph in plain words
	Rests     []proof               // all of it has to support the verdict
}

// note is who claims it.
func (e Entry) note() string {
	if e.ID[0] == 'K' {
		return "known"
	}
	return e.ID[:1]
}

// All lists the ledger.
func All() []Entry { return slices.Concat(noteA, noteB, known) }

// Judge asks a report for the evidence of every claim. It looks at cells, costs
// and facts, and at nothing that was judged before.
func Judge(r evidence.Report) []evidence.Claim {
	var all []evidence.Claim
	for _, e := range All() {
		all = append(all, e.judge(r))
	}
	return all
}

func (e Entry) judge(r evidence.Report) evidence.Claim {
	c := evidence.Claim{ID: e.ID, Note: e.note(), Claim: e.Claim, Verdict: e.Verdict, Ledger: e.Verdict, Condition: e.Condition, Says: e.Says}
	for _, p := range e.Rests {
		s := p.judge(r)
		switch {
		case s.State == evidence.Contradicts:
			c.Verdict = evidence.ClaimContradicted
		case s.State == evidence.Missing && c.Verdict != evidence.ClaimContradicted:
			c.Verdict = evidence.ClaimOpen
		}
		c.Evidence = append(c.Evidence, s)
	}
	if len(e.Rests) == 0 {
		c.Verdict = evidence.ClaimOpen
	}
	return c
}

func text(en, zh string) evidence.Text { return evidence.Text{EN: en, ZH: zh} }

func when(en, zh string) *evidence.Text { return &evidence.Text{EN: en, ZH: zh} }

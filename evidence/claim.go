package evidence

import "fmt"

// Text is a text for readers in the languages of a report.
type Text struct {
	EN string `json:"en"`
	ZH string `json:"zh"`
}

// Claim is a claim of a design note, and what the evidence in this report makes
// of it.
type Claim struct {
	ID      string       `json:"id"`
	Note    string       `json:"note"` // the note that makes it: A, B, or known for what is well known
	Claim   Text         `json:"claim"`
	Verdict ClaimVerdict `json:"verdict"`
	// Ledger is the verdict when all its evidence is there.
	Ledger    ClaimVerdict `json:"ledger"`
	Condition *Text        `json:"condition,omitempty"` // under which a qualified claim is true
	Says      Text         `json:"says"`                // one paragraph in plain words
	Evidence  []Support    `json:"evidence"`
}

// ClaimVerdict of a claim.
type ClaimVerdict string

// The verdicts on claims. Open and contradicted are those that a ledger never
// states: they come from the evidence.
const (
	ClaimConfirmed ClaimVerdict = "confirmed"
	ClaimRefuted   ClaimVerdict = "refuted"
	ClaimQualified ClaimVerdict = "qualified" // true only under its condition
	// ClaimOpen: this report does not have all the evidence. Never a pass.
	ClaimOpen ClaimVerdict = "open"
	// ClaimContradicted: the evidence speaks against what the ledger says.
	ClaimContradicted ClaimVerdict = "contradicted"
)

// Support is one piece of evidence for a claim.
type Support struct {
	Kind  string       `json:"kind"` // cells, fact or cost
	State SupportState `json:"state"`
	Wants Text         `json:"wants"` // what has to be so
	Found Text         `json:"found"` // what is so
	// Of cells: which ones, an empty list meaning any; and the first one's witness.
	Schemes    []string `json:"schemes,omitempty"`
	Faults     []string `json:"faults,omitempty"`
	Workloads  []string `json:"workloads,omitempty"`
	Retries    string   `json:"retries,omitempty"`
	Properties []string `json:"properties,omitempty"`
	Cells      int      `json:"cells,omitempty"`
	Witness    string   `json:"witness,omitempty"`
	Fact       string   `json:"fact,omitempty"`
}

// SupportState says what a piece of evidence does.
type SupportState string

// The states of a piece of evidence.
const (
	Supports    SupportState = "supports"
	Contradicts SupportState = "contradicts"
	Missing     SupportState = "missing" // not, or not all, in this report
)

// Fact is something that was counted or computed and is no verdict of a cell:
// round trips of an operation, the slot of a key.
type Fact struct {
	ID     string             `json:"id"`
	Says   Text               `json:"says"`
	Values map[string]float64 `json:"values"` // named numbers, with their unit in the name
}

// contradiction is the first evidence that speaks against the ledger.
func (c Claim) contradiction() string { return c.first(Contradicts) }

// missing is the first evidence that is not there.
func (c Claim) missing() string { return c.first(Missing) }

func (c Claim) first(state SupportState) string {
	for _, s := range c.Evidence {
		if s.State == state {
			return s.Wants.EN + ": " + s.Found.EN
		}
	}
	return ""
}

// claimCounts says how many claims have which verdict, and which ones the
// evidence contradicts; nothing where no claim was judged.
func claimCounts(claims []Claim) string {
	if len(claims) == 0 {
		return ""
	}
	count := map[ClaimVerdict]int{}
	for _, c := range claims {
		count[c.Verdict]++
	}
	s := fmt.Sprintf("%d claims: %d confirmed, %d refuted, %d qualified, %d open\n",
		len(claims), count[ClaimConfirmed], count[ClaimRefuted], count[ClaimQualified], count[ClaimOpen])
	for _, c := range claims {
		if c.Verdict == ClaimContradicted {
			s += fmt.Sprintf("  CONTRADICTED: claim %s is in the ledger as %s — %s\n", c.ID, c.Ledger, c.contradiction())
		}
	}
	return s
}

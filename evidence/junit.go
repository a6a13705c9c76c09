package evidence

import (
	"encoding/xml"
	"fmt"
	"io"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name     string      `xml:"name,attr"`
	Tests    int         `xml:"tests,attr"`
	Failures int         `xml:"failures,attr"`
	Errors   int         `xml:"errors,attr"`
	Skipped  int         `xml:"skipped,attr"`
	Cases    []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string        `xml:"classname,attr"`
	Name    string        `xml:"name,attr"`
	Failure *junitMessage `xml:"failure,omitempty"`
	Error   *junitMessage `xml:"error,omitempty"`
	Skipped *junitMessage `xml:"skipped,omitempty"`
}

type junitMessage struct {
	Message string `xml:"message,attr"`
}

// junit makes each cell a test case: a verdict that is not the declared one is
// a failure, an inconclusive one an error. So is what was not looked at.
func (r Report) junit(w io.Writer) error {
	var out junitSuites
	for _, g := range Groups(r.Cells) {
		suite := junitSuite{Name: fmt.Sprintf("%s/%s/%s/retries-%s/%s", g.Scheme, g.Fault, g.Workload, g.Retries, g.World)}
		for _, c := range inGroup(r.Cells, g) {
			jc := junitCase{Class: suite.Name, Name: string(c.Property)}
			message := &junitMessage{c.line()}
			switch {
			case c.Verdict == NotApplicable:
				jc.Skipped = message
				suite.Skipped++
			case c.AsDeclared():
			case c.Verdict == Inconclusive:
				jc.Error = message
				suite.Errors++
			default:
				jc.Failure = message
				suite.Failures++
			}
			suite.Tests++
			suite.Cases = append(suite.Cases, jc)
		}
		out.Suites = append(out.Suites, suite)
	}
	if len(r.Claims) > 0 {
		out.Suites = append(out.Suites, junitClaims(r.Claims))
	}
	if why := r.unlooked(); why != "" {
		out.Suites = append(out.Suites, junitSuite{Name: "complete", Tests: 1, Errors: 1, Cases: []junitCase{
			{Class: "complete", Name: "everything was looked at", Error: &junitMessage{why}},
		}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", " ")
	if err := enc.Encode(out); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

// junitClaims makes each claim a test case: one that its evidence contradicts is
// a failure, one without all its evidence is skipped, never passed.
func junitClaims(claims []Claim) junitSuite {
	suite := junitSuite{Name: "claims"}
	for _, c := range claims {
		jc := junitCase{Class: suite.Name, Name: c.ID + " " + c.Claim.EN}
		switch c.Verdict {
		case ClaimContradicted:
			jc.Failure = &junitMessage{c.contradiction()}
			suite.Failures++
		case ClaimOpen:
			jc.Skipped = &junitMessage{"open: " + c.missing()}
			suite.Skipped++
		}
		suite.Tests++
		suite.Cases = append(suite.Cases, jc)
	}
	return suite
}

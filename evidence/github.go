package evidence

import (
	"fmt"
	"io"
	"strings"
)

// github writes workflow commands, which GitHub shows beside a change:
// https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
// It shows ten of a kind for a step, so the rest is counted.
func (r Report) github(w io.Writer) error {
	var b strings.Builder
	shown := map[string]int{}
	say := func(level, title, message string) {
		if shown[level]++; shown[level] <= mostAnnotations {
			fmt.Fprintf(&b, "::%s title=%s::%s\n", level, githubProperty(title), githubData(message))
		}
	}
	if why := r.unlooked(); why != "" {
		say("error", "stockproof: not everything was looked at", why)
	}
	for _, c := range r.Cells {
		switch {
		case c.ConfirmedLive != nil && !*c.ConfirmedLive:
			say("error", "stockproof: the worlds disagree", c.line()+" — "+c.NotConfirmed)
		case c.AsDeclared():
		case c.Verdict == Inconclusive:
			say("warning", "stockproof: inconclusive", c.line())
		default:
			say("error", "stockproof: not as declared", c.line())
		}
	}
	for _, c := range r.Claims {
		if c.Verdict == ClaimContradicted {
			say("error", "stockproof: claim "+c.ID+" is contradicted", c.contradiction())
		}
	}
	for _, level := range []string{"error", "warning"} {
		if more := shown[level] - mostAnnotations; more > 0 {
			fmt.Fprintf(&b, "%d more of level %s are in evidence.json\n", more, level)
		}
	}
	say("notice", "stockproof", r.counts())
	_, err := io.WriteString(w, b.String())
	return err
}

const mostAnnotations = 10

func githubData(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(s)
}

func githubProperty(s string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace(s)
}

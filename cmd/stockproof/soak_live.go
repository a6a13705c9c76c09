//go:build !nolive

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/faults"
	"stockproof/live"
	"stockproof/live/servers"
	"stockproof/model"
	"stockproof/schemes"
)

// soakReport is what a soak has to say, and the form of --format json.
type soakReport struct {
	Seed       uint64                  `json:"seed"`
	Again      string                  `json:"again"` // the command that draws the same
	Dir        string                  `json:"dir"`
	Seconds    float64                 `json:"seconds"`
	Stopped    bool                    `json:"stopped"`
	Sales      int                     `json:"sales"`
	SlowSales  int                     `json:"slow_sales"`
	Operations int                     `json:"operations"`
	Outcomes   map[model.Outcome]int   `json:"outcomes"`
	Settled    int                     `json:"unknown_settled"`
	Open       int                     `json:"unknown_open"`
	Fired      map[faults.Kind]int     `json:"fired"`
	Verdicts   []evidence.SoakVerdict  `json:"verdicts"`
	Schedules  []evidence.SoakSchedule `json:"schedules"`
	Broke      string                  `json:"broke_down,omitempty"`
}

func soak(cmd *cobra.Command, o soakOptions, kinds []faults.Kind) (err error) {
	entry, err := schemes.ByName(o.scheme)
	if err != nil {
		return err
	}
	if _, restocks := entry.Scheme.(schemes.Restocker); o.restockRate > 0 && !restocks {
		return usageError{fmt.Errorf("--restock-rate: scheme %s has no restock", o.scheme)}
	}
	choice, err := servers.Choose(cmd.Context(), os.Getenv)
	if err != nil {
		return err
	}
	report := soakReport{Seed: o.seed, Again: o.again(kinds), Dir: filepath.Join(o.out, "soak", fmt.Sprintf("%s-%d", o.scheme, o.seed))}
	// Before anything happens, so that whatever happens can be drawn again.
	fmt.Fprintf(cmd.ErrOrStderr(), "soak: seed %d\nsoak: %s\nlive: %s (%s)\n", o.seed, report.Again, choice.Backend, choice.Why)
	world, err := live.Open(cmd.Context(), choice.Backend)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, world.Close()) }()
	bar := newBar(cmd, 0)
	result, broke := world.Soak(cmd.Context(), live.SoakConfig{
		Entry: entry, Retries: o.retries, Clients: o.clients, PerSale: o.perSale, Duration: o.duration, Rate: o.rate, Kinds: kinds,
		FaultRate: o.faultRate, RestockRate: o.restockRate, Stock: o.stock, MaxQty: o.maxQty, Seed: o.seed, Dir: report.Dir,
		Progress: func(r *live.SoakResult) { bar.Describe(soakProgress(r, o.duration)); bar.Add(1) },
	})
	bar.Close()
	report.take(entry, kinds, result)
	lab := explore.NewLab()
	defer func() { err = errors.Join(err, lab.Close()) }()
	var searched error
	report.Schedules, searched = evidence.NewLiveSchedules(lab, report.Dir).Soak(cmd.Context(), result)
	if broke = errors.Join(broke, searched); broke != nil {
		report.Broke = broke.Error()
	}
	if err := report.print(cmd.OutOrStdout(), o.format); err != nil {
		return err
	}
	status := evidence.SoakExit(report.Verdicts)
	if broke != nil && status != evidence.ExitBroken {
		return broke
	}
	if status != evidence.ExitOK {
		return statusError(status)
	}
	return nil
}

// soakProgress is one line about how far a soak is.
func soakProgress(r *live.SoakResult, d time.Duration) string {
	fired := 0
	for _, n := range r.Fired {
		fired += n
	}
	var broken []string
	for _, p := range model.Properties() {
		if v := r.Verdicts[p.ID]; v.Broken > 0 {
			broken = append(broken, fmt.Sprintf("%s in %d", p.ID, v.Broken))
		}
	}
	text := fmt.Sprintf("%s of %s, %d sales, %d operations, %d faults", r.Elapsed.Round(time.Second), d, r.Sales, r.Operations(), fired)
	if len(broken) > 0 {
		text += ", broken: " + strings.Join(broken, ", ")
	}
	return text
}

func (s *soakReport) take(e schemes.Entry, kinds []faults.Kind, r *live.SoakResult) {
	s.Seconds, s.Stopped, s.Sales, s.SlowSales = r.Elapsed.Seconds(), r.Stopped, r.Sales, r.Slow
	s.Operations, s.Outcomes, s.Settled, s.Open = r.Operations(), r.Outcomes, r.Settled, r.Open
	s.Fired = map[faults.Kind]int{}
	for _, k := range kinds {
		s.Fired[k] = r.Fired[k]
	}
	s.Verdicts = evidence.FromSoak(e, kinds, r)
}

func (s *soakReport) print(w io.Writer, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		return enc.Encode(s)
	}
	var b strings.Builder
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	for _, v := range s.Verdicts {
		text := string(v.Verdict)
		if v.Verdict == evidence.Violated {
			info, _ := v.Property.Info()
			text += fmt.Sprintf(" in %d of %d sales (%d %s)", v.Sales, s.Sales, v.Amount, info.Unit)
		}
		t.AppendRow(table.Row{v.Property, text, v.Reason})
	}
	fmt.Fprintf(&b, "%s\n\n", t.Render())
	fmt.Fprintf(&b, "%d sales judged in %.1f s, %d operations:", s.Sales, s.Seconds, s.Operations)
	for i, o := range []model.Outcome{model.Sold, model.SoldOut, model.Busy, model.Failed, model.OK, model.Unknown} {
		if i > 0 {
			b.WriteString(",")
		}
		fmt.Fprintf(&b, " %d %s", s.Outcomes[o], o)
	}
	fmt.Fprintf(&b, "\nunknowns: %d settled from the orders, %d open\nfaults fired:", s.Settled, s.Open)
	if len(s.Fired) == 0 {
		b.WriteString(" none were asked for")
	}
	for _, k := range faults.Kinds() {
		if n, ok := s.Fired[k.ID]; ok {
			fmt.Fprintf(&b, " %s %d", k.ID, n)
		}
	}
	b.WriteString("\n")
	if s.SlowSales > 0 {
		fmt.Fprintf(&b, "%d sales left out: the machine was so slow that a lease may have ended without a fault\n", s.SlowSales)
	}
	if s.Stopped {
		b.WriteString("STOPPED before its time: this is the verdict on what was recorded\n")
	}
	if s.Broke != "" {
		fmt.Fprintf(&b, "INCOMPLETE: %s\n", s.Broke)
	}
	for _, c := range s.Schedules {
		path := ""
		if c.Path != "" {
			path = filepath.Join(s.Dir, c.Path) + ": "
		}
		fmt.Fprintf(&b, "%s: %s%s\n", c.Property, path, c.Says)
	}
	fmt.Fprintf(&b, "histories: %s\nseed %d: %s\n", s.Dir, s.Seed, s.Again)
	_, err := io.WriteString(w, b.String())
	return err
}

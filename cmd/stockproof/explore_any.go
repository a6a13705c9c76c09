package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/explore"
	"stockproof/model"
)

// exploreAny is explore --clients any.
func exploreAny(ctx context.Context, cmd *cobra.Command, o exploreOptions, cfg explore.Config) (err error) {
	lab := explore.NewLab()
	defer func() {
		if closeErr := lab.Close(); err == nil {
			err = closeErr
		}
	}()
	search := explore.AnyConfig{Config: cfg, Unbounded: o.maxFaults.any}
	r, err := lab.RunAny(ctx, search)
	if err != nil {
		return exploreError(err)
	}
	if o.out != "" {
		for p, v := range r.Verdicts {
			if v.Witness == nil {
				continue
			}
			if _, err := evidence.WriteWitness(o.out, fmt.Sprintf("%s.%s.any.%s", cfg.Entry.Scheme.Name(), cfg.Workload.Name, p), v.Witness); err != nil {
				return err
			}
		}
	}
	if o.format == "json" {
		err = anyJSON(cmd.OutOrStdout(), o, cfg, r)
	} else {
		err = anyText(cmd.OutOrStdout(), o, cfg, r)
	}
	if err != nil {
		return err
	}
	var all []explore.Status
	for _, v := range r.Verdicts {
		all = append(all, v.Status)
	}
	return exitOf(all)
}

func anyText(w io.Writer, o exploreOptions, cfg explore.Config, r *explore.AnyResult) error {
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	told := map[string][]string{}
	var order []string
	for _, p := range explore.AnyProperties() {
		v := r.Verdicts[p]
		info, _ := p.Info()
		text := string(v.Status)
		switch v.Status {
		case explore.Holds:
			text += " for any number of clients"
		case explore.Violated:
			text += fmt.Sprintf(" with %d clients (%d %s)", v.Clients, v.Amount, info.Unit)
			if v.Clients > 1 && v.Smallest {
				text += ", not with fewer"
			}
			timeline := v.Witness.Timeline()
			if told[timeline] == nil {
				order = append(order, timeline)
			}
			told[timeline] = append(told[timeline], string(p))
		}
		detail := v.Detail
		if v.Status == explore.Holds {
			detail = ""
		}
		t.AppendRow(table.Row{p, text, detail})
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", t.Render())
	if r.Finite {
		fmt.Fprintf(&b, "covered: any number of clients, %d units, %s faults\n", cfg.Stock, o.maxFaults.String())
	} else {
		fmt.Fprintf(&b, "NOT covered for any number of clients: %s\n", r.Why)
	}
	fmt.Fprintf(&b, "%d states of stores, faults and sums, %d with counts (up to %d, then many), %d moves, %s\n",
		r.Controls, r.States, r.Cap, r.Moves, r.Elapsed.Round(time.Millisecond))
	tellWitnesses(&b, order, told)
	_, err := io.WriteString(w, b.String())
	return err
}

// exploredAnyJSON is the form of --clients any --format json.
type exploredAnyJSON struct {
	Scheme, Workload, Retries string
	Clients                   evidence.Clients // "any"
	MaxFaults                 string           // a number, or any
	Stock                     int64
	Finite                    bool
	Why                       string `json:",omitempty"`
	Controls, States, Moves   uint64
	Cap                       uint8
	Placements                evidence.Placements
	Verdicts                  []exploredAnyVerdict
}

type exploredAnyVerdict struct {
	Property model.Property
	Status   explore.Status
	Clients  evidence.Clients // any, or those of the witness
	Smallest bool             `json:",omitempty"` // no smaller number shows it
	Amount   int64            `json:",omitempty"`
	Detail   string           `json:",omitempty"`
	Witness  string           `json:",omitempty"`
}

func anyJSON(w io.Writer, o exploreOptions, cfg explore.Config, r *explore.AnyResult) error {
	out := exploredAnyJSON{
		Scheme: cfg.Entry.Scheme.Name(), Workload: cfg.Workload.Name, Retries: cfg.Retries, Clients: evidence.AnyNumber,
		MaxFaults: o.maxFaults.String(), Stock: cfg.Stock, Finite: r.Finite, Why: r.Why, Controls: r.Controls, States: r.States,
		Moves: r.Moves, Cap: r.Cap, Placements: evidence.Placements{Enumerated: r.PlacementsEnumerated, Fired: r.PlacementsFired},
	}
	for _, p := range explore.AnyProperties() {
		v := r.Verdicts[p]
		ev := exploredAnyVerdict{Property: p, Status: v.Status, Clients: evidence.AnyNumber, Smallest: v.Smallest, Amount: v.Amount, Detail: v.Detail}
		if v.Witness != nil {
			ev.Clients, ev.Witness = evidence.Clients(v.Clients), v.Witness.Timeline()
		}
		out.Verdicts = append(out.Verdicts, ev)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	enc.SetEscapeHTML(false)
	return enc.Encode(out)
}

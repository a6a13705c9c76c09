package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"
	"github.com/spf13/cobra"

	"stockproof/evidence/claims"
	"stockproof/faults"
	"stockproof/model"
	"stockproof/schemes"
)

// listed is one line of a list.
type listed struct {
	ID      string `json:"id"`
	Summary string `json:"summary"`
	Detail  string `json:"detail,omitempty"`
}

func listCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:       "list schemes|faults|properties|workloads|claims",
		Short:     "Show what there is",
		ValidArgs: []string{"schemes", "faults", "properties", "workloads", "claims"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{fmt.Errorf("list needs one of %v", cmd.ValidArgs)}
			}
			return oneOf("list", args[0], cmd.ValidArgs...)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, "text", "json"); err != nil {
				return err
			}
			return printList(cmd.OutOrStdout(), list(args[0]), format)
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text or json")
	return cmd
}

func list(what string) []listed {
	var all []listed
	switch what {
	case "schemes":
		for _, e := range schemes.All() {
			stores := "Redis"
			switch {
			case e.Stores.Redis && e.Stores.SQL:
				stores = "Redis, PostgreSQL"
			case e.Stores.SQL:
				stores = "PostgreSQL"
			}
			all = append(all, listed{e.Scheme.Name(), e.Summary, stores})
		}
	case "faults":
		for _, k := range faults.Kinds() {
			worlds := "explore, live"
			switch {
			case !k.Live:
				worlds = "explore"
			case !k.Explore:
				worlds = "live"
			}
			summary := k.Summary
			if list := k.ID.Settings(); list[0] != faults.NoSetting {
				words := make([]string, len(list))
				for i, s := range list {
					words[i] = string(s)
				}
				summary += "; settings " + strings.Join(words, ", ")
			}
			all = append(all, listed{string(k.ID), summary, worlds})
		}
	case "properties":
		for _, p := range model.Properties() {
			all = append(all, listed{string(p.ID), p.BrokenWhen, p.Letter + ", amount: " + p.Unit})
		}
	case "claims":
		for _, c := range claims.All() {
			all = append(all, listed{c.ID, c.Claim.EN, string(c.Verdict)})
		}
	case "workloads":
		for _, w := range faults.Workloads() {
			all = append(all, listed{w.Name, w.Summary, fmt.Sprintf("%d clients, %d units", len(w.Clients), w.Stock)})
		}
	}
	return all
}

func printList(w io.Writer, all []listed, format string) error {
	if format == "json" {
		enc := json.NewEncoder(w)
		enc.SetIndent("", " ")
		enc.SetEscapeHTML(false)
		return enc.Encode(all)
	}
	t := table.NewWriter()
	t.SetStyle(table.StyleLight)
	t.Style().Options = table.OptionsNoBordersAndSeparators
	t.SetColumnConfigs([]table.ColumnConfig{{Number: 2, WidthMax: 80, WidthMaxEnforcer: text.WrapSoft}})
	for _, l := range all {
		t.AppendRow(table.Row{l.ID, l.Summary, l.Detail})
	}
	_, err := fmt.Fprintln(w, t.Render())
	return err
}

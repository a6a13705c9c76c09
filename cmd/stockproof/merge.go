package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/evidence/page"
)

func mergeCommand() *cobra.Command {
	var out, format string
	cmd := &cobra.Command{
		Use:   "merge FILE…",
		Short: "Make one report of the shards of a run, and of tables of costs",
		Long: `Make one report of the evidence.json of all shards of a run (verify or explore
with --shard), and of bench. Witnesses are copied from beside the files. The claims
are judged again from all the evidence there is.

Shards belong together when they were asked the same, with the same bounds, by the
same version of the program. One that is missing, or there twice, is bad input.

Exit status: 0 every verdict is as the scheme declares it, 1 one is not, 2 the files
are not parts of one report, 4 a verdict is inconclusive.`,
		Example: "  stockproof merge shard-1/evidence.json shard-2/evidence.json --out evidence",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("merge needs at least one evidence.json")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			if err := oneOf("format", format, evidence.Formats()...); err != nil {
				return err
			}
			return merge(cmd, files, out, format)
		},
	}
	f := cmd.Flags()
	f.StringVar(&out, "out", "evidence", "folder for evidence.json, report.html and witnesses")
	f.StringVar(&format, "format", "text", "what to print: text, json, markdown, junit or github")
	return cmd
}

func merge(cmd *cobra.Command, files []string, out, format string) error {
	var parts []evidence.Report
	for _, path := range files {
		r, err := evidence.ReadFile(path)
		if err != nil {
			return badEvidence(err)
		}
		parts = append(parts, r)
	}
	report, err := evidence.Merge(parts, files)
	if err != nil {
		return usageError{err}
	}
	report.Claims = claims.Judge(report)
	if err := evidence.CopyWitnesses(out, parts, files); err != nil {
		var bad *evidence.MergeError
		if errors.As(err, &bad) {
			return usageError{err}
		}
		return err
	}
	path, err := report.WriteFile(out)
	if err != nil {
		return err
	}
	shown, err := page.WriteFile(out, report)
	if err != nil {
		return err
	}
	if err := report.Render(cmd.OutOrStdout(), format); err != nil {
		return err
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "evidence: %s\nreport: %s\n", path, shown)
	status := report.Exit()
	if len(report.Cells) == 0 && len(report.Cost) > 0 && status == evidence.ExitInconclusive {
		status = evidence.ExitOK // nothing but costs was asked for
	}
	if status != evidence.ExitOK {
		return statusError(status)
	}
	return nil
}

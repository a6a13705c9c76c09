package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"stockproof/evidence"
	"stockproof/evidence/claims"
	"stockproof/evidence/page"
)

// reportFormats are those of verify and html, which verify writes anyway.
func reportFormats() []string { return append([]string{"html"}, evidence.Formats()...) }

func reportCommand() *cobra.Command {
	var format, out string
	cmd := &cobra.Command{
		Use:   "report FILE",
		Short: "Render an evidence.json again, without running anything",
		Long: `Render an evidence.json again, without running anything. Witnesses are looked
for beside the file. The claims are judged again from the evidence in it.

Exit status: 0 the report is written, whatever it says; 2 the file cannot be
read or has something in it that this program does not know.`,
		Example: "  stockproof report evidence/evidence.json --format markdown",
		Args:    oneFile("report needs one evidence.json"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, reportFormats()...); err != nil {
				return err
			}
			return renderAgain(cmd, args[0], format, out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&format, "format", "html", "html, text, json, markdown, junit or github")
	f.StringVar(&out, "out", "", "file to write (default: report.html beside the evidence for html, else standard output; - is standard output)")
	return cmd
}

func renderAgain(cmd *cobra.Command, path, format, out string) error {
	r, err := evidence.ReadFile(path)
	if err != nil {
		return badEvidence(err)
	}
	r.Claims = claims.Judge(r)
	dir := filepath.Dir(path)
	if out == "" && format == "html" {
		out = filepath.Join(dir, page.Name)
	}
	render := func(w io.Writer) error {
		if format == "html" {
			return page.Write(w, r, os.DirFS(dir))
		}
		return r.Render(w, format)
	}
	if out == "" || out == "-" {
		return render(cmd.OutOrStdout())
	}
	f, err := os.Create(out)
	if err != nil {
		return usageError{err}
	}
	if err := errors.Join(render(f), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", out, err)
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "report: %s\n", out)
	return nil
}

func diffCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Show what changed between two evidence.json",
		Long: `Show what changed between two evidence.json: verdicts, amounts, what is
declared, what was confirmed on real servers, bounds, claims, and cells that are
new or gone.

Exit status: 0 nothing changed, 1 something did, 2 a file cannot be read or has
something in it that this program does not know.`,
		Example: "  stockproof diff old/evidence.json evidence/evidence.json --format markdown",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{errors.New("diff needs two evidence.json, the older one first")}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := oneOf("format", format, evidence.DiffFormats()...); err != nil {
				return err
			}
			var reports [2]evidence.Report
			for i, path := range args {
				var err error
				if reports[i], err = evidence.ReadFile(path); err != nil {
					return badEvidence(err)
				}
			}
			changes := evidence.Difference(reports[0], reports[1])
			if err := evidence.RenderDifference(cmd.OutOrStdout(), changes, format); err != nil {
				return err
			}
			if len(changes) > 0 {
				return statusError(evidence.ExitBroken)
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&format, "format", "text", "text, json or markdown")
	return cmd
}

func oneFile(otherwise string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usageError{errors.New(otherwise)}
		}
		return nil
	}
}

// badEvidence marks a file that cannot be used as bad input.
func badEvidence(err error) error {
	var bad *evidence.BadEvidenceError
	var path *fs.PathError
	if errors.As(err, &bad) || errors.As(err, &path) {
		return usageError{err}
	}
	return err
}

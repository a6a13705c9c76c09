package main

import (
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
)

//go:embed templates/saleproof_test.go.txt
var testTemplate []byte

//go:embed templates/stockproof.yml
var workflowTemplate []byte

// starters are what init writes, by path below a repository.
var starters = []struct {
	path string
	text *[]byte
}{
	{"saleproof/saleproof_test.go", &testTemplate},
	{".github/workflows/stockproof.yml", &workflowTemplate},
}

func initCommand() *cobra.Command {
	var dir string
	var force bool
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Begin to judge your own scheme: a test and a CI workflow for your repository",
		Long: `Begin to judge your own scheme: writes saleproof/saleproof_test.go, which judges an
example scheme to be replaced by calls of your code, and a CI workflow that runs
it. What is there already is left alone, unless --force is given.

Exit status: 0 written, 2 not, with the reason.`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := begin(dir, force); err != nil {
				return err
			}
			for _, s := range starters {
				fmt.Fprintln(cmd.OutOrStdout(), "wrote", filepath.Join(dir, s.path))
			}
			fmt.Fprint(cmd.OutOrStdout(), `next, in your module, with STOCKPROOF set to where stockproof is cloned:
  go mod edit -require=stockproof@v0.0.0 -replace=stockproof=$STOCKPROOF
  go mod tidy
  go test -short ./saleproof
`)
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", ".", "where your module begins")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite what is there")
	return cmd
}

// begin writes all files or none.
func begin(dir string, force bool) error {
	if _, err := os.Stat(filepath.Join(dir, "go.mod")); err != nil {
		return usageError{fmt.Errorf("init: %s has no go.mod: say with --dir where your module begins", dir)}
	}
	for _, s := range starters {
		path := filepath.Join(dir, s.path)
		if _, err := os.Lstat(path); err == nil && !force {
			return usageError{fmt.Errorf("init: %s is there already; --force overwrites it", path)}
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return usageError{fmt.Errorf("init: %w", err)}
		}
	}
	for _, s := range starters {
		path := filepath.Join(dir, s.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			return usageError{fmt.Errorf("init: %w", err)}
		}
		if err := os.WriteFile(path, *s.text, 0o666); err != nil {
			return usageError{fmt.Errorf("init: %w", err)}
		}
	}
	return nil
}

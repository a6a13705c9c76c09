package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"stockproof/evidence"
)

func TestInitWritesNothingWhereThereIsNoModuleOrSomethingIsThere(t *testing.T) {
	dir := t.TempDir()
	status, stdout, stderr := command(t, "init", "--dir", dir)
	require.Equal(t, evidence.ExitUsage, status)
	require.Contains(t, stderr, "has no go.mod")
	require.Empty(t, stdout)

	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module shop\n"), 0o666))
	workflow := filepath.Join(dir, ".github", "workflows", "stockproof.yml")
	require.NoError(t, os.MkdirAll(filepath.Dir(workflow), 0o777))
	require.NoError(t, os.WriteFile(workflow, []byte("mine"), 0o666))
	status, _, stderr = command(t, "init", "--dir", dir)
	require.Equal(t, evidence.ExitUsage, status)
	require.Contains(t, stderr, workflow+" is there already")
	require.NoDirExists(t, filepath.Join(dir, "saleproof"), "all or none")
	kept, err := os.ReadFile(workflow)
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))

	status, stdout, _ = command(t, "init", "--dir", dir, "--force")
	require.Equal(t, evidence.ExitOK, status)
	require.Contains(t, stdout, filepath.Join(dir, "saleproof", "saleproof_test.go"))
	require.FileExists(t, filepath.Join(dir, "saleproof", "saleproof_test.go"))
	kept, err = os.ReadFile(workflow)
	require.NoError(t, err)
	require.Equal(t, workflowTemplate, kept)
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"

	"stockproof/evidence"
)

// documents are those of a YAML file.
func documents(t *testing.T, path string) (docs []map[string]any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	for {
		var doc map[string]any
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			return docs
		}
		require.NoError(t, err, path)
		docs = append(docs, doc)
	}
}

// at walks down a document; a number is an index.
func at(t *testing.T, in any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch s := step.(type) {
		case int:
			list, ok := in.([]any)
			require.True(t, ok && s < len(list), "%v: %v", path, in)
			in = list[s]
		case string:
			m, ok := in.(map[string]any)
			require.True(t, ok, "%v: %v", path, in)
			in, ok = m[s]
			require.True(t, ok, "%v: no %s", path, s)
		}
	}
	return in
}

// says is what a line of a shell asks of stockproof: the shell runs it, with a program
// of that name which only notes its arguments.
func says(t *testing.T, line string, env ...string) []string {
	t.Helper()
	dir := t.TempDir()
	note := filepath.Join(dir, "arguments")
	shim := fmt.Sprintf("#!/bin/sh\nprintf '%%s\\n' \"$@\" > %s\n", note)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "stockproof"), []byte(shim), 0o755))
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Env = append([]string{"PATH=" + dir + ":/usr/bin:/bin"}, env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	raw, err := os.ReadFile(note)
	require.NoError(t, err)
	return strings.Split(strings.TrimSpace(string(raw)), "\n")
}

// smaller is the same command on four cells' groups, one for each shard.
var smaller = []string{"--scheme", "hincrby", "--fault", "none,client-crash", "--workload", "unit"}

// mergesToTheWhole runs the shards of an example and its merge, and compares.
func mergesToTheWhole(t *testing.T, lines []string, merge string, env func(shard int) []string, folder string) {
	t.Helper()
	out := t.TempDir()
	here := func(line string) string {
		return regexp.MustCompile(`(^|[ "])`+folder).ReplaceAllString(line, "${1}"+out+"/")
	}
	for i, line := range lines {
		args := says(t, here(line), env(i)...)
		require.Contains(t, args, fmt.Sprintf("%d/%d", i+1, len(lines)))
		status, _, stderr := command(t, append(args, smaller...)...)
		require.Equal(t, evidence.ExitOK, status, stderr)
	}
	args := says(t, here(merge))
	status, _, stderr := command(t, args...)
	require.Equal(t, evidence.ExitOK, status, stderr)
	got := report(t, filepath.Join(out, "whole", "evidence.json"))
	whole := t.TempDir()
	status, _, stderr = command(t, append([]string{"verify", "--confirm", "off", "--out", whole}, smaller...)...)
	require.Equal(t, evidence.ExitOK, status, stderr)
	require.Equal(t, report(t, filepath.Join(whole, "evidence.json")).Cells, got.Cells)
}

func TestTheKubernetesExampleMergesToTheWhole(t *testing.T) {
	docs := documents(t, "../../examples/kubernetes/verify.yaml")
	require.Len(t, docs, 2)
	claim, job := docs[0], docs[1]
	require.Equal(t, []any{"v1", "PersistentVolumeClaim"}, []any{claim["apiVersion"], claim["kind"]})
	require.Equal(t, []any{"batch/v1", "Job"}, []any{job["apiVersion"], job["kind"]})
	require.Equal(t, "Indexed", at(t, job, "spec", "completionMode"))
	completions := at(t, job, "spec", "completions").(int)
	require.LessOrEqual(t, at(t, job, "spec", "parallelism"), completions)
	second := documents(t, "../../examples/kubernetes/merge.yaml")
	require.Len(t, second, 1)
	for _, j := range []map[string]any{job, second[0]} {
		pod := at(t, j, "spec", "template", "spec")
		require.Equal(t, "Never", at(t, pod, "restartPolicy"))
		require.Equal(t, []any{"/bin/sh", "-c"}, at(t, pod, "containers", 0, "command"))
		require.Equal(t, at(t, claim, "metadata", "name"), at(t, pod, "volumes", 0, "persistentVolumeClaim", "claimName"))
		require.Equal(t, at(t, pod, "volumes", 0, "name"), at(t, pod, "containers", 0, "volumeMounts", 0, "name"))
		require.Equal(t, "/evidence", at(t, pod, "containers", 0, "volumeMounts", 0, "mountPath"))
	}
	line := at(t, job, "spec", "template", "spec", "containers", 0, "args", 0).(string)
	lines := make([]string, completions)
	for i := range lines {
		lines[i] = line
	}
	mergesToTheWhole(t, lines, at(t, second[0], "spec", "template", "spec", "containers", 0, "args", 0).(string),
		func(i int) []string { return []string{fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i)} }, "/evidence/")
}

func TestTheCIMatrixExampleMergesToTheWhole(t *testing.T) {
	docs := documents(t, "../../examples/ci-matrix/stockproof.yml")
	require.Len(t, docs, 1)
	require.Equal(t, "verify", at(t, docs[0], "jobs", "merge", "needs"))
	run := func(job, command string) (line string) {
		for _, s := range at(t, docs[0], "jobs", job, "steps").([]any) {
			if r, ok := s.(map[string]any)["run"].(string); ok && strings.HasPrefix(r, command) {
				line = r
			}
		}
		require.NotEmpty(t, line)
		return line
	}
	var lines []string
	for _, shard := range at(t, docs[0], "jobs", "verify", "strategy", "matrix", "shard").([]any) {
		line := regexp.MustCompile(`\$\{\{ *matrix\.shard *\}\}`).ReplaceAllString(run("verify", "stockproof verify"), fmt.Sprint(shard))
		require.NotContains(t, line, "${{", "what the test does not fill in")
		lines = append(lines, line)
	}
	mergesToTheWhole(t, lines, run("merge", "stockproof merge"), func(int) []string { return nil }, "evidence/")
	require.Equal(t, "go build -tags nolive -o /usr/local/bin/stockproof ./cmd/stockproof", run("verify", "go build"))
	require.Equal(t, run("verify", "go build"), run("merge", "go build"), "shards of different programs do not merge")
}

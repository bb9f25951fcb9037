// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// TestMain runs the program itself, if the environment asks for it.
func TestMain(m *testing.M) {
	if os.Getenv("OTELPROF_TEST_PROGRAM") != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// action is the composite GitHub Action in the repository.
type action struct {
	Inputs map[string]struct {
		Default string
	}
	Runs struct {
		Steps []struct {
			ID, If, Shell, Run string
			Env                map[string]string
		}
	}
}

// gitHub runs the steps of the action as a runner does: each step with bash, in an environment made of its expressions.
type gitHub struct {
	t       *testing.T
	dir     string
	inputs  map[string]string
	outputs map[string]string
	// comments are those of the pull request, which the program gh serves.
	comments string
}

func newGitHub(t *testing.T) *gitHub {
	t.Helper()
	for _, program := range []string{"bash", "jq", "iconv"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is needed: %v", program, err)
		}
	}
	g := &gitHub{t: t, dir: t.TempDir(), comments: "[]"}
	// gh writes the comments, or what it is asked to send.
	g.program("gh", `#!/bin/bash
if [ "$2" = --paginate ]; then cat "$(dirname "$0")/comments.json"; exit; fi
printf '%s %s\n' "$3" "$4" >>"$(dirname "$0")/sent"
cat "${6#body=@}" >"$(dirname "$0")/body"
`)
	return g
}

func (g *gitHub) program(name, script string) string {
	g.t.Helper()
	path := filepath.Join(g.dir, name)
	require.NoError(g.t, os.WriteFile(path, []byte(script), 0o700)) // #nosec G306 -- a program
	return path
}

func (g *gitHub) read(name string) string {
	data, err := os.ReadFile(filepath.Join(g.dir, name))
	if os.IsNotExist(err) {
		return ""
	}
	require.NoError(g.t, err)
	return string(data)
}

var expression = regexp.MustCompile(`\$\{\{ (.*?) \}\}`)

// expand replaces the expressions that the action has. An unknown one fails the test.
func (g *gitHub) expand(text string) string {
	g.t.Helper()
	return expression.ReplaceAllStringFunc(text, func(match string) string {
		name := expression.FindStringSubmatch(match)[1]
		if input, ok := strings.CutPrefix(name, "inputs."); ok {
			value, known := g.inputs[input]
			require.True(g.t, known, name)
			return value
		}
		if output, ok := strings.CutPrefix(name, "steps.diff.outputs."); ok {
			return g.outputs[output]
		}
		value, known := map[string]string{
			"github.repository": "acme/checkout", "github.event.pull_request.number": "7", "github.token": "t0ken",
		}[name]
		require.True(g.t, known, name)
		return value
	})
}

// runs evaluates the condition of a step.
func (g *gitHub) runs(condition string) bool {
	switch condition {
	case "":
		return true
	case "${{ inputs.otelprof == '' }}":
		return g.inputs["otelprof"] == ""
	case "${{ inputs.comment == 'true' && github.event.pull_request.number }}":
		return g.inputs["comment"] == "true"
	case "${{ steps.diff.outputs.failed == 'true' }}":
		return g.outputs["failed"] == "true"
	}
	g.t.Fatalf("unknown condition %s", condition)
	return false
}

// run runs the action with inputs in addition to its defaults, and returns the ID of the step that failed, or "".
func (g *gitHub) run(inputs map[string]string) (failed, output string) {
	g.t.Helper()
	data, err := os.ReadFile("../../.github/actions/diff/action.yaml")
	require.NoError(g.t, err)
	var a action
	require.NoError(g.t, yaml.Unmarshal(data, &a))
	g.inputs, g.outputs = map[string]string{}, map[string]string{}
	for name, input := range a.Inputs {
		g.inputs[name] = g.expand(input.Default)
	}
	maps.Copy(g.inputs, inputs)
	require.NoError(g.t, os.WriteFile(filepath.Join(g.dir, "comments.json"), []byte(g.comments), 0o600))
	_ = os.Remove(filepath.Join(g.dir, "sent"))
	for _, step := range a.Runs.Steps {
		if !g.runs(step.If) {
			continue
		}
		assert.NotContains(g.t, step.Run, "${{", "text of others must not become a script")
		require.Equal(g.t, "bash", step.Shell)
		written := filepath.Join(g.dir, "output")
		require.NoError(g.t, os.WriteFile(written, nil, 0o600))
		command := exec.CommandContext(g.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", g.program("step.sh", step.Run))
		command.Env = append(os.Environ(), "RUNNER_TEMP="+g.dir, "GITHUB_OUTPUT="+written, "GITHUB_STEP_SUMMARY="+filepath.Join(g.dir, "summary"),
			"PATH="+g.dir+":"+os.Getenv("PATH"))
		for name, value := range step.Env {
			command.Env = append(command.Env, name+"="+g.expand(value))
		}
		said, err := command.CombinedOutput()
		output += string(said)
		for line := range strings.Lines(g.read("output")) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			g.outputs[name] = value
		}
		if err != nil {
			return step.ID, output
		}
	}
	return "", output
}

// TestActionComparesAndComments runs the steps of the GitHub Action with the program.
func TestActionComparesAndComments(t *testing.T) {
	g := newGitHub(t)
	g.program("otelprof", fmt.Sprintf("#!/bin/bash\nOTELPROF_TEST_PROGRAM=1 exec %q \"$@\"\n", os.Args[0]))
	base, grown := runsDirectory(t, 1, 0.1), runsDirectory(t, 2, 0.3)
	inputs := map[string]string{"base": base, "new": grown, "type": "cpu", "otelprof": filepath.Join(g.dir, "otelprof")}

	failed, output := g.run(inputs)
	require.Empty(t, failed, output)
	assert.Equal(t, "POST repos/acme/checkout/issues/7/comments\n", g.read("sent"))
	body := g.read("body")
	assert.True(t, strings.HasPrefix(body, "## Profiles\n\n"), body)
	assert.Contains(t, body, "main.encode")
	assert.Equal(t, body, g.read("summary"))
	assert.Equal(t, "false", g.outputs["failed"])

	// A later run edits the comment of the bot, not that of a person who has copied it. It fails where it was told to.
	comments, err := json.Marshal([]map[string]any{
		{"id": 1, "body": body, "user": map[string]string{"type": "User"}}, {"id": 2, "body": "## Other", "user": map[string]string{"type": "Bot"}},
		{"id": 3, "body": strings.ReplaceAll(body, "\n", "\r\n"), "user": map[string]string{"type": "Bot"}},
	})
	require.NoError(t, err)
	g.comments = string(comments)
	inputs["fail-above"] = "2%"
	failed, output = g.run(inputs)
	assert.Equal(t, "result", failed, output)
	assert.Contains(t, output, "::error::The rate of a function grew by more than 2%")
	assert.Equal(t, "PATCH repos/acme/checkout/issues/comments/3\n", g.read("sent"))

	inputs["new"], inputs["comment"] = base, "false"
	failed, output = g.run(inputs)
	assert.Empty(t, failed, output)
	assert.Empty(t, g.read("sent"))

	// Text of others stays data.
	inputs["new"] = "$(touch " + filepath.Join(g.dir, "executed") + ")"
	failed, output = g.run(inputs)
	assert.Equal(t, "diff", failed)
	assert.Contains(t, output, "touch")
	assert.NoFileExists(t, filepath.Join(g.dir, "executed"))
}

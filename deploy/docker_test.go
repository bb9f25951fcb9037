// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"debug/buildinfo"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
)

// dockerfile parses the Dockerfile with Docker's own parser and linter.
func dockerfile(t *testing.T) (stages []instructions.Stage) {
	t.Helper()
	parsed, err := parser.Parse(bytes.NewReader(read(t, "Dockerfile")))
	require.NoError(t, err)
	assert.Empty(t, parsed.Warnings)
	stages, _, err = instructions.Parse(parsed.AST, linter.New(&linter.Config{
		Warn: func(rule, description, _, message string, _ []parser.Range) {
			t.Errorf("%s: %s: %s", rule, message, description)
		},
	}))
	require.NoError(t, err)
	return stages
}

func TestDockerfile(t *testing.T) {
	stages := dockerfile(t)
	require.Len(t, stages, 2, "build and the image")
	require.Equal(t, "build", stages[0].Name)
	image := stages[1]
	assert.True(t, strings.HasPrefix(path.Base(image.BaseName), "static-debian12:nonroot@sha256:"), image.BaseName)
	var user, directory string
	var entrypoint []string
	for _, command := range image.Commands {
		switch command := command.(type) {
		case *instructions.UserCommand:
			user = command.User
		case *instructions.WorkdirCommand:
			directory = command.Path
		case *instructions.EntrypointCommand:
			entrypoint = command.CmdLine
			assert.False(t, command.PrependShell, "the image has no shell")
		case *instructions.RunCommand:
			t.Errorf("the image cannot run %q", command.CmdLine)
		case *instructions.CopyCommand, *instructions.LabelCommand:
		default:
			t.Errorf("unexpected instruction %s", command.Name())
		}
	}
	assert.Equal(t, "65532:65532", user)
	assert.Equal(t, []string{"/usr/bin/otelcol-profiles"}, entrypoint)
	// The user and the writable directory are the same in the manifests.
	for _, dir := range directories {
		for _, pod := range manifests(t, dir).pods {
			container := collectorOf(t, pod)
			assert.True(t, slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == directory && !m.ReadOnly }), "%s mounts nothing to write at %s", dir, directory)
			assert.Empty(t, container.Command, "%s has an entrypoint of its own", dir)
		}
	}
}

// TestDockerfileBuilds checks the first stage without a daemon: its targets of make exist and build what the second stage
// copies, from files that .dockerignore leaves in the build context. The programs are static.
func TestDockerfileBuilds(t *testing.T) {
	var commands []string
	for _, command := range dockerfile(t)[0].Commands {
		if run, ok := command.(*instructions.RunCommand); ok {
			commands = append(commands, strings.Join(run.CmdLine, " "))
		}
	}
	targets := regexp.MustCompile(`make ([^&]*)&& mkdir programs && mv bin/otelprof programs && mv bin/otelcol-profiles\$DISTRIBUTION programs/otelcol-profiles`).
		FindStringSubmatch(strings.Join(commands, "\n"))
	require.NotNil(t, targets, "%q", commands)
	for _, distribution := range []string{"", "-node"} {
		line := exec.CommandContext(t.Context(), "make", append([]string{"-n"}, strings.Fields(strings.ReplaceAll(targets[1], "$DISTRIBUTION", distribution))...)...)
		line.Dir = ".."
		out, err := line.CombinedOutput()
		require.NoError(t, err, "%s", out)
		assert.Contains(t, string(out), "bin/otelprof")
		assert.Contains(t, string(out), "bin/otelcol-profiles"+distribution+" ")
	}

	patterns, err := ignorefile.ReadAll(bytes.NewReader(read(t, "..", ".dockerignore")))
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	needed := []string{"Makefile", "builder-config.yaml", "cmd/otelcol-profiles/default-config.yaml", "config/node/builder-config.yaml"}
	require.NoError(t, fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".ci", ".git", "bin", "config", "deploy", "e2e", "packaging"}, name):
			return fs.SkipDir
		case !slices.Contains([]string{".go", ".mod", ".sum", ".html", ".css"}, path.Ext(name)), strings.HasSuffix(name, "_test.go"), strings.Contains(name, "testdata/"):
			return nil
		}
		needed = append(needed, name)
		return nil
	}))
	for _, name := range needed {
		ignored, err := matcher.MatchesOrParentMatches(name)
		require.NoError(t, err)
		assert.False(t, ignored, "%s is not in the build context", name)
	}
	for _, distribution := range []string{"", "-node"} {
		built, err := buildinfo.ReadFile(programOf(t, "otelcol-profiles"+distribution+":"))
		require.NoError(t, err)
		assert.Contains(t, built.Settings, debug.BuildSetting{Key: "CGO_ENABLED", Value: "0"}, "it is linked with libraries that the image does not have")
	}
}

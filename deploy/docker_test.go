// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"debug/elf"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
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
	file, err := os.Open("Dockerfile")
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	parsed, err := parser.Parse(file)
	require.NoError(t, err)
	for _, warning := range parsed.Warnings {
		t.Errorf("%s", warning.Short)
	}
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
	if len(stages) != 2 || stages[0].Name != "build" {
		t.Fatalf("%d stages, want build and the image", len(stages))
	}
	image := stages[1]
	if base, tag, _ := strings.Cut(path.Base(image.BaseName), ":"); base != "static-debian12" || tag != "nonroot" {
		t.Errorf("the image starts from %s", image.BaseName)
	}
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
	uid := "65532"
	assert.Equal(t, uid+":"+uid, user, "user of the image")
	assert.True(t, slices.Equal(entrypoint, []string{"/usr/bin/otelcol-profiles"}), "entrypoint %q", entrypoint)
	// The user and the writable directory are the same in the manifests.
	for _, dir := range directories {
		for _, pod := range manifests(t, dir).pods {
			container := collectorOf(t, pod)
			assert.True(t, slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == directory && !m.ReadOnly }), "%s mounts nothing to write at %s", dir, directory)
			assert.Empty(t, container.Command, "%s has an entrypoint of its own", dir)
		}
	}
}

// TestDockerfileBuilds runs the Dockerfile without a daemon. The resulting programs are static and
// accept the configurations of their images.
func TestDockerfileBuilds(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"make", "bash"} {
		if _, err := exec.LookPath(tool); err != nil {
			missing(t, "%v", err)
		}
	}
	run(t, build(t, ""), nil, "validate")
	agent, err := filepath.Abs(filepath.Join("kubernetes", "agent"))
	require.NoError(t, err)
	run(t, build(t, "-node"), map[string]string{"K8S_NODE_NAME": "node-1", "DATA_DIR": t.TempDir()},
		"validate", "--config="+filepath.Join(agent, "agent.yaml"), "--config="+filepath.Join(agent, "kubernetes.yaml"))
}

// build runs the commands of the first stage of the Dockerfile in a copy of the build context, then
// the copies of the second. It returns the path of the program.
func build(t *testing.T, distribution string) string {
	t.Helper()
	bin := programOf(t, "otelcol-profiles"+distribution+":")
	context, image := t.TempDir(), t.TempDir()
	copyContext(t, context)
	stages := dockerfile(t)

	root := t.TempDir() // of the first stage
	directory := root
	for _, command := range stages[0].Commands {
		switch command := command.(type) {
		case *instructions.WorkdirCommand:
			directory = filepath.Join(root, command.Path)
			mkdir(t, directory)
			// Go links again only if the build ID differs.
			copyFile(t, bin, filepath.Join(directory, "bin", "otelcol-profiles"+distribution))
		case *instructions.CopyCommand:
			for _, source := range command.SourcePaths {
				copyTo(t, filepath.Join(context, source), directory, command.DestPath, len(command.SourcePaths) > 1)
			}
		case *instructions.RunCommand:
			line := exec.CommandContext(t.Context(), "bash", "-c", strings.Join(command.CmdLine, " "))
			line.Dir = directory
			line.Env = append(os.Environ(), "TARGETOS=", "TARGETARCH=", "DISTRIBUTION="+distribution)
			if out, err := line.CombinedOutput(); err != nil {
				t.Fatalf("%q: %v\n%s", command.CmdLine, err, out)
			}
		case *instructions.ArgCommand:
		default:
			t.Fatalf("unexpected instruction %s", command.Name())
		}
	}
	for _, command := range stages[1].Commands {
		if command, ok := command.(*instructions.CopyCommand); ok {
			for _, source := range command.SourcePaths {
				copyTo(t, filepath.Join(root, source), image, command.DestPath, false)
			}
		}
	}

	built := filepath.Join(image, "usr", "bin", "otelcol-profiles")
	file, err := elf.Open(built)
	require.NoError(t, err)
	defer func() { _ = file.Close() }()
	for _, segment := range file.Progs {
		assert.NotEqual(t, elf.PT_INTERP, segment.Type, "it is linked with libraries that the image does not have")
	}
	data := filepath.Join(image, "var", "lib", "otelcol-profiles")
	if entries, err := os.ReadDir(data); err != nil || len(entries) > 0 {
		t.Errorf("the directory for data: %v, %d entries", err, len(entries))
	}
	return built
}

// copyContext copies the files that .dockerignore does not exclude.
func copyContext(t *testing.T, to string) {
	t.Helper()
	ignore, err := os.Open(filepath.Join("..", ".dockerignore"))
	require.NoError(t, err)
	patterns, err := ignorefile.ReadAll(bufio.NewReader(ignore))
	_ = ignore.Close()
	require.NoError(t, err)
	matcher, err := patternmatcher.New(patterns)
	require.NoError(t, err)
	err = fs.WalkDir(os.DirFS(".."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		ignored, err := matcher.MatchesOrParentMatches(name)
		switch {
		case err != nil:
			return err
		case ignored && entry.IsDir():
			return fs.SkipDir // nothing is taken back with "!"
		case ignored || entry.IsDir() || !entry.Type().IsRegular():
			return nil
		}
		copyFile(t, filepath.Join("..", name), filepath.Join(to, name))
		return nil
	})
	require.NoError(t, err)
}

// copyTo is COPY of one source.
func copyTo(t *testing.T, source, directory, target string, several bool) {
	t.Helper()
	to := filepath.Join(directory, target)
	info, err := os.Stat(source)
	require.NoError(t, err)
	if info.IsDir() {
		mkdir(t, to)
		if err := fs.WalkDir(os.DirFS(source), ".", func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				copyFile(t, filepath.Join(source, name), filepath.Join(to, name))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return
	}
	if several || strings.HasSuffix(target, "/") {
		to = filepath.Join(to, filepath.Base(source))
	}
	copyFile(t, source, to)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Stat(from)
	require.NoError(t, err)
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	mkdir(t, filepath.Dir(to))
	require.NoError(t, os.WriteFile(to, content, info.Mode().Perm()))
}

func mkdir(t *testing.T, dir string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(dir, 0o700))
}

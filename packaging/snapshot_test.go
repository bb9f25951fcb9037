// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
)

// systems are those that goreleaser has built for, by its own configuration in the directory.
func systems(t *testing.T) (names []string) {
	t.Helper()
	directory, _ := dist(t)
	var config struct{ Builds []struct{ Targets []string } }
	require.NoError(t, yaml.Unmarshal(read(t, directory, "config.yaml"), &config))
	require.NotEmpty(t, config.Builds)
	for _, target := range config.Builds[0].Targets {
		names = append(names, strings.Join(strings.Split(target, "_")[:2], "_"))
	}
	return names
}

// dist returns the directory that goreleaser has written, and the version of its files.
func dist(t *testing.T) (directory, version string) {
	t.Helper()
	directory = os.Getenv("SNAPSHOT")
	if directory == "" {
		t.Skip("SNAPSHOT names no directory (make snapshot)")
	}
	var metadata struct{ Version string }
	require.NoError(t, json.Unmarshal(read(t, directory, "metadata.json"), &metadata))
	require.NotEmpty(t, metadata.Version)
	return directory, metadata.Version
}

// read returns the content of a file.
func read(t *testing.T, path ...string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	require.NoError(t, err)
	return content
}

// file is a file of an archive.
type file struct {
	mode    fs.FileMode
	content []byte
}

// readArchive returns the files of an archive below its one directory. All have the same time.
func readArchive(t *testing.T, name string) map[string]file {
	t.Helper()
	content := read(t, name)
	base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".tar.gz"), ".zip")
	files, times := map[string]file{}, map[int64]bool{}
	add := func(entry string, info fs.FileInfo, reader io.Reader) {
		below, ok := strings.CutPrefix(entry, base+"/")
		assert.True(t, ok, "%s contains %s, outside of the directory %s", name, entry, base)
		data, err := io.ReadAll(reader)
		require.NoError(t, err, "%s: %s", name, entry)
		times[info.ModTime().Unix()] = true
		files[below] = file{info.Mode(), data}
	}
	if strings.HasSuffix(name, ".zip") {
		archive, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
		require.NoError(t, err)
		for _, entry := range archive.File {
			reader, err := entry.Open()
			require.NoError(t, err)
			add(entry.Name, entry.FileInfo(), reader)
			_ = reader.Close()
		}
	} else {
		plain, err := gzip.NewReader(bytes.NewReader(content))
		require.NoError(t, err)
		for archive := tar.NewReader(plain); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			require.NoError(t, err)
			assert.Equal(t, "root:root", header.Uname+":"+header.Gname, "%s: owner of %s", name, header.Name)
			add(header.Name, header.FileInfo(), archive)
		}
	}
	assert.Len(t, times, 1, "times of files in %s, which must be that of the commit", name)
	return files
}

func archiveName(program, version, system string) string {
	extension := "tar.gz"
	if strings.HasPrefix(system, "windows") {
		extension = "zip"
	}
	return fmt.Sprintf("%s_%s_%s.%s", program, version, system, extension)
}

// TestArchivesHaveProgramsAndLicences also runs the programs that this machine can run, those for
// arm64 with QEMU if it is there.
func TestArchivesHaveProgramsAndLicences(t *testing.T) {
	directory, version := dist(t)
	for _, system := range systems(t) {
		suffix := ""
		if strings.HasPrefix(system, "windows") {
			suffix = ".exe"
		}
		for archive, want := range map[string][]string{
			"otelcol-profiles": {"otelcol-profiles" + suffix, "otelprof" + suffix, "LICENSE", "THIRD_PARTY_LICENSES.txt", "README.md", "CHANGELOG.md", "config/sidecar.yaml", "config/backends/pyroscope.yaml"},
			"otelprof":         {"otelprof" + suffix, "LICENSE", "THIRD_PARTY_LICENSES.txt", "README.md"},
		} {
			files := readArchive(t, filepath.Join(directory, archiveName(archive, version, system)))
			for _, name := range want {
				assert.NotEmpty(t, files[name].content, "%s of %s has no %s", archive, system, name)
			}
			for name, file := range files {
				executable := strings.HasPrefix(name, "otel")
				if executable {
					checkProgram(t, system, file.content)
				}
				if suffix == "" {
					assert.Equal(t, executable, file.mode.Perm()&0o111 != 0, "%s of %s: the mode of %s is %v", archive, system, name, file.mode)
				}
			}
			emulator := []string{}
			if system != runtime.GOOS+"_"+runtime.GOARCH {
				qemu, err := exec.LookPath("qemu-aarch64-static")
				if err != nil || system != "linux_arm64" || runtime.GOOS != "linux" {
					continue
				}
				emulator = []string{qemu}
			}
			for name, argumentLists := range map[string][][]string{
				"otelcol-profiles" + suffix: {{"--version"}, {"components"}, {"validate"}},
				"otelprof" + suffix:         {{"--version"}, {"--help"}},
			} {
				if len(files[name].content) == 0 {
					continue
				}
				program := filepath.Join(t.TempDir(), name)
				require.NoError(t, os.WriteFile(program, files[name].content, 0o700))
				for _, arguments := range argumentLists {
					line := slices.Concat(emulator, []string{program}, arguments)
					out, err := exec.CommandContext(t.Context(), line[0], line[1:]...).CombinedOutput()
					assert.NoError(t, err, "%q\n%s", line, out)
					if arguments[0] == "--version" {
						assert.Contains(t, string(out), version, name)
					}
				}
			}
		}
	}
}

// checkProgram checks that a program is for a system, and static.
func checkProgram(t *testing.T, system string, content []byte) {
	t.Helper()
	program, err := buildinfo.Read(bytes.NewReader(content))
	require.NoError(t, err, "a program of %s", system)
	goos, goarch, _ := strings.Cut(system, "_")
	for key, value := range map[string]string{"GOOS": goos, "GOARCH": goarch, "CGO_ENABLED": "0"} {
		assert.Contains(t, program.Settings, debug.BuildSetting{Key: key, Value: value}, "a program of %s", system)
	}
}

func TestChecksumsNameEveryFile(t *testing.T) {
	directory, version := dist(t)
	sums := checksums(t, directory)
	var want []string
	for _, system := range systems(t) {
		for _, program := range []string{"otelcol-profiles", "otelprof"} {
			want = append(want, archiveName(program, version, system), fmt.Sprintf("%s_%s_%s.cdx.json", program, version, system))
		}
	}
	for _, extension := range []string{"deb", "rpm"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			want = append(want, filepath.Base(packageFile(t, extension, architecture)))
		}
	}
	for _, name := range want {
		assert.Equal(t, fmt.Sprintf("%x", sha256.Sum256(read(t, directory, name))), sums[name], "the checksum of %s", name)
		delete(sums, name)
	}
	assert.Empty(t, sums, "checksums.txt also has %v", sums)
}

// TestSBOMsListModulesWithLicences compares the modules that are linked into each program with
// the texts of licences.
func TestSBOMsListModulesWithLicences(t *testing.T) {
	directory, version := dist(t)
	licences := read(t, "..", "bin", "release", "THIRD_PARTY_LICENSES.txt")
	for _, system := range systems(t) {
		for program, least := range map[string]int{"otelcol-profiles": 100, "otelprof": 10} {
			var sbom struct {
				SerialNumber string
				Metadata     struct {
					Timestamp string
					Component struct{ Version string }
				}
				Components []struct{ Name, Version string }
			}
			require.NoError(t, json.Unmarshal(read(t, directory, fmt.Sprintf("%s_%s_%s.cdx.json", program, version, system)), &sbom))
			assert.GreaterOrEqual(t, len(sbom.Components), least, "%s of %s", program, system)
			assert.Empty(t, sbom.SerialNumber+sbom.Metadata.Timestamp, "%s of %s", program, system)
			assert.Equal(t, "v"+version, sbom.Metadata.Component.Version, "%s of %s", program, system)
			for _, module := range sbom.Components {
				if module.Name == "std" || module.Name == "github.com/otelcol-profiles/otelcol-profiles" && module.Version == "v"+version {
					continue
				}
				assert.True(t, bytes.Contains(licences, []byte("\n"+module.Name+" "+module.Version+": ")), "%s of %s contains %s %s, whose licence is missing", program, system, module.Name, module.Version)
			}
		}
	}
}

// TestReleaseIsReproducible makes the release for one system again, in another directory and with
// other modes of files, and compares the bytes of archives, packages and SBOMs.
func TestReleaseIsReproducible(t *testing.T) {
	directory, version := dist(t)
	root := filepath.Join(t.TempDir(), "elsewhere")
	require.NoError(t, os.Mkdir(root, 0o700))
	tree := os.DirFS("..")
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "bin" || name == "profiles" || name == "e2e" || name == "deploy/kubernetes"):
			return fs.SkipDir
		case entry.IsDir():
			return os.MkdirAll(filepath.Join(root, name), 0o700)
		case !entry.Type().IsRegular():
			return nil
		}
		return copyFile(filepath.Join("..", name), filepath.Join(root, name))
	})
	require.NoError(t, err)
	config := regexp.MustCompile(`goos: &goos .*`).ReplaceAll(read(t, "..", ".goreleaser.yaml"), []byte("goos: &goos [linux]"))
	config = regexp.MustCompile(`goarch: &goarch .*`).ReplaceAll(config, []byte("goarch: &goarch [amd64]"))
	const licences = "bin/release/THIRD_PARTY_LICENSES.txt"
	err = errors.Join(
		os.MkdirAll(filepath.Join(root, "bin", "release"), 0o700),
		os.WriteFile(filepath.Join(root, "bin", "release", "goreleaser.yaml"), config, 0o600),
		copyFile(filepath.Join("..", licences), filepath.Join(root, licences)),
	)
	require.NoError(t, err)
	tools, err := filepath.Abs(filepath.Join("..", "bin"))
	require.NoError(t, err)
	again := exec.CommandContext(t.Context(), filepath.Join(tools, "goreleaser"), "release", "--config=bin/release/goreleaser.yaml", "--snapshot", "--parallelism=1")
	again.Dir = root
	again.Env = append(os.Environ(), "PATH="+tools+":"+filepath.Join(root, "packaging")+":"+os.Getenv("PATH"), "VERSION="+strings.TrimSuffix(version, "-snapshot"))
	out, err := again.CombinedOutput()
	require.NoError(t, err, "%s", out)
	sums := checksums(t, filepath.Join(root, "bin", "dist"))
	for name, sum := range sums {
		assert.Equal(t, checksums(t, directory)[name], sum, "%s from another directory", name)
	}
	assert.Len(t, sums, 6, "archives and SBOMs of two programs, deb and rpm")
}

// copyFile keeps whether a file is executable, and no other part of its mode.
func copyFile(from, to string) error {
	info, err := os.Stat(from)
	if err != nil {
		return err
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o600|info.Mode().Perm()&0o100)
}

// checksums reads checksums.txt, by the names of files.
func checksums(t *testing.T, directory string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	for line := range strings.Lines(string(read(t, directory, "checksums.txt"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		sums[name] = sum
	}
	return sums
}

var packageName = regexp.MustCompile(`^otelcol-profiles[-_].*[-_.](amd64|x86_64|arm64|aarch64)\.(deb|rpm)$`)

// packageFile returns the path of a package.
func packageFile(t *testing.T, extension, architecture string) string {
	t.Helper()
	directory, _ := dist(t)
	entries, err := os.ReadDir(directory)
	require.NoError(t, err)
	of := map[string]string{"amd64": "amd64", "x86_64": "amd64", "arm64": "arm64", "aarch64": "arm64"}
	for _, entry := range entries {
		if m := packageName.FindStringSubmatch(entry.Name()); m != nil && of[m[1]] == architecture && m[2] == extension {
			return filepath.Join(directory, entry.Name())
		}
	}
	t.Fatalf("no %s for %s", extension, architecture)
	return ""
}

// packaged are the files of the packages, with their modes. Next to them are the configurations as
// examples.
var packaged = map[string]fs.FileMode{
	"/usr/bin/otelcol-profiles":                                0o755,
	"/usr/bin/otelprof":                                        0o755,
	"/etc/otelcol-profiles/config.yaml":                        0o644,
	"/etc/otelcol-profiles/environment":                        0o640,
	"/usr/lib/systemd/system/otelcol-profiles.service":         0o644,
	"/usr/lib/sysusers.d/otelcol-profiles.conf":                0o644,
	"/usr/share/doc/otelcol-profiles/copyright":                0o644,
	"/usr/share/doc/otelcol-profiles/THIRD_PARTY_LICENSES.txt": 0o644,
	"/usr/share/doc/otelcol-profiles/README.md":                0o644,
	"/usr/share/doc/otelcol-profiles/CHANGELOG.md":             0o644,
}

// configFiles stay as they are when a package is upgraded.
var configFiles = []string{"/etc/otelcol-profiles/config.yaml", "/etc/otelcol-profiles/environment"}

// checkPackaged compares the files of a package with packaged, and its programs with those of the
// archive.
func checkPackaged(t *testing.T, name, architecture string, files map[string]file) {
	t.Helper()
	directory, version := dist(t)
	archive := readArchive(t, filepath.Join(directory, archiveName("otelcol-profiles", version, "linux_"+architecture)))
	for path, mode := range packaged {
		assert.Equal(t, mode, files[path].mode.Perm(), "%s: %s", name, path)
		assert.NotEmpty(t, files[path].content, "%s: %s", name, path)
	}
	examples, err := filepath.Glob(filepath.Join("..", "config", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, examples)
	for _, example := range examples {
		at := "/usr/share/doc/otelcol-profiles/examples/" + filepath.Base(example)
		assert.NotEmpty(t, files[at].content, "%s has no %s", name, at)
		delete(files, at)
	}
	for path := range files {
		assert.Contains(t, packaged, path, name)
	}
	for _, program := range []string{"otelcol-profiles", "otelprof"} {
		assert.True(t, bytes.Equal(files[path.Join("/usr/bin", program)].content, archive[program].content), "%s: %s is not that of the archive", name, program)
	}
}

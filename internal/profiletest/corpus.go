// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"
)

// CorpusEnv names the environment variable that overrides where the corpus is
// looked for.
const CorpusEnv = "OTELCOL_PROFILES_CORPUS"

const rootModule = "github.com/otelcol-profiles/otelcol-profiles"

// File is one file of the corpus.
type File struct {
	// Name is the path inside the corpus, with slashes: "go-heap-series/00.pb.gz".
	Name string
	// Data is a pprof message, gzipped or not: the content as on disk, or, of a
	// legacy file, google/pprof's conversion of it.
	Data []byte
	// Legacy is the content of a file in one of the formats before protobuf.
	Legacy []byte
}

// Corpus returns the pprof files of the corpus, sorted by name. With the race detector, it leaves out files of more
// than 1 MiB, which take minutes. Where there is no corpus it skips tb, saying so.
func Corpus(tb testing.TB) []File {
	tb.Helper()
	dir := corpusDir(tb)
	var paths []string
	for _, pattern := range []string{"*.pb", "*.pb.gz", "go-heap-series/*.pb.gz"} {
		found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
		require.NoError(tb, err)
		paths = append(paths, found...)
	}
	require.NotEmpty(tb, paths, "corpus %s has no *.pb or *.pb.gz file", dir)
	files := make([]File, 0, len(paths))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(tb, err)
		if RaceEnabled && len(data) > 1<<20 {
			continue
		}
		name, err := filepath.Rel(dir, path)
		require.NoError(tb, err)
		file := File{Name: filepath.ToSlash(name), Data: data}
		if !bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
			if _, err := profile.ParseUncompressed(data); err != nil {
				file.Data, file.Legacy = convertLegacy(tb, path, data), data
			}
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
}

func convertLegacy(tb testing.TB, path string, data []byte) []byte {
	tb.Helper()
	p, err := profile.ParseData(data)
	require.NoError(tb, err, path)
	var converted bytes.Buffer
	require.NoError(tb, p.WriteUncompressed(&converted), path)
	return converted.Bytes()
}

// CorpusOTLP returns the payloads of the OpenTelemetry eBPF profiler in the
// corpus, in the order they were sent. Where there is no corpus it skips tb,
// saying so.
func CorpusOTLP(tb testing.TB) []pprofile.Profiles {
	tb.Helper()
	path := filepath.Join(corpusDir(tb), "ebpf-timestamps.otlp.jsonl")
	data, err := os.ReadFile(path)
	require.NoError(tb, err)
	var payloads []pprofile.Profiles
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, len(data)+1)
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		pd, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(lines.Bytes())
		require.NoError(tb, err, "%s: request %d", path, len(payloads))
		payloads = append(payloads, pd)
	}
	require.NoError(tb, lines.Err(), path)
	return payloads
}

func corpusDir(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv(CorpusEnv)
	if dir == "" {
		root, err := moduleRoot()
		require.NoError(tb, err)
		dir = filepath.Join(root, "..", "shared", "corpus")
	}
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		tb.Skipf("no corpus of real profiles at %s (%s names another place)", dir, CorpusEnv)
	}
	return dir
}

// moduleRoot returns the directory of the root module, at or above the working
// directory: nested modules are passed by.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil {
			first, _, _ := strings.Cut(string(data), "\n")
			if strings.TrimSpace(first) == "module "+rootModule {
				return dir, nil
			}
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of module %s at or above %s", rootModule, start)
		}
	}
}

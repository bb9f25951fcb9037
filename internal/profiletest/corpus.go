// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
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
				legacy, err := profile.ParseData(data)
				require.NoError(tb, err, path)
				file.Data, file.Legacy = Pprof(tb, legacy), data
			}
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(a.Name, b.Name) })
	return files
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
	for line := range bytes.Lines(data) {
		if len(bytes.TrimSpace(line)) > 0 {
			payloads = append(payloads, UnmarshalJSON(tb, line))
		}
	}
	return payloads
}

// corpusDir is that of CorpusEnv, or shared/corpus in the nearest directory above the working directory that has it.
func corpusDir(tb testing.TB) string {
	tb.Helper()
	isDir := func(path string) bool {
		info, err := os.Stat(path)
		return err == nil && info.IsDir()
	}
	dir := os.Getenv(CorpusEnv)
	if dir == "" {
		above, err := os.Getwd()
		require.NoError(tb, err)
		for dir = filepath.Join(above, "shared", "corpus"); !isDir(dir) && above != filepath.Dir(above); {
			above = filepath.Dir(above)
			dir = filepath.Join(above, "shared", "corpus")
		}
	}
	if !isDir(dir) {
		tb.Skipf("no corpus of real profiles: there is no ../shared/corpus, and %s names no directory", CorpusEnv)
	}
	return dir
}

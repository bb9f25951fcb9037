// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

// fileName matches the names of closed files: when they were created or their hour or day, by whom, and the times of their profiles.
var fileName = regexp.MustCompile(`^([0-9]{8}T[0-9]{6}\.[0-9]{3}Z-|[0-9]{2}_)[0-9a-f]{12}\.[0-9]{8}T[0-9]{6}Z-[0-9]{8}T[0-9]{6}Z\.otlp\.(pb\.zst|jsonl)$`)

// isHidden reports whether a file has no profiles, such as the ID of a directory.
func isHidden(path string) bool { return strings.HasPrefix(filepath.Base(path), ".") }

// filesIn returns the paths of the files below a directory, closed or not. Some may be gone.
func filesIn(t *testing.T, dir string) (paths []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing yet, or it was renamed just now
		}
		if err == nil && !entry.IsDir() && !isHidden(path) {
			paths = append(paths, path)
		}
		return err
	}))
	return paths
}

// readAll returns the records of all files below a directory. Each must be closed.
func readAll(t *testing.T, dir string) [][]expand.Profile {
	t.Helper()
	paths := filesIn(t, dir)
	require.NotEmpty(t, paths, "there is no file in %s", dir)
	var records [][]expand.Profile
	for _, path := range paths {
		if !fileName.MatchString(filepath.Base(path)) {
			t.Errorf("file %s is not named like a finished one", path)
			continue
		}
		info, err := os.Stat(path)
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), "mode of %s", path)
		records = append(records, readFile(t, path)...)
	}
	return records
}

// readProfiles is readAll for tests that ignore records.
func readProfiles(t *testing.T, dir string) []expand.Profile {
	t.Helper()
	return slices.Concat(readAll(t, dir)...)
}

func readFile(t *testing.T, path string) [][]expand.Profile {
	t.Helper()
	read := readProto
	if strings.Contains(filepath.Base(path), ".jsonl") {
		read = readJSON
	}
	messages := profiletest.ReadRecords(t, path)
	require.NotEmpty(t, messages, "%s holds no record", path)
	var records [][]expand.Profile
	for i, message := range messages {
		record, found, err := read(message)
		require.NoError(t, err, "%s: record %d", path, i)
		assert.Empty(t, found, "%s: record %d breaks the format, or rules of all backends", path, i)
		records = append(records, record)
	}
	return records
}

func readProto(message []byte) (record []expand.Profile, found []string, err error) {
	record, err = expand.Bytes(message)
	return record, faults(conformance.CheckBytes(message)), err
}

func readJSON(line []byte) (record []expand.Profile, found []string, err error) {
	pd, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(line)
	if err != nil {
		return nil, nil, err
	}
	record, err = expand.Profiles(pd)
	return record, faults(conformance.Check(pd)), err
}

// everyBackend are the rules that the format does not enforce, and that all output keeps:
// backends reject or misread payloads that break them.
var everyBackend = []conformance.Rule{conformance.SampleOrder, conformance.SampleTypes}

// faults returns the findings that break the format or a rule of everyBackend.
func faults(report *conformance.Report) (found []string) {
	for _, f := range report.Findings {
		if !f.IsWarning() || slices.Contains(everyBackend, f.Rule) {
			found = append(found, f.String())
		}
	}
	return found
}

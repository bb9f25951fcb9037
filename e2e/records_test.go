// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/expand"
)

var fileName = regexp.MustCompile(`^profiles-[0-9TZ.\-]+-[0-9]+\.otlp\.(pb|jsonl)(\.zst|\.gz)?$`)

// isIndex reports whether a path is that of an index of a closed file.
func isIndex(path string) bool {
	of, found := strings.CutSuffix(filepath.Base(path), ".index")
	return found && fileName.MatchString(of)
}

// readAll returns the profiles of each record in the files of dir. Each file must be closed, named
// and private as documented; each record must be complete and conform to the format.
func readAll(t *testing.T, dir string) [][]expand.Profile {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.NotEmpty(t, entries, "there is no file in %s", dir)
	var records [][]expand.Profile
	for _, entry := range entries {
		if isIndex(entry.Name()) {
			continue
		}
		if !fileName.MatchString(entry.Name()) {
			t.Errorf("file %s is not named like a finished one", entry.Name())
			continue
		}
		info, err := entry.Info()
		require.NoError(t, err)
		assert.EqualValues(t, 0o600, info.Mode().Perm(), "mode of %s", entry.Name())
		records = append(records, readFile(t, filepath.Join(dir, entry.Name()))...)
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

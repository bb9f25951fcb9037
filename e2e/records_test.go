// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/conformance"
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
	plain := decompress(t, path)
	split, read := splitLengths, readProto
	if strings.Contains(filepath.Base(path), ".jsonl") {
		split, read = splitLines, readJSON
	}
	messages, err := split(plain)
	require.NoError(t, err, "%s", path)
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

// decompress decompresses a file by its suffix, and tests it by zstd or gzip.
func decompress(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	var command string
	switch filepath.Ext(path) {
	case ".zst":
		command = "zstd"
		r, err := zstd.NewReader(bytes.NewReader(data))
		require.NoError(t, err, "%s", path)
		defer r.Close()
		if data, err = io.ReadAll(r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	case ".gz":
		command = "gzip"
		r, err := gzip.NewReader(bytes.NewReader(data))
		require.NoError(t, err, "%s", path)
		if data, err = io.ReadAll(r); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	default:
		return data
	}
	if _, err := exec.LookPath(command); err != nil {
		t.Logf("%s is not tested with %s: %v", filepath.Base(path), command, err)
		return data
	}
	if out, err := exec.Command(command, "-t", path).CombinedOutput(); err != nil {
		t.Errorf("%s -t %s: %v\n%s", command, path, err, out)
	}
	return data
}

// splitLengths splits messages that are preceded by their length in 4 big-endian bytes.
func splitLengths(data []byte) ([][]byte, error) {
	var messages [][]byte
	for at := 0; at < len(data); {
		if len(data)-at < 4 {
			return nil, fmt.Errorf("%d bytes at %d are no length", len(data)-at, at)
		}
		size := int(binary.BigEndian.Uint32(data[at:]))
		if size > len(data)-at-4 {
			return nil, fmt.Errorf("a record at %d of %d bytes goes beyond the end, %d", at, size, len(data))
		}
		messages = append(messages, data[at+4:at+4+size])
		at += 4 + size
	}
	return messages, nil
}

func splitLines(data []byte) ([][]byte, error) {
	if len(data) > 0 && data[len(data)-1] != '\n' {
		return nil, fmt.Errorf("the last line does not end")
	}
	var lines [][]byte
	for line := range bytes.Lines(data) {
		lines = append(lines, line[:len(line)-1])
	}
	return lines, nil
}

func readProto(message []byte) (record []expand.Profile, found []string, err error) {
	record, err = expand.Bytes(message)
	return record, faults(conformance.CheckBytes(message), everyBackend...), err
}

func readJSON(line []byte) (record []expand.Profile, found []string, err error) {
	if !json.Valid(line) {
		return nil, nil, fmt.Errorf("encoding/json cannot read it")
	}
	pd, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(line)
	if err != nil {
		return nil, nil, err
	}
	record, err = expand.Profiles(pd)
	return record, faults(conformance.Check(pd), everyBackend...), err
}

// serviceName returns the service.name of a profile's resource, or "".
func serviceName(e expand.Profile) string {
	for _, a := range e.Resource.Attributes {
		if name, ok := a.Value.(string); ok && a.Key == "service.name" {
			return name
		}
	}
	return ""
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
)

// TestObjectStoreAnswersAsDirectory runs commands over the files of the exporter and over their objects.
func TestObjectStoreAnswersAsDirectory(t *testing.T) {
	var payloads []pprofile.Profiles
	r := profiletest.NewRand(11)
	for n := range 20 {
		payloads = append(payloads, profiletest.GenerateProfiles(r),
			payloadtest.With(payloadtest.Interval(1_700_000_000_000_000_000+uint64(n)*1e9, 1e9, int64(n)), "service.name", fmt.Sprint("worker-", n%3)))
	}
	dir := written(t, "group_by: [service.name]\nrotation: {max_records: 3}", payloads)
	commands := [][]string{
		{"ls"}, {"ls", "--json"}, {"ls", "--service", "worker-1", "--from", "2023-11-14T22:13:25Z"}, {"cat"},
		{"cat", "--service", "service-2"}, {"convert", "--format", "otlp"}, {"convert", "--format", "otlp", "--service", "service-0"}, {"check"},
		{"top", "--service", "worker-1"}, {"convert", "--format", "folded", "--service", "worker-1"},
	}
	check := func(t *testing.T, url string) {
		for _, command := range commands {
			code, want, wantNotes := otelprof(t, append(command, dir)...)
			gotCode, got, gotNotes := otelprof(t, append(command, url)...)
			place := strings.NewReplacer(dir, "FILES", "s3://"+s3test.Bucket+"/p", "FILES", url, "FILES")
			assert.Equal(t, code, gotCode, command)
			assert.Equal(t, place.Replace(want), place.Replace(got), command)
			assert.Equal(t, place.Replace(wantNotes), place.Replace(gotNotes), command)
			require.NotEmpty(t, want, command)
		}
	}
	t.Run("fake", func(t *testing.T) {
		s := s3test.New(t)
		s.PageSize = 5
		s.PutDirectory(t, dir, "p")
		check(t, s.Path("p"))
	})
	t.Run("MinIO", func(t *testing.T) {
		endpoint, client := s3test.MinIO(t)
		s3test.PutDirectory(t, client, dir, "p")
		check(t, s3test.Path(endpoint, "p"))
	})
}

func TestStatsCountsBytesAndRequests(t *testing.T) {
	dir := written(t, "group_by: [service.name]", []pprofile.Profiles{payloadtest.With(payloadtest.Interval(1_700_000_000_000_000_000, 1e9, 1), "service.name", "cart")})
	code, _, notes := otelprof(t, "ls", "--stats", "--service", "cart", dir)
	require.Equal(t, exitOK, code)
	assert.Regexp(t, `^otelprof: Read [1-9][0-9]+ bytes, with 0 requests to object stores\n$`, notes)
	s := s3test.New(t)
	s.PutDirectory(t, dir, "p")
	code, _, remote := otelprof(t, "ls", "--stats", "--service", "cart", s.Path("p"))
	require.Equal(t, exitOK, code)
	assert.Equal(t, strings.Replace(notes, "0 requests", "2 requests", 1), remote, "a listing and an index")
	code, _, notes = otelprof(t, "ls", "s3://"+s3test.Bucket+"/p?endpoint=http://localhost:1")
	assert.Equal(t, exitWrong, code)
	assert.Contains(t, notes, "list s3://profiles/p/: dial tcp")
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/s3test"
)

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

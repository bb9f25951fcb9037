// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// otelprof runs the program.
func otelprof(t testing.TB, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(t.Context(), append([]string{"--max-memory=1GiB"}, args...), &out, &errs)
	return code, out.String(), errs.String()
}

// succeed runs the program, which must find nothing wrong, and returns its output.
func succeed(t testing.TB, args ...string) string {
	t.Helper()
	code, stdout, stderr := otelprof(t, args...)
	require.Equal(t, exitOK, code, "otelprof %s: %s%.2000s", strings.Join(args, " "), stderr, stdout)
	return stdout
}

// written is a directory with the files that the exporter makes of the payloads.
func written(t testing.TB, payloads []pprofile.Profiles) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profiles")
	w, err := store.OpenWriter(store.Options{Directory: dir, Format: segment.Proto, MaxOpen: 10, Failed: func(err error) { require.NoError(t, err) }})
	require.NoError(t, err)
	for _, pd := range payloads {
		in := pprofile.NewProfiles()
		pd.CopyTo(in)
		entry, err := contents.Describe(in)
		require.NoError(t, err)
		service := ""
		if value, found := in.ResourceProfiles().At(0).Resource().Attributes().Get("service.name"); found {
			service = value.AsString()
		}
		data, err := (&pprofile.ProtoMarshaler{}).MarshalProfiles(in)
		require.NoError(t, err)
		require.NoError(t, w.Append(store.Record{
			Data: data, Group: []string{layout.GroupDir("service.name", layout.GroupName(service))}, Entry: entry,
		}))
	}
	require.NoError(t, w.Close())
	return dir
}

func parse(t testing.TB, data []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(data)
	require.NoError(t, err)
	return p
}

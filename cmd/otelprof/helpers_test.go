// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
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
func written(t testing.TB, yaml string, payloads []pprofile.Profiles) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profiles")
	factory := profilesfileexporter.NewFactory().(xexporter.Factory)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, profiletest.LoadConfig(yaml+"\ndirectory: "+dir, cfg))
	e, err := factory.CreateProfiles(t.Context(), exportertest.NewNopSettings(factory.Type()), cfg)
	require.NoError(t, err)
	require.NoError(t, e.Start(t.Context(), componenttest.NewNopHost()))
	for _, pd := range payloads {
		in := pprofile.NewProfiles()
		pd.CopyTo(in)
		require.NoError(t, e.ConsumeProfiles(t.Context(), in))
	}
	require.NoError(t, e.Shutdown(context.Background()))
	return dir
}

func parse(t testing.TB, data []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(data)
	require.NoError(t, err)
	return p
}

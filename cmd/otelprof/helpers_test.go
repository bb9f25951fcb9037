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
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/exporter/exportertest"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor/processortest"
	"go.opentelemetry.io/collector/processor/xprocessor"

	"github.com/otelcol-profiles/otelcol-profiles/exporter/profilesfileexporter"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
	"github.com/otelcol-profiles/otelcol-profiles/processor/profilesdedupprocessor"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
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

// timeOfCorpus is given to profiles without a time, as the receiver would.
const timeOfCorpus = 1_700_000_000_000_000_000

// pushed is the translation of each corpus file, of a service with its name.
func pushed(t *testing.T) (files []profiletest.File, payloads []pprofile.Profiles) {
	t.Helper()
	files = profiletest.Corpus(t)
	for _, file := range files {
		pd, err := (&pproftranslator.Unmarshaler{}).UnmarshalProfiles(file.Data)
		require.NoError(t, err)
		resource := pd.ResourceProfiles().At(0)
		resource.Resource().Attributes().PutStr("service.name", file.Name)
		for _, p := range resource.ScopeProfiles().At(0).Profiles().All() {
			if p.Time() == 0 {
				p.SetTime(pcommon.Timestamp(timeOfCorpus))
			}
		}
		payloads = append(payloads, pd)
	}
	return files, payloads
}

// configured returns the default configuration of a component with yaml over it.
func configured(t testing.TB, factory component.Factory, yaml string) component.Config {
	t.Helper()
	raw, err := confmap.NewRetrievedFromYAML([]byte(yaml))
	require.NoError(t, err)
	conf, err := raw.AsConf()
	require.NoError(t, err)
	cfg := factory.CreateDefaultConfig()
	require.NoError(t, conf.Unmarshal(cfg))
	return cfg
}

// windowed is what the processor makes of the payloads in one window.
func windowed(t testing.TB, yaml string, payloads []pprofile.Profiles) []pprofile.Profiles {
	t.Helper()
	sink := new(consumertest.ProfilesSink)
	factory := profilesdedupprocessor.NewFactory().(xprocessor.Factory)
	p, err := factory.CreateProfiles(t.Context(), processortest.NewNopSettings(factory.Type()),
		configured(t, factory, yaml+"\nmemory_limit: 1GiB"), sink)
	require.NoError(t, err)
	require.NoError(t, p.Start(t.Context(), componenttest.NewNopHost()))
	for _, pd := range payloads {
		in := pprofile.NewProfiles()
		pd.CopyTo(in)
		require.NoError(t, p.ConsumeProfiles(t.Context(), in))
	}
	require.NoError(t, p.Shutdown(context.Background()))
	return sink.AllProfiles()
}

// written is a directory with the files that the exporter makes of the payloads.
func written(t testing.TB, yaml string, payloads []pprofile.Profiles) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "profiles")
	factory := profilesfileexporter.NewFactory().(xexporter.Factory)
	e, err := factory.CreateProfiles(t.Context(), exportertest.NewNopSettings(factory.Type()),
		configured(t, factory, yaml+"\ndirectory: "+dir))
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

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesdedupprocessor

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// The numbers of the README's example are those of a run.
func TestReadmeExample(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	var snapshots []pprofile.Profiles
	for _, file := range profiletest.Corpus(t) {
		if strings.HasPrefix(file.Name, "go-heap-series/") {
			snapshots = append(snapshots, unmarshalPprof(t, file.Data))
		}
	}
	profiler := profiletest.CorpusOTLP(t)
	for _, example := range []struct {
		name     string
		payloads []pprofile.Profiles
		change   func(*mergeSettings)
	}{
		{"ten heap snapshots of one Go process", snapshots, func(*mergeSettings) {}},
		{"the same, `snapshots: latest`", snapshots, func(s *mergeSettings) { s.snapshots = snapshotsLatest }},
		{fmt.Sprintf("%d payloads of the eBPF profiler", len(profiler)), profiler, func(*mergeSettings) {}},
		{"the same, `timestamps: drop`, `granularity: function`", profiler, func(s *mergeSettings) {
			s.dropTimestamps, s.coarsening.Granularity = true, granularities["function"]
		}},
	} {
		settings := defaultSettings()
		example.change(&settings)
		out := merged(t, settings, example.payloads...)
		profiles, samples, bytes, zipped := 0, 0, 0, 0
		for _, pd := range example.payloads {
			profiles += pd.ProfileCount()
			samples += pd.SampleCount()
			data := marshal(t, pd)
			bytes += len(data)
			zipped += gzipSize(t, data)
		}
		data := marshal(t, out)
		row := fmt.Sprintf("| %s | %d → %d | %d → %d | %d → %d | %d → %d |", example.name, profiles, out.ProfileCount(),
			samples, out.SampleCount(), bytes, len(data), zipped, gzipSize(t, data))
		if !strings.Contains(string(readme), row) {
			t.Errorf("the README lacks: %s", row)
		}
	}
}

// The configuration that the README shows is the defaults, all of them.
func TestReadmeShowsTheDefaults(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(readme), "```yaml\n")
	require.True(t, found)
	text, _, _ := strings.Cut(after, "```")
	retrieved, err := confmap.NewRetrievedFromYAML([]byte(text))
	require.NoError(t, err)
	conf, err := retrieved.AsConf()
	require.NoError(t, err)
	shown, err := conf.Sub("processors::profiles_dedup")
	require.NoError(t, err)

	cfg := createDefaultConfig().(*Config)
	require.NoError(t, shown.Unmarshal(cfg))
	require.Equal(t, createDefaultConfig(), cfg)
	all := confmap.New()
	require.NoError(t, all.Marshal(createDefaultConfig()))
	for key := range all.ToStringMap() {
		require.Truef(t, shown.IsSet(key), "the README does not show %s", key)
	}
}

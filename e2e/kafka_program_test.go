// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"debug/buildinfo"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// kafkaProgram returns the path of the distribution with Kafka.
func kafkaProgram(t *testing.T) string {
	t.Helper()
	return builtProgram(t, "OTELCOL_PROFILES_KAFKA_BIN", "otelcol-profiles-kafka", "make build-kafka")
}

const contrib = "github.com/open-telemetry/opentelemetry-collector-contrib/"

// kafkaParts are the modules at v0.155.0: the two Kafka components and their dependencies.
var kafkaParts = []string{
	contrib + "exporter/kafkaexporter",
	contrib + "receiver/kafkareceiver",
	contrib + "internal/coreinternal",
	contrib + "internal/kafka",
	contrib + "pkg/batchpersignal",
	contrib + "pkg/core/xidutils",
	contrib + "pkg/kafka/configkafka",
	contrib + "pkg/kafka/topic",
	contrib + "pkg/pdatautil",
	contrib + "pkg/translator/azure",
	contrib + "pkg/translator/jaeger",
	contrib + "pkg/translator/zipkin",
}

// TestKafkaModules checks that all other modules of the Collector have the versions of the default
// distribution.
func TestKafkaModules(t *testing.T) {
	requireCollectorSet(t, kafkaProgram(t), "v0.155.0", kafkaParts...)
}

// requireCollectorSet checks that all modules of the Collector are v0.161.0 or v1.67.0, apart
// from the given ones, which have an older version.
func requireCollectorSet(t *testing.T, path, older string, modules ...string) {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	require.NoError(t, err)
	seen := 0
	for _, module := range info.Deps {
		if !strings.HasPrefix(module.Path, "go.opentelemetry.io/collector") && !strings.HasPrefix(module.Path, contrib) {
			continue
		}
		seen++
		want := []string{"v0.161.0", "v1.67.0"}
		if slices.Contains(modules, module.Path) {
			want = []string{older}
		}
		assert.True(t, slices.Contains(want, module.Version), "%s is at %s, want one of %v", module.Path, module.Version, want)
	}
	assert.GreaterOrEqual(t, seen, 20, "modules of the Collector in %s", path)
}

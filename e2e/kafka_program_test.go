// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"debug/buildinfo"
	"slices"
	"strings"
	"testing"
)

// kafkaProgram returns the path of the distribution with Kafka.
func kafkaProgram(t *testing.T) string {
	t.Helper()
	return builtProgram(t, "OTELCOL_PROFILES_KAFKA_BIN", "otelcol-profiles-kafka", "make build-kafka")
}

const contrib = "github.com/open-telemetry/opentelemetry-collector-contrib/"

// kafkaParts are the modules of the distribution with Kafka that are at v0.155.0: the
// two components, and what they alone use.
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

// TestKafkaModules: every other module of the collector is of the set that the default
// distribution is of.
func TestKafkaModules(t *testing.T) { requireCollectorSet(t, kafkaProgram(t), kafkaParts) }

// requireCollectorSet holds a program's modules of the collector to v0.161.0 and v1.67.0,
// but those that are to be v0.155.0.
func requireCollectorSet(t *testing.T, path string, older []string) {
	t.Helper()
	info, err := buildinfo.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, module := range info.Deps {
		if !strings.HasPrefix(module.Path, "go.opentelemetry.io/collector") && !strings.HasPrefix(module.Path, contrib) {
			continue
		}
		seen++
		want := []string{"v0.161.0", "v1.67.0"}
		if slices.Contains(older, module.Path) {
			want = []string{"v0.155.0"}
		}
		if !slices.Contains(want, module.Version) {
			t.Errorf("%s is at %s, want one of %v", module.Path, module.Version, want)
		}
	}
	if seen < 20 {
		t.Errorf("there are only %d modules of the collector in %s", seen, path)
	}
}

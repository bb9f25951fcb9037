// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// kafkaProgram returns the path of the distribution with Kafka.
func kafkaProgram(t *testing.T) string {
	t.Helper()
	return builtProgram(t, "OTELCOL_PROFILES_KAFKA_BIN", "otelcol-profiles-kafka", "make build-kafka")
}

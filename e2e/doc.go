// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built program from outside: it pushes real profiles, stops the program,
// and compares its files with the profiles as google/pprof reads them. It reads the files by
// independent means: protobuf-go.
//
// It runs the configurations of config: sidecars and agents with a gateway, and a Kafka tier with
// a broker in the test's process.
//
// The tests run bin/otelcol-profiles, bin/otelcol-profiles-kafka and bin/otelprof, or the programs
// in OTELCOL_PROFILES_BIN, OTELCOL_PROFILES_KAFKA_BIN, OTELCOL_PROFILES_NODE_BIN and OTELPROF_BIN. If there is none they are
// skipped, or fail if CI or E2E_REQUIRE is set.
package e2e

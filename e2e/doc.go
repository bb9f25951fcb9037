// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built program from outside: it starts it, pushes real
// profiles, stops it, and holds the files it left against what google/pprof
// reads of the profiles. It reads the files by other means than the program
// writes them: protobuf-go, and the zstd and gzip of others.
//
// The configurations of config/ run together as users run them: sidecars and agents
// with a gateway, and a tier over Kafka with a broker in the test's own process.
//
// The tests run bin/otelcol-profiles and bin/otelcol-profiles-kafka of the repository,
// or the programs that OTELCOL_PROFILES_BIN and OTELCOL_PROFILES_KAFKA_BIN name. Where
// there is none they skip, but fail where CI or E2E_REQUIRE is set.
package e2e

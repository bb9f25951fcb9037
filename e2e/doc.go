// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the built program from outside: it starts it, pushes real
// profiles, stops it, and holds the files it left against what google/pprof
// reads of the profiles. It reads the files by other means than the program
// writes them: protobuf-go, and the zstd and gzip of others.
//
// The tests run bin/otelcol-profiles of the repository, or the program that
// OTELCOL_PROFILES_BIN names. Where there is none they skip, but fail where CI
// or E2E_REQUIRE is set.
package e2e

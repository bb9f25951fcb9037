// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiletest has the inputs of this module's tests and the helpers that they share.
//
//   - [GeneratePprof] and [GenerateProfiles] make random profiles from a seed, [Workloads] profiles like real
//     ones; [Corpus] and [CorpusOTLP] find real profiles, where they are at hand.
//   - [RequireConforms] checks OTLP profiles with internal/profiles/conformance. The package expand compares profiles.
//   - [Rounds], [Seed] and [Account] are for tests that inject faults.
//
// It shares no code with the packages that it checks, except internal/profiles/wire, and is imported by tests only.
package profiletest

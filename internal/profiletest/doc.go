// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package profiletest is the independent checker of this module's tests: it reads profiles
// by other means than the code under test and says whether they are right.
//
//   - [RequireConforms] checks OTLP profiles with internal/conformance.
//   - [Expand] and [ExpandPprof] write OTLP and pprof profiles out, without
//     dictionaries or ids, into one form; [Diff] compares two of them.
//   - [GeneratePprof] and [GenerateProfiles] make random profiles from a seed.
//   - [Corpus] and [CorpusOTLP] find real profiles, where they are at hand.
//
// It shares no code with internal/dictionary or the translator, prefers slow
// and obvious over fast, and is imported by tests only. OTLP is read through
// protobuf-go from the marshalled form, so that what counts is what is written
// and not what pdata shows of it.
package profiletest

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pproftranslator turns pprof profiles into OTLP profiles and back.
//
// The way in reads the wire format of pprof itself, one kind of entry after the other, without
// building a tree of objects. It accepts all that google/pprof's ParseUncompressed
// and CheckValid accept, within [Limits], and refuses the rest with an error
// that names the field and the index. Nothing that a sample reaches is lost on
// the way there and back, except for bytes that are not UTF-8 and for data that the
// other format has no place for (see [Marshaler]).
package pproftranslator

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package jfrtranslator turns recordings of the JVM (JDK Flight Recorder, JFR) into OTLP
// profiles: those of the JDK itself, of async-profiler and agents built on it, and of
// Datadog's library.
//
// A recording is a sequence of chunks. A chunk has events, metadata that describes the
// fields of each type of event and constant, and constant pools that events refer to. IDs are
// valid in their chunk only. The package reads fields as the metadata of their chunk
// orders them, never by a fixed layout. Events that are not samples are counted.
//
// A constant stays where it is in the chunk until a sample reaches it, and is then
// translated once. Of each chunk, the package keeps a few bytes for each constant.
package jfrtranslator

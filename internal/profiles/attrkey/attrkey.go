// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package attrkey has the keys of the attributes that are ours: no registry has them. They carry the prefix of the project, so that
// they never mean something else to another program. Keys that OpenTelemetry's registry has are those of package semconv. Clients'
// own labels, such as Pyroscope's pyroscope_spy, keep the name that the client gave them.
//
// Package timing has those of samples that say what a thread or goroutine does. docs/glossary.md lists all.
package attrkey

// Attributes of scopes.
const (
	// ProfileType is the profile type, such as heap. The scope attribute has the type of all its Profiles.
	ProfileType = "otelcol_profiles.type"
	// SampleTypes lists all sample types of a pprof, if its Profiles do not tell them. See package sampletypes.
	SampleTypes = "otelcol_profiles.sample_types"
)

// Attributes of Profiles.
const (
	// Temporality says what the values are: sampletypes.Delta, Cumulative or Instant.
	Temporality = "otelcol_profiles.temporality"
	// Processes is the table of processes of a merged Profile. See package processes.
	Processes = "otelcol_profiles.processes"
	// TimestampsDropped is true if samples had timestamps, which an option of the processor or compaction has dropped.
	TimestampsDropped = "otelcol_profiles.timestamps_dropped"
	// DisplayName and DisplayUnit are how a client wants a sample type to be shown. Those of the Profile remain what they are.
	DisplayName = "otelcol_profiles.display_name"
	DisplayUnit = "otelcol_profiles.display_unit"
)

// ThreadState is an attribute of samples: the state of the thread as the source of the profile names it.
const ThreadState = "otelcol_profiles.thread.state"

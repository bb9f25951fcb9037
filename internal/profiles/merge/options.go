// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package merge

import (
	"encoding/binary"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// Snapshots is how snapshots merge: Profiles that hold the state at one time, such as
// the heap in use, and not events of an interval.
type Snapshots string

const (
	// SnapshotsKeep keeps those of each payload in a ScopeProfiles of their own.
	SnapshotsKeep Snapshots = "keep"
	// SnapshotsLatest keeps the last one of each resource in each slot.
	SnapshotsLatest Snapshots = "latest"
	// SnapshotsSum adds them like intervals.
	SnapshotsSum Snapshots = "sum"
)

// Options decide which Profiles merge, and how. They must not change while they are in
// use. The zero value changes only what merging must, and adds snapshots.
type Options struct {
	// SlotLength divides the time into slots: only Profiles of one slot merge. 0 means that there
	// are no slots.
	SlotLength time.Duration
	// SlotByStart makes a slot the span of the clock in which a Profile starts, by which readers select Profiles, and
	// divides the Profiles of intervals that are in several slots, as division says.
	SlotByStart bool
	// Snapshots is how snapshots merge; "" is SnapshotsSum.
	Snapshots Snapshots
	// SnapshotSampleTypes are the sample types of Profiles that are snapshots unless
	// their attribute otelcol_profiles.temporality says otherwise.
	SnapshotSampleTypes []string
	// DropTimestamps drops timestamps, and replaces those without values by their number. Profiles that had some say so.
	DropTimestamps bool
	// DropZeroSamples drops samples without timestamps whose value is 0.
	DropZeroSamples bool
	// Granularity is how finely locations are distinguished.
	Granularity dictionary.Granularity
	// Keys of the attributes to drop. Samples and resources that become equal merge. Resources of Profiles whose timestamps are
	// kept keep theirs, as thread 1 of two processes is not one thread. So do, with SnapshotsKeep, resources of snapshots:
	// readers add up the last snapshot of each.
	DropSampleAttributes, DropResourceAttributes []string
	// SplitBy are keys of resource attributes that are not dropped. Each combination of
	// their values is a partition.
	SplitBy []string
	// MaxTypes is how many sample types with their profile types a service may have in a window. 0 is no limit.
	MaxTypes int
	// ProfileKeys makes Check compute the Key of each Profile.
	ProfileKeys bool

	// keepAddresses keeps locations at different addresses apart, also if they are the same code of several processes.
	keepAddresses bool
}

// partition returns the key of the partition of a resource with the attributes m: for
// each attribute of SplitBy whether m has it, and its value.
func (o *Options) partition(m pcommon.Map) string {
	var key []byte
	for _, name := range o.SplitBy {
		v, ok := m.Get(name)
		if !ok {
			key = append(key, 0)
			continue
		}
		text := dictionary.ValidUTF8(v.AsString())
		key = binary.AppendUvarint(append(key, 1), uint64(len(text)))
		key = append(key, text...)
	}
	return string(key)
}

// Values returns the attributes of SplitBy that the resources of a partition have.
func (o *Options) Values(partition string) map[string]string {
	values := map[string]string{}
	key := []byte(partition)
	for _, name := range o.SplitBy {
		present := key[0] == 1
		key = key[1:]
		if present {
			size, n := binary.Uvarint(key)
			values[name] = string(key[n:][:size])
			key = key[n:][size:]
		}
	}
	return values
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package lake writes what SQL engines read: two tables of Apache Parquet files, beside the segments of a store.
//
//	parquet/service.name=checkout/date=2026-11-28/14_<directory>.parquet             the samples of an hour
//	parquet_processes/service.name=checkout/date=2026-11-28/14_<directory>.parquet   its processes and intervals
//	parquet/service.name=checkout/date=2026-11-28/late_<directory>.parquet           what came too late for its hour
//
// The directories are those of the group of the partition, and its day in UTC, as Hive names partitions. A file has its name before the
// segment of its partition has one, and a name that is derived from that of the segment alone: when the compaction of an hour is repeated, the
// file is replaced. So each sample is in one file, and a file whose segment exists never changes. A name that starts with a dot is of a file that
// is being written; engines skip it.
//
// # Tables
//
// A Sample is a row of the first table. A Process is one of the second: the part that one process has of one Profile, also if its value is 0.
// Rates come from the second table. The columns are the fields of the types. Their names are our own, and do not follow those of attributes.
// The metadata of a file has the table as [TableKey] and the version of its columns as [VersionKey]. New columns may be added to a version; a
// column is neither removed nor given another meaning without a new one.
//
// Text is valid UTF-8. Times beyond the year 2262 become the last that an int64 holds in nanoseconds.
package lake

// Keys of the metadata of a file, and the Version that it states.
const (
	TableKey   = "otelcol-profiles.table" // the name of the table's directory: SamplesDir or ProcessesDir
	VersionKey = "otelcol-profiles.version"
	Version    = "1"
)

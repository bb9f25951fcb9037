// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesfilereceiver is a Collector receiver that sends what files of profiles hold: those of the profiles_file
// exporter, and of other programs.
//
// A filewatch.Watcher finds the files, in the exporter's directory by internal/store, and queues them, the oldest first. One goroutine reads
// them, record by record: those of other programs with internal/archive. A record that is not OTLP is translated by internal/ingest, as
// the pprof receiver does, when it is read: from then on, it is one of OTLP. Each record has a goroutine that passes it to
// the next consumer. When all records of a file were sent, the file is deleted or moved, if so configured. At most concurrency records are in progress at a time, and their memory, decoded
// and encoded once more, is at most three quarters of max_in_flight. The rest is for reading.
//
// It promises:
//
//   - A record is read again until the next consumer has accepted it or rejected it permanently.
//     Accepted records are stored as the progress of the file, so that a crash repeats only the
//     records in progress, and those of files without storage. After a partial error only the rest is
//     sent again. Order is not promised: one slow record does not hold up the others.
//   - Nothing is removed before each record of the file was accepted or written to the rejected
//     directory and synced. If a rejected record cannot be written there, its file is read again later, with
//     the whole record, and it holds up no other. A file with damage goes to that directory as a whole.
//     A file that another program has replaced or added to meanwhile is read again, not removed; of what
//     was added, the first reading sees nothing.
//   - A file that is being written is not read: those of the exporter have another name until they
//     are closed, others must not have changed for ten seconds, and recordings of JVMs with an unfinished chunk for a minute.
//   - A directory is not sent while it is compacted: compacted files have records that were sent already.
//   - While a file is in progress, its shared lock (flock) keeps it from the retention of the exporter.
//     Files that retention removes earlier are counted and logged.
//   - Shutdown cancels calls of the next consumer. Their records are sent after the next start.
package profilesfilereceiver

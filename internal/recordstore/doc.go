// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package recordstore writes records into files of a directory and of its groups, recovers the files that a
// process left incomplete, and removes old ones. Package segment has the format of the files.
//
// The file being written has an advisory lock. A closed file was synced before it got its final name. It is
// never empty and never changes again. Only Retention removes it, with one exception: a bare file whose
// directory cannot be synced is removed again, because its record is not acknowledged. A rename never replaces
// a file. Links are not followed.
//
// A closed file has an index beside it, with the suffix .index, if all of its records came with
// Record.Summaries; the package fileindex has its format. An index is a cache: it is written after the
// file got its name, without sync and without retry, and recovery creates none, so it can be missing or
// incomplete. Retention removes it with its file.
//
// A write is a transaction: if Append fails, the Writer removes the record, at once or by a
// later retry. Only if the process dies before that, the record may survive. A Writer needs
// no restart after a fault: files that it cannot close are retried, and the next Append
// detects and recreates a file or directory that another process removed or changed.
//
// OpenWriter closes the incomplete (.partial) files of processes that no longer run: each
// is truncated after its last complete record, or removed if it has none. A bare one is
// always removed. Several Writers may share a directory on systems with flock. File
// systems that do not support flock do not lock: there, only one Writer may use a directory.
//
// Records with a group go to the directories of the group's names. Groups beyond Options.MaxGroups share the
// directory segment.Other.
package recordstore

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package filewatch finds non-empty files by globs, waits until they are complete, and
// remembers which of them have been read.
//
// A [Watcher] polls. It passes each new version of a file to a [Handler], one after the
// other and oldest first, when the file has not changed for one poll interval. It remembers
// the version unless the Handler returns a [*RetryError] or [ErrChanged]. A Handler that returns
// [ErrPending] goes on, also with several files at a time, and calls [Watcher.Done] later; it
// can store its progress. A version is handled successfully at least once, also if the process is killed, and exactly once if the
// process shuts down cleanly and the configured storage works.
//
// A file that is retried has a backoff of its own and comes after files that were never
// tried, so that it does not hold up others. Once the pipeline has rejected several files in
// a row, the others wait for the next poll. A poll comes early if a retry is due.
//
// A file that was renamed within the globs is the same file, on systems with inodes: it is
// not handled again.
//
// Only regular files are read, and opening one never blocks. Links to directories, and
// links that lead out of the fixed part of a glob, are not followed.
package filewatch

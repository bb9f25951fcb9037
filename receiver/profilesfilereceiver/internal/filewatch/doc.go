// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package filewatch finds non-empty files by globs, waits until they are complete, and
// remembers which of them have been read.
//
// A [Watcher] polls. It queues each new version of a file, oldest first, when the file has not changed for one poll
// interval, and passes the files to a [Handler], one after the other. The Handler can go on with several files at a time,
// store its progress in each, and calls [Watcher.Done] at the end. The version is remembered unless the result is a
// [*RetryError], [ErrChanged] or [ErrRemoved]. A version is handled successfully at least once, also if the process is
// killed, and exactly once if the process shuts down cleanly and the configured storage works.
//
// A file that is retried has a backoff of its own and comes after files that were never
// tried, so that it does not hold up others. While the pipeline rejects ten files in
// a row, the others wait, too.
//
// A file that was renamed within the globs is the same file, on systems with inodes: it is
// not handled again.
//
// Only regular files are read, and opening one never blocks. Links to directories, and
// links that lead out of the fixed part of a glob, are not followed.
package filewatch

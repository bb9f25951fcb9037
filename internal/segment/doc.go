// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package segment keeps records in files: it frames and compresses them, takes
// back what it could not write whole, rotates the files, repairs after a crash
// what was being written, and reads the records back one by one. A record is a
// slice of bytes; beyond its outermost shape this package does not look into it.
//
// # Files
//
// A file is a sequence of records and nothing else: no header, no index, no
// trailer. A record is never empty. How records lie in a file is its Framing:
//
//   - length_prefixed: each record after its length, 4 bytes, big-endian.
//   - lines: each record, which holds no line feed, before one line feed.
//   - none: the file is one record.
//
// With a Compression other than none, each record is compressed by itself,
// together with its framing bytes: one gzip member (RFC 1952) or one zstd frame
// (RFC 8878) a record, with its checksum. So the file as a whole is an ordinary
// gzip or zstd file whose content is the plain stream above, and damage to one
// record does not reach the next.
//
// # Names
//
//	profiles-<time>-<sequence>.<content>[.gz|.zst]
//	profiles-20261121T102330.123Z-000001.otlp.pb.zst
//
// The time, in UTC, is when the file was begun, and never goes back within one
// Writer even if the clock does. The sequence has six digits or more, grows with
// each file of a Writer, and skips names that are taken. The content says what a
// record is, and by that its framing: otlp.pb (an OTLP ProfilesData message,
// length_prefixed or none), otlp.jsonl (OTLP/JSON, lines) or pprof.pb (a pprof Profile
// message, none).
//
// While it is written, a file has the further ending ".partial" (".bare.partial"
// with framing none), and an advisory lock (flock) on it, which the system drops
// with the process. When it is finished it is synced, renamed, and never touched
// again, but for Retention. A rename never replaces a file that exists. A file
// without records is never finished, it is removed.
//
// # Promises
//
// Append is a transaction. It returns nil when the record is whole in the file,
// and synced as far as Sync says. When it returns an error, the record is not in
// the file: what was written of it is cut off, at the latest before the next
// record is written; and where that fails too, the file is left, to be cut and
// finished as soon as the fault is gone, and the next record begins a new one.
// A Writer needs no restart after a fault.
//
// A file that was removed, moved, cut or replaced by someone else is noticed by
// the next Append and made anew, and so is the directory.
//
// OpenWriter repairs the directory: each file with a name of the form above that
// ends in ".partial" and that no live process holds the lock of is cut behind its
// last whole record and finished, or removed if it holds none. One that ends in
// ".bare.partial" was never acknowledged and is removed. Nothing else is touched.
// Any number of Writers, in one process or several, may share a directory. (On
// systems without flock, Windows among them, only one may.)
//
// The Reader gives each whole record in order, and reports what is not whole with
// its place in the file. It finds the next record after damage, so that a damaged
// byte costs one record at most: by the magic number of the next member or frame, by
// the next line feed, or, where plain length_prefixed files offer no mark, by the next
// place where a length is followed by a message of that length that is what protobuf
// libraries write for ProfilesData (resources and one dictionary, whose first string
// is empty), and that by the end of the file or the begin of another such record,
// which may be torn. So of a record between two damaged ones nothing tells that it is
// one, and it is passed over. What is read of a plain file is in proportion to its
// size, whatever is in it. Plain files have no checksum: damage inside a record that
// leaves its outermost shape as it was goes unseen there, and so do strings made to
// look like two records.
//
// # Groups
//
// A Set writes into directories below one, a level for each of the values that a
// group has, and into the one itself if it has none. A directory's name is that of
// GroupName, TypedGroupName, or Unset: no two values share one, and none leads
// elsewhere. Directories are entered one by one, never through a link. Repair and
// Retention look into the directory and as many levels below it as the groups have,
// and there into directories with such names only.
//
// Retention removes finished files with names of the form above, the oldest first by
// the time and sequence in their names, over all groups together, and directories that
// it has emptied by that. It never removes a file with a partial name.
package segment

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package objectstore reads and writes profile files in buckets of Amazon S3 and of servers with its protocol.
//
// A [Reader] lists the objects below a prefix as archive.Find lists a directory. An object is read by requests of ranges, and the
// blocks that were used last stay in memory. Closed files never change, so a block is known by the key and the ETag of its object,
// and each request names that ETag: an object that was replaced or removed after it was listed counts as removed.
//
// An [Uploader] uploads the closed files of a directory, each after its index, and never replaces an object. It compares the directory
// with the bucket, and needs no other state. A file that replaces others has a manifest: see replace.go.
//
// Credentials come from the environment, the shared file or the machine. No error, log or URL has them.
package objectstore

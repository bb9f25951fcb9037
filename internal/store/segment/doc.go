// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package segment is the format of a file of records. A record is a non-empty byte slice: an OTLP ProfilesData message,
// or an OTLP/JSON object on one line.
//
// # Proto
//
// A segment is a sequence of zstd frames, so that zstd decompresses and checks it. Each record with its length before
// it (4 bytes, big-endian) is a frame with a checksum. The index follows the last record in a skippable frame, whose
// content is
//
//	body                      the Index, compressed by zstd; 0xFD, the last byte of zstd's magic, is escaped
//	length of the body        8 hexadecimal digits
//	checksum                  8: CRC-32C of all other bytes of the frame, its header included
//	end of the records        16: where the frame starts in the file
//
// so that one read of the end of a file finds the index, and nothing in it looks like a frame with a record. A segment
// that was made of others starts with such a frame, which has nothing but their names: damage to one of the two frames
// leaves the other.
//
// A segment without an index, such as one that is being written, has the same records. A flipped or missing byte costs
// at most one record or the index: each is found by its checksum.
//
// # JSON
//
// A segment is lines, without an index and without checksums. It is for people who look at it.
package segment

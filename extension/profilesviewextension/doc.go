// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesviewextension is a Collector extension that serves a web page over a directory of
// profile files: services and their profile types over time, flame graphs, differences and traces.
//
// It promises:
//
//   - It reads the directory and never writes. It opens no other file of the host: a profile may
//     name any path.
//   - A complete record is on the page two seconds after it is in a file, also if the exporter is
//     still writing that file.
//   - All requests together take at most max_memory, and the responses that clients have not read an eighth of it
//     more. A request that does not fit gets an error that says what to narrow.
//   - Names and labels of profiles are shown as text.
package profilesviewextension

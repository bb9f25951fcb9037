// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package pyroscope reads the two push protocols of Pyroscope's clients: POST /ingest, a
// form or a plain profile, and the unary Connect call push.v1.PusherService/Push, in
// protobuf or JSON.
package pyroscope

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesdedupprocessor merges the profiles that it receives within a window into one
// payload with one dictionary, by the rules of internal/profiles/merge.
//
// It promises that a rejected payload leaves the window unchanged, and that an acknowledged
// payload is sent, at the latest during shutdown, or counted as dropped.
//
// The life of a payload (merge.go):
//
//	received -> checked by merge.Check, without a lock
//	         -> merged into the open window under the mutex, without its duplicates; or rejected
//	         -> acknowledged: at once (on_receive), or with the outcome of the partitions that
//	            it or its pending duplicates are in (on_flush)
//
// The life of a window (window.go): an openWindow takes payloads. It is closed when its time ends, or early because of
// memory, slots or shutdown. Then it is a closedWindow, of which only partitions, one for each value of split_by, make
// payloads, until each of them has been sent once.
//
// The life of a partition (send.go), which one goroutine owns:
//
//	waiting -> sent, when it has one of num_consumers places, and its payload fits into memory_limit (admission.go)
//	sent    -> done: accepted; or dropped, after a permanent error
//	        -> kept as OTLP, and waiting again after its backoff (retry.go); or dropped, when its time or the processor's
//	           has ended
//
// Partitions have no order among each other, and neither have the windows of one partition: snapshots have their times, and
// duplicates are dropped when they are received.
//
// One mutex, which is not held while a payload is made or the next consumer is called, guards the open window, the counts of
// places and memory, and the keys of seen Profiles.
//
// If window is 0, each payload has a window of its own, and its caller waits until it was sent once (atonce.go).
package profilesdedupprocessor

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:generate go tool -modfile=../../internal/tools/go.mod mdatagen metadata.yaml

// Package profilesdedupprocessor merges the profiles that it receives within a window into one
// payload with one dictionary, by the rules of internal/merge.
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
// The life of a window (window.go, export.go):
//
//	open      -> closed when its time ends, or early because of memory, slots or shutdown
//	exporting -> its partitions, one for each value of split_by, are sent in order
//	sent      -> accepted; or dropped, after a permanent error; or queued for retry, as OTLP
//	retried   -> accepted; or dropped, when its time or the processor has ended
//
// One goroutine exports. One mutex, which it does not hold while it makes a payload or calls the next consumer,
// guards the open window, the retry queue and the keys of seen Profiles. memory_limit is for the open window, the one
// being exported, the payload made of it, the seen keys and the retry queue. A window is closed, and a
// partition sent for the first time, only if the retry queue has room for it.
//
// If window is 0, each payload has a window of its own, which its caller's goroutine sends (atonce.go).
package profilesdedupprocessor

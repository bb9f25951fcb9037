// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package difference turns pprof profiles whose values count from the start of a
// process into profiles of what happened between one and the next.
//
// A [Series] is given one profile after another. It returns each as the parts to
// hand on, and keeps a hash and the values of each stack with labels (see
// [Cumulative]), not the profile. Profiles stay in their wire format: what does not
// change, and fields that nobody knows, are copied as they are.
//
// Its input may be hostile: indices and ids are checked, and the number of entries
// is bounded.
package difference

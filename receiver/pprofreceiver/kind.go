// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

// Kinds of profiles, as profile.type names them. Those that the collector can take
// of itself are beside what takes them.
const (
	kindMutex = "mutex"
	kindBlock = "block"
	kindWall  = "wall"
)

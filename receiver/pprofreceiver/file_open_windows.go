// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

// openNonblock keeps opening from waiting; nothing waits here.
const openNonblock = 0

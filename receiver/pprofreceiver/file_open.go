// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !windows

package pprofreceiver

import "syscall"

// openNonblock keeps opening from waiting, as it would for a FIFO that nobody
// writes to.
const openNonblock = syscall.O_NONBLOCK

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"io/fs"
	"syscall"
)

// openNonblock keeps opening a FIFO without a writer from blocking.
const openNonblock = syscall.O_NONBLOCK

// inode returns the inode of a file and the time of its last status change.
func inode(info fs.FileInfo) (number uint64, changed int64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return stat.Ino, stat.Ctim.Nano()
}

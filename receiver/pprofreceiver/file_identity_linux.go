// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"io/fs"
	"syscall"
)

// identityOf is the inode of a file, and when it was changed, in nanoseconds since
// 1970.
func identityOf(info fs.FileInfo) (inode uint64, changed int64) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0
	}
	return stat.Ino, stat.Ctim.Nano()
}

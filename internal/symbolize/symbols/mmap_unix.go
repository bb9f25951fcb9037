// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package symbols

import (
	"os"
	"syscall"
)

// mapFile returns the content of a file that nobody else changes, without taking memory for it.
func mapFile(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ, syscall.MAP_SHARED)
}

func unmapFile(data []byte) error { return syscall.Munmap(data) }

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package regularfile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// TryLock takes the lock of the open file until it is closed. It returns false if another open
// file has it. It succeeds without locking where flock is unsupported.
func TryLock(f *os.File) (bool, error) { return tryLock(f, unix.LOCK_EX) }

// TryLockShared is TryLock with a lock that other open files may share.
func TryLockShared(f *os.File) (bool, error) { return tryLock(f, unix.LOCK_SH) }

func tryLock(f *os.File, how int) (bool, error) {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case err == nil, errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOLCK):
			return true, nil
		case errors.Is(err, unix.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, unix.EINTR):
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
	}
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/regularfile"
)

// Use is what processes do with the files of a directory, besides writing and querying them.
type Use string

const (
	// Compacts is the Use of a directory by a Compactor.
	Compacts Use = "compacts"
	// Sends is the Use of a directory whose records are sent to another process. A compacted file has other records than its inputs, of which
	// some may have been sent.
	Sends Use = "sends"
)

// Claim keeps the other Use of a directory from starting until it is closed, also in other processes. Several processes may have
// the same Use.
type Claim struct{ lock *os.File }

// InUseError says that the other Use of a directory goes on.
type InUseError struct {
	Directory string
	Wanted    Use
	Other     Use
}

func (e *InUseError) Error() string {
	return fmt.Sprintf("directory %s: a process that %s its files runs: must not be a directory whose files this process %s", e.Directory, e.Other, e.Wanted)
}

// ClaimDirectory claims a Use of a directory that exists. The error is an *InUseError if the other Use goes on. It claims nothing, but looks, if
// the directory is read-only, and succeeds on file systems without flock.
//
// Each Use has an empty file in the directory, of which its processes have a shared lock. It has its own before it looks for the other
// one, so that of two that start at once at most one succeeds.
func ClaimDirectory(directory string, use Use) (*Claim, error) {
	root, err := os.OpenRoot(directory)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	other := Sends
	if use == Sends {
		other = Compacts
	}
	claim := &Claim{}
	claim.lock, err = root.OpenFile(useFile(use), os.O_RDWR|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err == nil {
		_, err = lockSoon(claim.lock, regularfile.TryLockShared)
	}
	if errors.Is(err, syscall.EROFS) || errors.Is(err, fs.ErrPermission) {
		err = nil
	}
	free := false
	if err == nil {
		free, err = isFree(root, other)
	}
	if err == nil && !free {
		err = &InUseError{directory, use, other}
	}
	if err != nil {
		return nil, errors.Join(err, claim.Close())
	}
	return claim, nil
}

func useFile(use Use) string { return ".otelcol-profiles-" + string(use) }

// isFree reports whether no process has a Use of a directory.
func isFree(root *os.Root, use Use) (bool, error) {
	lock, err := root.OpenFile(useFile(use), os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.Close() }()
	return lockSoon(lock, regularfile.TryLock)
}

// lockSoon tries to lock a file for half a second: another process may look whether it is locked.
func lockSoon(file *os.File, try func(*os.File) (bool, error)) (locked bool, err error) {
	const tries, wait = 25, 20 * time.Millisecond
	for range tries {
		if locked, err = try(file); locked || err != nil {
			return locked, err
		}
		time.Sleep(wait)
	}
	return false, nil
}

// Close ends the Use. A nil Claim has none.
func (c *Claim) Close() error {
	if c == nil || c.lock == nil {
		return nil
	}
	err := c.lock.Close()
	c.lock = nil
	return err
}

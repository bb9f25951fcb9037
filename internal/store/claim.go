// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// Use is what a process does with the closed files of a directory.
type Use string

const (
	// Compacted files become parts of others.
	Compacted Use = "compacted"
	// Sent files are removed when their records were accepted: those of a compacted file would be sent again.
	Sent Use = "sent"
)

// claimPrefix begins the names of the directories whose shared locks are claims.
const claimPrefix = ".claim-"

// ErrClaimed means that the files of a directory are both sent and compacted.
var ErrClaimed = errors.New("its files are both sent by a receiver and compacted by an exporter: must be one of them")

// Claim says that a process compacts or sends the files of a directory, until the result is closed. The error is ErrClaimed if this
// process or another one does the other thing. Several may do the same. Without flock nothing is known about others.
func Claim(directory string, use Use) (io.Closer, error) {
	absolute, err := filepath.Abs(directory)
	if err != nil {
		return nil, err
	}
	own, err := layout.OpenDir(absolute, claimPrefix+string(use))
	if err != nil {
		return nil, err
	}
	locked, err := own.TryLock(true)
	if err == nil && !locked {
		err = ErrClaimed // the other one looks at this moment
	}
	if err == nil {
		err = checkUnclaimed(absolute, map[Use]Use{Compacted: Sent, Sent: Compacted}[use])
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("directory %s: %w", absolute, err), own.Close())
	}
	return own, nil
}

// checkUnclaimed is called with a claim, so that of two processes that claim different uses at once, one or both fail.
func checkUnclaimed(directory string, use Use) error {
	other, err := layout.OpenDir(directory, claimPrefix+string(use))
	if err != nil {
		return err
	}
	defer func() { _ = other.Close() }()
	if locked, err := other.TryLock(false); err != nil || locked {
		return err
	}
	return ErrClaimed
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Repaired tells what OpenWriter did to a file that an earlier process left.
type Repaired struct {
	// Group is the path of its directory below that of a Set.
	Group string
	// Partial is the name it had.
	Partial string
	// Name is the finished name it has now; empty if it was removed.
	Name    string
	Records int
	// Size is the number of bytes kept, Cut of those cut off behind them.
	Size, Cut int64
	// Damaged is the number of damaged places between the records that were kept.
	Damaged int
}

// repairDir finishes all leftover files in the directory. Faults in one file do not
// keep the others from being repaired: they go to Options.Trouble, and whole is
// false. The error is that of listing.
func repairDir(dir Dir, path string, options Options) (whole bool, err error) {
	list, err := dir.List()
	if err != nil {
		return false, fmt.Errorf("segment: list directory %s: %w", path, err)
	}
	whole = true
	for _, entry := range list {
		name, ok := ParseName(entry)
		if !ok || !name.Partial {
			continue
		}
		switch done, err := repairPartial(dir, name); {
		case err != nil:
			whole = false
			options.trouble(fmt.Errorf("segment: repair %s in %s: %w", entry, path, err))
		case done != nil && options.Repaired != nil:
			options.Repaired(*done)
		}
	}
	return whole, nil
}

// repairPartial finishes one leftover file. Both results are nil if it is none:
// not a file, in use, or already gone.
func repairPartial(dir Dir, name Name) (*Repaired, error) {
	if info, err := dir.Lstat(name.String()); errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode().IsRegular() {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	file, err := dir.Open(name.String())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	done, err := repairOpen(dir, name, file)
	return done, errors.Join(err, file.Close())
}

func repairOpen(dir Dir, name Name, file File) (*Repaired, error) {
	if locked, err := file.Lock(); err != nil || !locked {
		return nil, err
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	// It may have been finished, by its Writer or another repair, before the lock was free.
	if now, err := dir.Lstat(name.String()); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, info) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}

	done := &Repaired{Partial: name.String()}
	finished := name
	finished.Partial, finished.Format.Framing = false, 0
	if other, err := dir.Lstat(finished.String()); err == nil && os.SameFile(other, info) {
		// A crash between the two steps of linkAndRemove: only this name is left over.
		done.Name, done.Size = finished.String(), info.Size()
		return done, errors.Join(dir.Remove(name.String()), dir.Sync())
	}
	if name.Format.Framing != Bare {
		if err := done.scan(file, info.Size(), name.Format); err != nil {
			return nil, err
		}
	}
	done.Cut = info.Size() - done.Size
	if done.Records == 0 {
		return done, errors.Join(dir.Remove(name.String()), dir.Sync())
	}
	if done.Cut > 0 {
		if err := file.Truncate(done.Size); err != nil {
			return nil, err
		}
	}
	if err := file.Sync(); err != nil {
		return nil, err
	}
	p := &partial{dir: dir, file: file}
	p.setName(name)
	if err := p.rename(&names{used: name.Sequence}); err != nil {
		return nil, err
	}
	done.Name = p.label
	return done, dir.Sync()
}

// scan finds the end of the last whole record.
func (r *Repaired) scan(file File, size int64, format Format) error {
	reader, err := NewReader(file, size, format, ReaderOptions{})
	if err != nil {
		return err
	}
	defer reader.Close()
	damaged := 0
	for {
		_, err := reader.Next()
		var damaging *DamageError
		switch {
		case err == nil:
			r.Records++
			r.Size = reader.Offset()
			r.Damaged = damaged
		case errors.As(err, &damaging):
			damaged++
		case errors.Is(err, io.EOF):
			return nil
		default:
			return err
		}
	}
}

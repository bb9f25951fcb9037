// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"
)

// Count is what the owner of a Writer counts besides records.
type Count struct {
	Profiles int
	Samples  int
}

// partial is a file while it is written. It holds the file's lock.
type partial struct {
	dir    Dir
	file   File
	info   fs.FileInfo // tells the file from others; its size is out of date
	name   Name        // with Partial set, until it has been renamed
	label  string      // the name in writing
	opened time.Time
	reason Reason // why it is being finished

	good    int64 // bytes, up to the end of the last record that was accepted
	records int
	raw     int64 // bytes of the accepted records before framing and compression
	count   Count

	torn     bool      // there may be bytes behind good
	unsynced time.Time // when the oldest record that may not be on the disk was written
	unlisted bool      // the directory has not been synced since the file got its name
	renamed  bool
}

// createPartial makes a new file under the next name that is not taken. A file
// that it returns with an error is to be discarded.
func createPartial(dir Dir, names *names, now time.Time) (*partial, error) {
	for range 10_000 {
		name := names.next(now)
		if _, err := dir.Lstat(name.String()); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		name.Partial = true
		file, err := dir.Create(name.String())
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		p := &partial{dir: dir, file: file, opened: now, unlisted: true}
		p.setName(name)
		// Without its lock the file could be taken for a leftover, and removed, by
		// a repair that goes on in the same directory.
		locked, err := file.Lock()
		if err == nil && locked {
			err = p.checkThere()
		}
		if err == nil && !locked || errors.Is(err, ErrGone) {
			_ = file.Close() // the repair has it now
			continue
		}
		if err != nil {
			return p, err
		}
		return p, nil
	}
	return nil, fmt.Errorf("no name is free, the last one tried is %s", names.next(now))
}

func (p *partial) usage(now time.Time) usage {
	return usage{size: p.good, records: p.records, age: now.Sub(p.opened)}
}

// checkThere returns ErrGone if the file is not what its name leads to, or not as
// long as we made it.
func (p *partial) checkThere() error {
	if p.info == nil {
		info, err := p.file.Stat()
		if err != nil {
			return err
		}
		p.info = info
	}
	named, err := p.dir.Lstat(p.label)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrGone
	}
	if err != nil {
		return err
	}
	if !p.is(named) {
		return ErrGone
	}
	return nil
}

// found says whether the file is in its directory, and the directory where it was.
// A false may also come of a fault.
func (p *partial) found() bool {
	named, err := p.dir.Find(p.label)
	return err == nil && p.is(named)
}

func (p *partial) is(named fs.FileInfo) bool {
	return os.SameFile(p.info, named) && (named.Size() == p.good || p.torn && named.Size() > p.good)
}

func (p *partial) setName(name Name) { p.name, p.label = name, name.String() }

// write puts a record behind the last one. Until accept is called, cut takes it back.
func (p *partial) write(record encoded, now time.Time) error {
	p.torn = true
	if p.unsynced.IsZero() {
		p.unsynced = now
	}
	at := p.good
	for _, chunk := range record.chunks {
		if len(chunk) == 0 {
			continue
		}
		n, err := p.file.WriteAt(chunk, at)
		if err == nil && n != len(chunk) {
			err = io.ErrShortWrite
		}
		if err != nil {
			return err
		}
		at += int64(n)
	}
	return nil
}

// accept makes what write has written part of the file.
func (p *partial) accept(record encoded, raw int, count Count) {
	p.good += record.size()
	p.records++
	p.raw += int64(raw)
	p.count.Profiles += count.Profiles
	p.count.Samples += count.Samples
	p.torn = false
}

// cut takes back what is behind the last accepted record.
func (p *partial) cut() error {
	if !p.torn {
		return nil
	}
	if err := p.file.Truncate(p.good); err != nil {
		return err
	}
	p.torn = false
	return nil
}

// sync puts the file and its name on the disk.
func (p *partial) sync() error {
	if err := p.syncContent(); err != nil {
		return err
	}
	return p.syncName()
}

func (p *partial) syncContent() error {
	if p.unsynced.IsZero() {
		return nil
	}
	if err := p.file.Sync(); err != nil {
		return err
	}
	p.unsynced = time.Time{}
	return nil
}

func (p *partial) syncName() error {
	if !p.unlisted {
		return nil
	}
	if err := p.dir.Sync(); err != nil {
		return err
	}
	p.unlisted = false
	return nil
}

// finish cuts, syncs, renames and closes the file, or removes it if it has no
// records. After an error it can be called again and goes on where it was; but
// ErrGone is final.
func (p *partial) finish(names *names) error {
	if !p.renamed {
		if err := p.checkThere(); err != nil {
			return err
		}
		if p.records == 0 {
			return p.remove()
		}
		if err := p.cut(); err != nil {
			return err
		}
		// Content before name: a file with a finished name is never empty, even if
		// power is lost.
		if err := p.syncContent(); err != nil {
			return err
		}
		if err := p.rename(names); err != nil {
			return err
		}
	}
	if err := p.syncName(); err != nil {
		return err
	}
	_ = p.file.Close() // everything is on the disk
	return nil
}

// rename gives the file its finished name, or the next one that is free.
func (p *partial) rename(names *names) error {
	finished := p.name
	finished.Partial = false
	finished.Format.Framing = 0
	for {
		err := p.dir.Rename(p.label, finished.String())
		if err == nil {
			p.setName(finished)
			p.renamed, p.unlisted = true, true
			return nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
		finished.Sequence = names.next(p.opened).Sequence
	}
}

// discard makes finish remove the file, whatever is in it.
func (p *partial) discard() {
	p.records, p.good, p.torn, p.renamed = 0, 0, true, false
}

func (p *partial) remove() error {
	if err := p.dir.Remove(p.label); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = p.file.Close() // there is nothing in it
	return nil
}

func (p *partial) finished() Finished {
	return Finished{
		Name: p.label, Reason: p.reason, Records: p.records, Count: p.count,
		Size: p.good, Raw: p.raw,
	}
}

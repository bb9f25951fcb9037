// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// version is a content of a file, as far as can be told without reading it.
type version struct {
	Size    int64 `json:"size"`
	ModTime int64 `json:"mtime"` // nanoseconds since 1970

	// Of systems that have them, else 0.
	Inode   uint64 `json:"ino,omitempty"`
	Changed int64  `json:"ctime,omitempty"` // nanoseconds since 1970
}

// sameContent tells whether two versions are of one content. A file that was put in
// the place of another has another inode and another time of change. One of them
// alone says little: inodes of some file systems are new with each mount, a link or other
// permissions are a change, and ext4 gives a file the inode of one that was just removed.
func (v version) sameContent(other version) bool {
	if v.Size != other.Size || v.ModTime != other.ModTime {
		return false
	}
	return v.Changed == 0 || other.Changed == 0 || v.Changed == other.Changed || v.Inode == other.Inode
}

// checkpoint knows which version of each file was read. It is stored in parts, by
// the hash of the path, so that one more file costs one small write. It is not safe
// for concurrent use.
type checkpoint struct {
	client storage.Client // nil keeps it in memory
	parts  [checkpointParts]checkpointPart

	// forgetAfter is how long a file is gone before it is forgotten: a file system
	// that is away for a while does not bring everything again.
	forgetAfter time.Duration
	gone        map[string]time.Time // since when
}

const (
	checkpointParts = 256
	checkpointKey   = "files."
	defaultForget   = time.Hour
)

type checkpointPart struct {
	read    map[string]version // by path
	changed bool
}

func newCheckpoint(client storage.Client) *checkpoint {
	c := &checkpoint{client: client, forgetAfter: defaultForget, gone: map[string]time.Time{}}
	for i := range c.parts {
		c.parts[i].read = map[string]version{}
	}
	return c
}

// load reads what is stored. A part that cannot be read is empty, and the error
// says so; the others are there.
func (c *checkpoint) load(ctx context.Context) error {
	if c.client == nil {
		return nil
	}
	operations := make([]*storage.Operation, checkpointParts)
	for i := range operations {
		operations[i] = storage.GetOperation(partKey(i))
	}
	if err := c.client.Batch(ctx, operations...); err != nil {
		return err
	}
	var errs []error
	for i, operation := range operations {
		if len(operation.Value) == 0 {
			continue
		}
		if err := c.parts[i].unmarshal(operation.Value); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", partKey(i), err))
		}
	}
	return errors.Join(errs...)
}

func partKey(i int) string { return checkpointKey + strconv.Itoa(i) }

// Paths need not be UTF-8, which JSON wants: they are stored as Go strings are
// written.

func (p *checkpointPart) marshal() ([]byte, error) {
	quoted := make(map[string]version, len(p.read))
	for path, v := range p.read {
		quoted[strconv.QuoteToASCII(path)] = v
	}
	return json.Marshal(quoted)
}

func (p *checkpointPart) unmarshal(data []byte) error {
	var quoted map[string]version
	if err := json.Unmarshal(data, &quoted); err != nil {
		return err
	}
	for text, v := range quoted {
		path, err := strconv.Unquote(text)
		if err != nil {
			return fmt.Errorf("path %s: %w", text, err)
		}
		p.read[path] = v
	}
	return nil
}

func (c *checkpoint) part(path string) *checkpointPart {
	hash := fnv.New32a()
	hash.Write([]byte(path))
	return &c.parts[hash.Sum32()%checkpointParts]
}

// has tells whether this version of the file was read.
func (c *checkpoint) has(path string, v version) bool {
	known, found := c.part(path).read[path]
	return found && known.sameContent(v)
}

// put notes that a version was read. On an error it is known, and stored with the
// next flush that works.
func (c *checkpoint) put(ctx context.Context, path string, v version) error {
	part := c.part(path)
	part.read[path] = v
	part.changed = true
	return c.flush(ctx)
}

// flush stores what has changed.
func (c *checkpoint) flush(ctx context.Context) error {
	for i := range c.parts {
		part := &c.parts[i]
		if !part.changed {
			continue
		}
		if c.client != nil {
			data, err := part.marshal()
			if err != nil {
				return err
			}
			if err := c.client.Set(ctx, partKey(i), data); err != nil {
				return err
			}
		}
		part.changed = false
	}
	return nil
}

// forget drops the files that have been gone for long. there holds the paths that
// are not.
func (c *checkpoint) forget(ctx context.Context, there map[string]bool, now time.Time) error {
	for i := range c.parts {
		for path := range c.parts[i].read {
			if there[path] {
				delete(c.gone, path)
				continue
			}
			since, known := c.gone[path]
			if !known {
				c.gone[path] = now
				continue
			}
			if now.Sub(since) >= c.forgetAfter {
				delete(c.parts[i].read, path)
				delete(c.gone, path)
				c.parts[i].changed = true
			}
		}
	}
	return c.flush(ctx)
}

// len is how many files are known.
func (c *checkpoint) len() (n int) {
	for i := range c.parts {
		n += len(c.parts[i].read)
	}
	return n
}

func (c *checkpoint) close(ctx context.Context) error {
	if c.client == nil {
		return nil
	}
	return errors.Join(c.flush(ctx), c.client.Close(ctx))
}

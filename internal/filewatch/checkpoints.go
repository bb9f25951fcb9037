// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filewatch

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"strconv"
	"time"

	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// version identifies the content of a file without reading it.
type version struct {
	Size    int64
	ModTime int64 // nanoseconds since the epoch

	// 0 on systems that do not have them.
	Inode   uint64
	Changed int64 // nanoseconds since the epoch
}

func versionOf(info fs.FileInfo) version {
	v := version{Size: info.Size(), ModTime: info.ModTime().UnixNano()}
	v.Inode, v.Changed = inode(info)
	return v
}

// sameContent reports whether two versions have the same content. A file that replaces
// another has another inode and another time of change. One of them alone proves
// nothing: some file systems renumber inodes with each mount, ext4 reuses the inode of a
// file that was just removed, and a link or new permissions are a change.
func (v version) sameContent(other version) bool {
	if v.Size != other.Size || v.ModTime != other.ModTime {
		return false
	}
	return v.Changed == 0 || other.Changed == 0 || v.Changed == other.Changed || v.Inode == other.Inode
}

// checkpoints remember which version of each file was read. They are stored in parts,
// by the hash of the path, so that one more file costs one small write.
type checkpoints struct {
	client storage.Client // nil keeps them in memory only
	parts  [checkpointParts]checkpointPart
	gone   map[string]time.Time // files that are not found any more: since when
}

const (
	checkpointParts = 256

	// forgetAfter is how long a file is gone before its checkpoint is dropped. A file
	// system that is away for a while does not make all its files new.
	forgetAfter = time.Hour
)

type checkpointPart struct {
	read    map[string]version // by path, which need not be UTF-8
	changed bool
}

func newCheckpoints(client storage.Client) *checkpoints {
	c := &checkpoints{client: client, gone: map[string]time.Time{}}
	for i := range c.parts {
		c.parts[i].read = map[string]version{}
	}
	return c
}

func partKey(i int) string { return "files." + strconv.Itoa(i) }

// load reads what is stored. A part that cannot be read is empty, and the error says so.
func (c *checkpoints) load(ctx context.Context) error {
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
		read := map[string]version{}
		if err := gob.NewDecoder(bytes.NewReader(operation.Value)).Decode(&read); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", partKey(i), err))
			continue
		}
		c.parts[i].read = read
	}
	return errors.Join(errs...)
}

func (c *checkpoints) part(path string) *checkpointPart {
	hash := fnv.New32a()
	hash.Write([]byte(path))
	return &c.parts[hash.Sum32()%checkpointParts]
}

// has reports whether this version of the file was read.
func (c *checkpoints) has(path string, v version) bool {
	known, found := c.part(path).read[path]
	return found && known.sameContent(v)
}

// put remembers a version. After an error the next successful save stores it.
func (c *checkpoints) put(ctx context.Context, path string, v version) error {
	part := c.part(path)
	part.read[path] = v
	part.changed = true
	return c.save(ctx)
}

func (c *checkpoints) save(ctx context.Context) error {
	for i := range c.parts {
		part := &c.parts[i]
		if !part.changed {
			continue
		}
		if c.client != nil {
			var data bytes.Buffer
			if err := gob.NewEncoder(&data).Encode(part.read); err != nil {
				return err
			}
			if err := c.client.Set(ctx, partKey(i), data.Bytes()); err != nil {
				return err
			}
		}
		part.changed = false
	}
	return nil
}

// forget drops files that have been gone for long. found has the paths of the others.
func (c *checkpoints) forget(ctx context.Context, found map[string]bool, now time.Time) error {
	for i := range c.parts {
		for path := range c.parts[i].read {
			since, known := c.gone[path]
			switch {
			case found[path]:
				delete(c.gone, path)
			case !known:
				c.gone[path] = now
			case now.Sub(since) >= forgetAfter:
				delete(c.parts[i].read, path)
				delete(c.gone, path)
				c.parts[i].changed = true
			}
		}
	}
	return c.save(ctx)
}

func (c *checkpoints) close(ctx context.Context) error {
	if c.client == nil {
		return nil
	}
	return errors.Join(c.save(ctx), c.client.Close(ctx))
}

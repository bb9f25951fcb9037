// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"context"
	"errors"
	"slices"
	"sync"

	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/zap"
)

// client is contrib's client of one file. It counts and logs failures, and answers the reads
// of a batch whose writes fail.
type client struct {
	storage.Client
	storage *fileStorage
	path    string

	mu      sync.Mutex
	failing map[string]bool // operations whose last one failed
	// Keys whose deletion was not written yet. The queue does not repeat a deletion that failed.
	undeleted map[string]struct{}
	isQueue   bool
}

// maxRepeated is how many deletions are repeated with a batch.
const maxRepeated = 16

var _ storage.Walker = (*client)(nil)

func (c *client) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	err := c.Batch(ctx, get)
	return get.Value, err
}

func (c *client) Set(ctx context.Context, key string, value []byte) error {
	return c.Batch(ctx, storage.SetOperation(key, value))
}

// Delete is not for the queue, which deletes in batches.
func (c *client) Delete(ctx context.Context, key string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.batch(ctx, []*storage.Operation{storage.DeleteOperation(key)})
	c.report(ctx, operationWrite, err)
	return err
}

// unanswered is the value of a read that was not executed.
var unanswered = []byte("unanswered")

// Batch executes the operations in order. If it can execute them but not write to the disk, a
// batch without reads fails, and a batch with reads succeeds. The queue of exporterhelper reads
// an item in one batch with its bookkeeping. If that fails, the queue drops the item. If it
// succeeds, the queue repeats the bookkeeping with the next batch, and at worst it sends the item
// again after a restart.
func (c *client) Batch(ctx context.Context, operations ...*storage.Operation) error {
	var reads []*storage.Operation
	for _, operation := range operations {
		if operation.Type == storage.Get {
			operation.Value = unanswered
			reads = append(reads, operation)
		}
	}
	kind := operationWrite
	if len(reads) == len(operations) {
		kind = operationRead
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.isQueue && !slices.ContainsFunc(operations, isNotDelete) {
		// At its start, the queue deletes items that were being sent, and then stores them
		// again. Killed in between, it would lose them. It reads the first item after that.
		for _, operation := range operations {
			c.undeleted[operation.Key] = struct{}{}
		}
		return nil
	}
	err := c.batch(ctx, operations)
	c.report(ctx, kind, err)
	if err == nil {
		return nil
	}
	answered := !slices.ContainsFunc(reads, func(read *storage.Operation) bool { return isUnanswered(read.Value) })
	if len(reads) > 0 && answered {
		return nil
	}
	for _, read := range reads {
		read.Value = nil
	}
	return err
}

func isNotDelete(operation *storage.Operation) bool { return operation.Type != storage.Delete }
func isNotSet(operation *storage.Operation) bool    { return operation.Type != storage.Set }

// batch executes the operations, and before them some deletions that were not written, unless
// all operations store something. c.mu is held.
func (c *client) batch(ctx context.Context, operations []*storage.Operation) error {
	var repeated []*storage.Operation
	for key := range c.undeleted {
		if len(repeated) < maxRepeated && slices.ContainsFunc(operations, isNotSet) {
			repeated = append(repeated, storage.DeleteOperation(key))
		}
	}
	err := c.Client.Batch(ctx, append(repeated, operations...)...)
	if err != nil && len(repeated) > 0 {
		repeated = nil // they may need more space than the operations
		err = c.Client.Batch(ctx, operations...)
	}
	for _, operation := range append(repeated, operations...) {
		_, undeleted := c.undeleted[operation.Key]
		switch {
		case operation.Type == storage.Get:
			if undeleted {
				operation.Value = nil
			}
		case err == nil:
			delete(c.undeleted, operation.Key)
		case operation.Type == storage.Delete:
			c.undeleted[operation.Key] = struct{}{}
		}
	}
	return err
}

// deleteAll writes the deletions that were not written. c.mu is held.
func (c *client) deleteAll(ctx context.Context) {
	if len(c.undeleted) == 0 {
		return
	}
	var operations []*storage.Operation
	for key := range c.undeleted {
		operations = append(operations, storage.DeleteOperation(key))
	}
	if c.Client.Batch(ctx, operations...) == nil { // items that are left take space only
		clear(c.undeleted)
	}
}

// Close closes the file after the last deletions.
func (c *client) Close(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleteAll(ctx)
	return c.Client.Close(ctx)
}

// isUnanswered compares addresses: a database may hold the same bytes.
func isUnanswered(value []byte) bool {
	return len(value) == len(unanswered) && &value[0] == &unanswered[0]
}

// Walk is for components that read all keys.
func (c *client) Walk(ctx context.Context, walk storage.WalkFunc) error {
	walker, ok := c.Client.(storage.Walker)
	if !ok {
		return errors.ErrUnsupported
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.deleteAll(ctx)
	err := walker.Walk(ctx, walk)
	c.report(ctx, operationRead, err)
	return err
}

// report counts a failure, and logs the first one and the end of failures. c.mu is held.
func (c *client) report(ctx context.Context, operation string, err error) {
	before := c.failing[operation]
	c.failing[operation] = err != nil
	fields := []zap.Field{zap.String("path", c.path), zap.String("operation", operation)}
	if err != nil {
		c.storage.countFailed(ctx, operation)
		if !before {
			c.storage.logger.Error("Storage operation failed; not logged again until one succeeds", append(fields, zap.Error(err))...)
		}
	} else if before {
		c.storage.logger.Info("Storage operations succeed again", fields...)
	}
}

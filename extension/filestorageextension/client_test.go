// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// failing is a client whose commits fail, or which executes nothing.
type failing struct {
	storage.Client
	commit, execute error
}

func (f *failing) Batch(ctx context.Context, operations ...*storage.Operation) error {
	if f.execute != nil {
		return f.execute
	}
	if f.commit == nil {
		return f.Client.Batch(ctx, operations...)
	}
	for _, operation := range operations {
		if operation.Type == storage.Get {
			if err := f.Client.Batch(ctx, operation); err != nil {
				return err
			}
		}
	}
	return f.commit
}

func (e *tested) openFailing(t testing.TB) (*client, *failing) {
	c := e.open(t).(*client)
	f := &failing{Client: c.Client}
	c.Client = f
	t.Cleanup(func() { require.NoError(t, c.Close(context.Background())) })
	return c, f
}

var errDisk = errors.New("no space left on device")

// TestReadsOfFailedWritesAreAnswered: the queue reads an item in one batch with its bookkeeping.
func TestReadsOfFailedWritesAreAnswered_E14(t *testing.T) {
	e := start(t, t.TempDir())
	c, disk := e.openFailing(t)
	ctx := t.Context()
	require.NoError(t, c.Set(ctx, "item", []byte("acknowledged")))
	require.NoError(t, c.Set(ctx, "same", slices.Clone(unanswered)))
	disk.commit = errDisk
	for range 3 {
		item, same, none := storage.GetOperation("item"), storage.GetOperation("same"), storage.GetOperation("none")
		require.NoError(t, c.Batch(ctx, storage.SetOperation("metadata", []byte("1")), item, same, none))
		assert.Equal(t, "acknowledged", string(item.Value))
		assert.Equal(t, unanswered, same.Value)
		assert.Nil(t, none.Value)
	}
	require.ErrorIs(t, c.Set(ctx, "item", nil), errDisk)
	require.ErrorIs(t, c.Delete(ctx, "same"), errDisk)
	require.ErrorIs(t, c.Batch(ctx, storage.SetOperation("a", nil), storage.DeleteOperation("same")), errDisk)

	disk.commit, disk.execute = nil, errDisk
	item := storage.GetOperation("item")
	require.ErrorIs(t, c.Batch(ctx, storage.SetOperation("metadata", []byte("1")), item), errDisk)
	assert.Nil(t, item.Value)
	value, err := c.Get(ctx, "item")
	require.ErrorIs(t, err, errDisk)
	assert.Nil(t, value)
	assert.Equal(t, map[string]int64{"failed_operations write": 7, "failed_operations read": 1}, e.counted(t))
	disk.execute = nil
	value, err = c.Get(ctx, "item")
	require.NoError(t, err)
	assert.Equal(t, "acknowledged", string(value))
}

// TestFailedDeletionsAreRepeated: the queue does not delete an item again, so it would take space for ever.
func TestFailedDeletionsAreRepeated(t *testing.T) {
	e := start(t, t.TempDir())
	c, disk := e.openFailing(t)
	ctx := t.Context()
	const items = 3 * maxRepeated
	keys := func() (all []string) {
		require.NoError(t, disk.Client.(storage.Walker).Walk(ctx, func(key string, _ []byte) ([]*storage.Operation, error) {
			all = append(all, key)
			return nil, nil
		}))
		return all
	}
	for i := range items {
		require.NoError(t, c.Set(ctx, fmt.Sprintf("%02d", i), []byte("v")))
	}
	disk.commit = errDisk
	for i := range items {
		require.Error(t, c.Delete(ctx, fmt.Sprintf("%02d", i)))
	}
	disk.commit = nil
	require.Len(t, keys(), items)
	require.NoError(t, c.Set(ctx, "07", []byte("newer")))
	require.Len(t, keys(), items)
	for len(c.undeleted) > 0 {
		for i := range items {
			value, err := c.Get(ctx, fmt.Sprintf("%02d", i))
			require.NoError(t, err)
			require.Equal(t, map[bool]string{true: "newer"}[i == 7], string(value))
		}
	}
	require.Equal(t, []string{"07"}, keys())

	disk.commit = errDisk
	require.Error(t, c.Delete(ctx, "07"))
	disk.commit = nil
	require.NoError(t, c.Close(ctx))
	value, err := e.open(t).Get(ctx, "07")
	require.NoError(t, err)
	require.Nil(t, value)
}

// TestFailuresAreLoggedOnce until the operation succeeds again.
func TestFailuresAreLoggedOnce(t *testing.T) {
	e := start(t, t.TempDir())
	c, disk := e.openFailing(t)
	for range 2 {
		disk.commit = errDisk
		for range 3 {
			require.Error(t, c.Set(t.Context(), "k", nil))
		}
		disk.commit = nil
		_, err := c.Get(t.Context(), "k") // reads are another operation
		require.NoError(t, err)
		for range 3 {
			require.NoError(t, c.Set(t.Context(), "k", nil))
		}
	}
	var messages []string
	for _, line := range e.logs.All() {
		messages = append(messages, line.Message)
		assert.Equal(t, c.path, line.ContextMap()["path"])
		assert.Equal(t, "write", line.ContextMap()["operation"])
	}
	const failed, again = "Storage operation failed; not logged again until one succeeds", "Storage operations succeed again"
	assert.Equal(t, []string{failed, again, failed, again}, messages)
}

func TestWalk(t *testing.T) {
	e := start(t, t.TempDir())
	c, err := e.GetClient(t.Context(), component.KindReceiver, queue, "files")
	require.NoError(t, err)
	require.NoError(t, c.Set(t.Context(), "k", []byte("v")))
	var keys []string
	walk := func(key string, _ []byte) ([]*storage.Operation, error) {
		keys = append(keys, key)
		return nil, nil
	}
	require.NoError(t, c.(storage.Walker).Walk(t.Context(), walk))
	assert.Equal(t, []string{"k"}, keys)
	require.NoError(t, c.Close(t.Context()))
	require.Error(t, c.(storage.Walker).Walk(t.Context(), walk))
	assert.EqualValues(t, 1, e.counted(t)["failed_operations read"])
}

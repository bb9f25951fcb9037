// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profiletest

import (
	"bytes"
	"context"
	"maps"
	"sync"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
)

// Storage is a storage extension in memory that outlives the components of a test. It has one client.
type Storage struct {
	component.StartFunc
	component.ShutdownFunc
	// Before may fail an operation; nil is none.
	Before func(*storage.Operation) error

	mu     sync.Mutex
	values map[string][]byte
}

// StorageID is the ID of the extension of Storage.Host.
var StorageID = component.MustNewID("file_storage")

// Host is a host with extensions.
type Host map[component.ID]component.Component

// GetExtensions is that of component.Host.
func (h Host) GetExtensions() map[component.ID]component.Component { return h }

// Host returns a host with this extension.
func (s *Storage) Host() component.Host { return Host{StorageID: s} }

// Values returns the stored values.
func (s *Storage) Values() map[string][]byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.values)
}

// GetClient is that of storage.Extension.
func (s *Storage) GetClient(context.Context, component.Kind, component.ID, string) (storage.Client, error) {
	return s, nil
}

// Get is that of storage.Client.
func (s *Storage) Get(ctx context.Context, key string) ([]byte, error) {
	get := storage.GetOperation(key)
	err := s.Batch(ctx, get)
	return get.Value, err
}

// Set is that of storage.Client.
func (s *Storage) Set(ctx context.Context, key string, value []byte) error {
	return s.Batch(ctx, storage.SetOperation(key, value))
}

// Delete is that of storage.Client.
func (s *Storage) Delete(ctx context.Context, key string) error {
	return s.Batch(ctx, storage.DeleteOperation(key))
}

// Batch is that of storage.Client.
func (s *Storage) Batch(_ context.Context, operations ...*storage.Operation) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.values == nil {
		s.values = map[string][]byte{}
	}
	for _, o := range operations {
		if s.Before != nil {
			if err := s.Before(o); err != nil {
				return err
			}
		}
		switch o.Type {
		case storage.Get:
			o.Value = bytes.Clone(s.values[o.Key])
		case storage.Set:
			s.values[o.Key] = bytes.Clone(o.Value)
		case storage.Delete:
			delete(s.values, o.Key)
		}
	}
	return nil
}

// Close is that of storage.Client.
func (s *Storage) Close(context.Context) error { return nil }

// Walk is that of storage.Walker. It ignores operations.
func (s *Storage) Walk(_ context.Context, walk storage.WalkFunc) error {
	for key, value := range s.Values() {
		if _, err := walk(key, value); err != nil {
			return err
		}
	}
	return nil
}

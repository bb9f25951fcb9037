// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package filestorageextension

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/extension/filestorageextension/internal/boltcheck"
	"github.com/otelcol-profiles/otelcol-profiles/extension/filestorageextension/internal/metadata"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// fileStorage is contrib's extension with a check of each file before it opens it, and with
// clients that survive failing writes.
type fileStorage struct {
	storage.Extension
	directory string
	logger    *zap.Logger
	telemetry *metadata.TelemetryBuilder
	instance  metric.MeasurementOption // the ID, as an attribute of all metrics
}

// Shutdown stops the metrics, too.
func (s *fileStorage) Shutdown(ctx context.Context) error {
	s.telemetry.Shutdown()
	return s.Extension.Shutdown(ctx)
}

// GetClient opens the file of a component. It moves a damaged one aside first.
func (s *fileStorage) GetClient(ctx context.Context, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	path := s.pathOf(kind, id, name)
	opened, err := s.open(ctx, path, kind, id, name)
	if err != nil {
		s.countFailed(ctx, operationOpen)
		return nil, fmt.Errorf("cannot open storage %s: %w", path, err)
	}
	return &client{
		Client: opened, storage: s, path: path, isQueue: kind == component.KindExporter,
		failing: map[string]bool{}, undeleted: map[string]struct{}{},
	}, nil
}

func (s *fileStorage) open(ctx context.Context, path string, kind component.Kind, id component.ID, name string) (storage.Client, error) {
	damage, err := check(path)
	if err != nil {
		return nil, err
	}
	if damage != nil {
		if err := s.moveAside(ctx, path, kind, id, damage); err != nil {
			return nil, err
		}
	}
	return s.Extension.GetClient(ctx, kind, id, name)
}

// check returns the damage in the file at path. It leaves alone files that contrib's extension
// reports: a missing, empty or unreadable file, another process that uses it, and
// anything but regular files.
func check(path string) (damage, err error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return nil, nil
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, nil
	}
	defer func() { _ = file.Close() }() // nothing was written
	if locked, err := recordfile.TryLock(file); err != nil || !locked {
		return nil, nil
	}
	if info, err = file.Stat(); err != nil {
		return nil, err
	}
	err = boltcheck.Check(file, info.Size())
	if errors.Is(err, boltcheck.ErrDamaged) {
		return err, nil
	}
	return nil, err
}

// moveAside renames a damaged file, so that contrib's extension creates an empty one.
func (s *fileStorage) moveAside(ctx context.Context, path string, kind component.Kind, id component.ID, damage error) error {
	aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000Z")
	if err := os.Rename(path, aside); err != nil {
		return fmt.Errorf("%w; it cannot be moved aside: %w", damage, err)
	}
	s.telemetry.ExtensionFileStorageDamagedFiles.Add(ctx, 1, s.instance)
	lost := "the component starts without its stored state"
	switch kind {
	case component.KindExporter:
		lost = "the profiles in this queue are not sent"
	case component.KindReceiver:
		lost = "the receiver reads files again that it has read"
	}
	s.logger.Error("Moved damaged storage file aside; starting with an empty one",
		zap.String("path", path), zap.String("moved_to", aside), zap.Error(damage),
		zap.Stringer("component", id), zap.String("consequence", lost))
	return nil
}

const (
	operationOpen  = "open"
	operationWrite = "write"
	operationRead  = "read"
)

func (s *fileStorage) countFailed(ctx context.Context, operation string) {
	s.telemetry.ExtensionFileStorageFailedOperations.Add(ctx, 1, s.instance, metric.WithAttributes(attribute.String("operation", operation)))
}

// pathOf returns the path that contrib's extension uses for a client.
func (s *fileStorage) pathOf(kind component.Kind, id component.ID, name string) string {
	parts := []string{strings.ToLower(kind.String()), id.Type().String(), id.Name()}
	if name != "" {
		parts = append(parts, name)
	}
	file := escape(strings.Join(parts, "_"))
	path := filepath.Join(s.directory, file)
	if _, err := os.Lstat(path); errors.Is(err, syscall.ENAMETOOLONG) {
		hash := sha256.Sum256([]byte(file))
		path = filepath.Join(s.directory, hex.EncodeToString(hash[:]))
	}
	return path
}

// escape replaces characters that a file name cannot have.
func escape(name string) string {
	var b strings.Builder
	for _, c := range name {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune(".-_", c) {
			b.WriteRune(c)
		} else {
			fmt.Fprintf(&b, "~%04X", c)
		}
	}
	return b.String()
}

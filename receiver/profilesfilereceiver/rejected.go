// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/contents"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/segment"
)

// rejected writes rejected records into a directory as the exporter does, one record in each file.
type rejected struct {
	config    RejectedConfig
	logger    *zap.Logger
	telemetry *telemetry

	mu       sync.Mutex
	writer   *store.Writer // nil before the first record
	unlisted int64         // bytes written since max_total_size was applied
}

// sharePerList is the part of max_total_size that may be written before it is applied again: that lists the whole
// directory, which may have 100,000 files.
const sharePerList = 64

// keep returns nil when the record is on the disk, or if there is no directory.
func (k *rejected) keep(record *archive.Record) error {
	if k.config.Directory == "" {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.writer == nil {
		writer, err := store.OpenWriter(k.options())
		if err != nil {
			return err
		}
		k.writer, k.unlisted = writer, int64(k.config.MaxTotalSize)
	}
	pd, err := record.Profiles()
	if err != nil {
		return err
	}
	entry, err := contents.Describe(pd)
	if err != nil {
		entry = nil // readers of the record have the error
	}
	message := record.Data
	if record.Encoding != archive.OTLPProto {
		if message, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err != nil {
			return err
		}
	}
	err = k.writer.Append(store.Record{Data: message, Entry: entry})
	k.writer.Tick() // retries writes that a full disk prevented
	k.unlisted += int64(len(message))
	if err != nil || k.unlisted >= int64(k.config.MaxTotalSize)/sharePerList {
		k.writer.Maintain()
		k.unlisted = 0
	}
	return err
}

func (k *rejected) options() store.Options {
	return store.Options{
		Directory: k.config.Directory,
		Format:    segment.Proto,
		Rotation:  store.Rotation{MaxRecords: 1},
		Sync:      store.SyncRecord,
		MaxOpen:   1,
		Retention: store.Retention{MaxTotalSize: int64(k.config.MaxTotalSize)},
		FileRemoved: func(path string, size int64) {
			k.telemetry.countRemovedRejected()
			k.logger.Warn("Removed rejected file: max_total_size is reached", zap.String("path", path), zap.Int64("bytes", size))
		},
		Failed: func(err error) {
			k.logger.Warn("Cannot write to the rejected directory; will retry", zap.Error(err))
		},
	}
}

func (k *rejected) close() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.writer == nil {
		return nil
	}
	return k.writer.Close()
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"sync"

	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/recordfile"
)

// rejected writes rejected records into files of the exporter's format, one record in each.
type rejected struct {
	config    RejectedConfig
	logger    *zap.Logger
	telemetry *telemetry

	mu       sync.Mutex
	writer   *recordfile.Writer // nil before the first record
	unlisted int64              // bytes written since max_total_size was applied
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
		writer, err := recordfile.OpenWriter(k.options())
		if err != nil {
			return err
		}
		k.writer, k.unlisted = writer, int64(k.config.MaxTotalSize)
	}
	message := record.Data
	if record.Encoding != archive.OTLPProto {
		pd, err := record.Profiles()
		if err != nil {
			return err
		}
		if message, err = (&pprofile.ProtoMarshaler{}).MarshalProfiles(pd); err != nil {
			return err
		}
	}
	err := k.writer.Append(recordfile.Record{Data: message})
	k.writer.Tick() // retries writes that a full disk prevented
	k.unlisted += int64(len(message))
	if err != nil || k.unlisted >= int64(k.config.MaxTotalSize)/sharePerList {
		k.writer.Maintain()
		k.unlisted = 0
	}
	return err
}

func (k *rejected) options() recordfile.Options {
	return recordfile.Options{
		Directory: k.config.Directory,
		Format:    recordfile.Format{Content: recordfile.OTLPProto, Compression: recordfile.Zstd},
		Rotation:  recordfile.Rotation{MaxRecords: 1},
		Sync:      recordfile.SyncRecord,
		MaxOpen:   1,
		Retention: recordfile.Retention{MaxTotalSize: int64(k.config.MaxTotalSize)},
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

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/exporter/exporterhelper"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/exporter/xexporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/pdata/xpdata/request"
	"go.uber.org/zap"
)

// queueing rejects payloads that can never be written, before the queue acknowledges them.
type queueing struct {
	xexporter.Profiles
	e *fileExporter
}

func (q queueing) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	// The queue itself returns the error of a full queue: clients would retry indefinitely.
	size, limit := (&pprofile.ProtoMarshaler{}).ProfilesSize(pd), q.e.config.SendingQueue.Get().QueueSize
	if int64(size) > limit {
		return q.e.rejection(reasonTooLarge, fmt.Errorf("payload of %d bytes exceeds sending_queue::queue_size (%d)", size, limit))
	}
	if err := check(pd, q.e.config.GroupBy); err != nil {
		return q.e.rejection(reasonConvert, q.e.convertError(pd, err))
	}
	return q.Profiles.ConsumeProfiles(ctx, pd)
}

// encoding is the Collector's encoding for items of a persistent queue. It reports items
// that it cannot restore, because the queue drops them and logs that at debug level only.
type encoding struct {
	exporterhelper.QueueBatchEncoding[xexporterhelper.Request]
	e *fileExporter
}

var (
	errEncoding  = errors.New("queued item is damaged or belongs to another exporter")
	errNotStored = errors.New("item was not stored; its client got an error")
)

// itemStart is how all items start: the version of their format. The Collector reads an
// item with another start as bare profiles, and could find none in it.
var itemStart = func() []byte {
	item, err := request.MarshalProfiles(context.Background(), pprofile.NewProfiles())
	if err != nil {
		panic(err) // it does not depend on input
	}
	return item[:5]
}()

func (c encoding) Unmarshal(item []byte) (ctx context.Context, req xexporterhelper.Request, err error) {
	switch {
	case item == nil:
		// After a failed write the queue counts an item that it does not have.
		return context.Background(), nil, errNotStored
	case bytes.HasPrefix(item, itemStart):
		ctx, req, err = c.QueueBatchEncoding.Unmarshal(item)
	default:
		err = errEncoding
	}
	if err != nil {
		c.e.countError(reasonConvert)
		c.e.logger.Error("Dropped queued item", zap.Error(err), zap.Int("bytes", len(item)))
		return context.Background(), nil, fmt.Errorf("%w: %w", errEncoding, err)
	}
	return ctx, req, nil
}

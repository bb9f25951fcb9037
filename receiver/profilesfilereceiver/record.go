// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/partialerror"
)

// pendingRecord is a record that is sent. Its bytes are its own: each attempt decodes them, since
// the next consumer may change its payload.
type pendingRecord struct {
	archive.Record
	file   *openFile
	failed int // attempts
}

// startSend waits until the record may be in progress, and starts to send it. It returns false after
// Shutdown.
func (r *fileReceiver) startSend(ctx context.Context, f *openFile, from *archive.Record) bool {
	size, err := sizeOf(from)
	if err == nil && size > r.capacity {
		err = fmt.Errorf("the record takes about %d bytes of memory, more than %d, three quarters of max_in_flight: raise it", size, r.capacity)
	}
	if err != nil {
		r.damaged(f, fmt.Errorf("record %d: %w", from.Number, err))
		return true
	}
	if r.slots.Acquire(ctx, 1) != nil {
		f.interrupted.Store(true)
		return false
	}
	if r.memory.Acquire(ctx, size) != nil {
		r.slots.Release(1)
		f.interrupted.Store(true)
		return false
	}
	f.users.Add(1)
	record := &pendingRecord{Record: *from, file: f}
	record.Data = bytes.Clone(from.Data)
	r.running.Go(func() {
		r.send(ctx, record)
		r.release(ctx, f)
		r.memory.Release(size)
		r.slots.Release(1)
	})
	return true
}

// sizeOf is the memory that sending a record takes: its bytes, those of an exporter, and the decoded
// Profiles.
func sizeOf(record *archive.Record) (int64, error) {
	switch record.Encoding {
	case archive.OTLPProto, archive.OTLPJSON:
	default:
		return 0, fmt.Errorf("is %s: must be OTLP; the pprof receiver reads pprof files", record.Encoding)
	}
	decoded, err := record.DecodedSize()
	return decoded + 2*int64(len(record.Data)), err
}

// send sends a record until it is accepted or kept as rejected, or until Shutdown.
func (r *fileReceiver) send(ctx context.Context, record *pendingRecord) {
	for wait := r.config.RetryOnFailure.InitialInterval; ; wait = min(2*wait, r.config.RetryOnFailure.MaxInterval) {
		pd, err := record.Profiles()
		if err != nil {
			r.damaged(record.file, err)
			return
		}
		err = r.consume(ctx, pd)
		switch {
		case err == nil:
			r.telemetry.countRecord(recordAccepted)
		case ctx.Err() != nil:
			record.file.interrupted.Store(true)
			return
		default:
			err = r.failed(record, err)
		}
		if err == nil {
			r.complete(ctx, record.file, record.Number)
			return
		}
		record.failed++
		r.logRetry(record, err)
		select {
		case <-ctx.Done():
			record.file.interrupted.Store(true)
			return
		case <-time.After(wait/2 + rand.N(wait)): // many sidecars do not retry at once
		}
	}
}

// consume calls the next consumer. A panic is a permanent error.
func (r *fileReceiver) consume(ctx context.Context, pd pprofile.Profiles) (err error) {
	ctx = r.obsreport.StartProfilesOp(ctx)
	samples := pd.SampleCount()
	defer func() {
		if value := recover(); value != nil {
			r.logger.Error("Panic while sending a record", zap.Any("panic", value), zap.Stack("stack"))
			err = consumererror.NewPermanent(fmt.Errorf("panic: %v", value))
		}
		r.obsreport.EndProfilesOp(ctx, "otlp", samples, err)
	}()
	if pd.ProfileCount() == 0 {
		return nil
	}
	return r.next.ConsumeProfiles(ctx, pd)
}

// failed leaves in the record the Profiles that the next consumer did not accept. It returns nil if that is kept
// as rejected, and otherwise the error to retry after.
func (r *fileReceiver) failed(record *pendingRecord, err error) error {
	if rest, partial := partialerror.Profiles(err); partial {
		message, marshalErr := (&pprofile.ProtoMarshaler{}).MarshalProfiles(rest)
		if marshalErr == nil {
			record.Data, record.Encoding = message, archive.OTLPProto
		}
	}
	if !partialerror.IsPermanent(err) {
		r.telemetry.countRecord(recordRetried)
		return err
	}
	if keepErr := r.rejected.keep(&record.Record); keepErr != nil {
		r.telemetry.countRecord(recordRetried)
		return errors.Join(err, fmt.Errorf("cannot keep it: %w", keepErr))
	}
	r.telemetry.countRecord(recordRejected)
	r.logger.Error("Rejected record permanently", zap.String("path", record.File), zap.Int("record", record.Number),
		zap.String("kept_in", r.config.Rejected.Directory), zap.Error(err))
	return nil
}

// logRetry logs the first failure of a record as a warning.
func (r *fileReceiver) logRetry(record *pendingRecord, err error) {
	log := r.logger.Debug
	if record.failed == 1 {
		log = r.logger.Warn
	}
	log("Record was not accepted; will retry", zap.String("path", record.File), zap.Int("record", record.Number),
		zap.Int("attempts", record.failed), zap.Error(err))
}

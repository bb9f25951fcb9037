// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfilereceiver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/archive"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// sizeOf is the memory that sending a record takes: its bytes, those of an exporter, and the decoded
// Profiles.
func (r *fileReceiver) sizeOf(record *archive.Record) (int64, error) {
	size, err := record.DecodedSize()
	return size + 2*int64(len(record.Data)), err
}

// send sends a record until it is accepted or kept as rejected, or until Shutdown: errShutdown. A record that cannot be kept
// makes room for others: after any other error, its file is read again later. Each attempt decodes its bytes, since
// the next consumer may change its payload.
func (r *fileReceiver) send(ctx context.Context, f *openFile, record *archive.Record) error {
	wait := r.config.RetryOnFailure.InitialInterval
	log := r.logger.Warn // the first failure
	for attempts := 1; ; attempts++ {
		pd, err := record.Profiles()
		if err != nil {
			r.damaged(f, err)
			return nil
		}
		err = r.consume(ctx, pd)
		switch {
		case err == nil:
			r.telemetry.countRecord(recordAccepted)
		case ctx.Err() != nil:
			return errShutdown
		default:
			err = r.failed(record, err)
		}
		switch {
		case err == nil:
			r.complete(f, record.Number)
			return nil
		case errors.Is(err, errNotKept):
			return fmt.Errorf("record %d: %w", record.Number, err)
		}
		log("Record was not accepted; will retry", zap.String("path", record.File), zap.Int("record", record.Number),
			zap.Int("attempts", attempts), zap.Error(err))
		log = r.logger.Debug
		select {
		case <-ctx.Done():
			return errShutdown
		case <-time.After(wait/2 + rand.N(wait)): // many sidecars do not retry at once
		}
		wait = min(2*wait, r.config.RetryOnFailure.MaxInterval)
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

// errNotKept says that a record was rejected and is not in the rejected directory, for example because the disk is full.
var errNotKept = errors.New("cannot keep the rejected record")

// failed leaves in the record the Profiles that the next consumer did not accept. It returns nil if that is kept
// as rejected, and otherwise the error to retry after.
func (r *fileReceiver) failed(record *archive.Record, err error) error {
	if rest, partial := ingest.NotAccepted(err); partial {
		message, marshalErr := (&pprofile.ProtoMarshaler{}).MarshalProfiles(rest)
		if marshalErr == nil {
			record.Data, record.Encoding = message, archive.OTLPProto
		}
	}
	if ingest.IsPermanent(err) {
		keepErr := r.rejected.keep(record)
		if keepErr == nil {
			r.telemetry.countRecord(recordRejected)
			r.logger.Error("Rejected record permanently", zap.String("path", record.File), zap.Int("record", record.Number),
				zap.String("kept_in", r.config.Rejected.Directory), zap.Error(err))
			return nil
		}
		err = errors.Join(err, fmt.Errorf("%w: %w", errNotKept, keepErr))
	}
	r.telemetry.countRecord(recordRetried)
	return err
}

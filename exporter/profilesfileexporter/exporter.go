// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// fileExporter marshals profiles and hands them to a segment.Writer, which it
// owns and ticks.
type fileExporter struct {
	config    *Config
	logger    *zap.Logger
	marshaler pprofile.Marshaler

	// openWriter is segment.OpenWriter, but for tests.
	openWriter func(path string, options segment.Options) (*segment.Writer, error)

	writer *segment.Writer // nil before start and after a start that failed
	stop   chan struct{}
	ticker sync.WaitGroup
}

func newFileExporter(config *Config, set exporter.Settings) *fileExporter {
	e := &fileExporter{
		config: config, logger: set.Logger, marshaler: &pprofile.ProtoMarshaler{}, openWriter: segment.OpenWriter,
	}
	if config.Format == formatJSON {
		e.marshaler = &pprofile.JSONMarshaler{}
	}
	return e
}

// start makes the directory if it is missing, and repairs what an earlier run
// left there.
func (e *fileExporter) start(context.Context, component.Host) error {
	options := e.config.segmentOptions()
	options.Finished, options.Repaired, options.Trouble = e.logFinished, e.logRepaired, e.logTrouble
	writer, err := e.openWriter(e.config.Directory, options)
	if err != nil {
		return fmt.Errorf("open directory %q: %w", e.config.Directory, err)
	}
	e.writer = writer
	e.stop = make(chan struct{})
	e.ticker.Go(e.tick)
	return nil
}

// tick does what is due when nothing is written, until stop is closed.
func (e *fileExporter) tick() {
	ticker := time.NewTicker(e.writer.TickInterval())
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			e.writer.Tick()
		}
	}
}

// shutdown finishes the file. With an error, the next start will.
func (e *fileExporter) shutdown(context.Context) error {
	if e.writer == nil {
		return nil
	}
	select {
	case <-e.stop:
		return nil // it was called before
	default:
		close(e.stop)
	}
	e.ticker.Wait()
	return e.writer.Close()
}

// consumeProfiles writes one record. What the disk refuses may be tried again;
// what cannot be a record may not.
func (e *fileExporter) consumeProfiles(_ context.Context, pd pprofile.Profiles) error {
	if e.writer == nil {
		return errors.New("exporter is not started")
	}
	count := segment.Count{Profiles: pd.ProfileCount(), Samples: pd.SampleCount()}
	record, err := e.marshaler.MarshalProfiles(withZeroString(pd))
	if err != nil {
		return consumererror.NewPermanent(fmt.Errorf("marshal %d profiles: %w", count.Profiles, err))
	}
	err = e.writer.Append(record, count)
	if _, ok := errors.AsType[*segment.InvalidRecordError](err); ok {
		return consumererror.NewPermanent(err)
	}
	return err
}

// withZeroString returns profiles whose string table begins with the zero value:
// pd itself, unless its table is empty. Marshalling turns the strings of resources
// and scopes into references, and one to index 0 would read as no string.
func withZeroString(pd pprofile.Profiles) pprofile.Profiles {
	if pd.Dictionary().StringTable().Len() > 0 {
		return pd
	}
	if pd.IsReadOnly() {
		own := pprofile.NewProfiles()
		pd.CopyTo(own)
		pd = own
	}
	pd.Dictionary().StringTable().Append("")
	return pd
}

func (e *fileExporter) logFinished(f segment.Finished) {
	e.logger.Info("Finished a file of profiles",
		zap.String("directory", e.config.Directory),
		zap.String("file", f.Name),
		zap.String("reason", string(f.Reason)),
		zap.Int("profiles", f.Count.Profiles),
		zap.Int("samples", f.Count.Samples),
		zap.Int("records", f.Records),
		zap.Int64("bytes", f.Size),
		zap.Int64("uncompressed_bytes", f.Raw),
	)
}

func (e *fileExporter) logRepaired(r segment.Repaired) {
	fields := []zap.Field{
		zap.String("directory", e.config.Directory),
		zap.String("partial", r.Partial),
		zap.Int64("cut_bytes", r.Cut),
	}
	if r.Name == "" {
		e.logger.Info("Removed a leftover file without a whole record", fields...)
		return
	}
	e.logger.Info("Finished a leftover file", append(fields,
		zap.String("file", r.Name),
		zap.Int("records", r.Records),
		zap.Int64("bytes", r.Size),
		zap.Int("damaged_places", r.Damaged),
	)...)
}

func (e *fileExporter) logTrouble(err error) {
	e.logger.Warn("Trouble with files of profiles", zap.String("directory", e.config.Directory), zap.Error(err))
}

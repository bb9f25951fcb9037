// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package symbolizeprocessor

import (
	"context"
	"errors"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer"
	"go.opentelemetry.io/collector/consumer/xconsumer"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.opentelemetry.io/collector/processor"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/panics"
	"github.com/otelcol-profiles/otelcol-profiles/internal/symbolize"
	"github.com/otelcol-profiles/otelcol-profiles/processor/symbolizeprocessor/internal/metadata"
)

type symbolizeProcessor struct {
	cfg       *Config
	set       processor.Settings
	next      xconsumer.Profiles
	telemetry *metadata.TelemetryBuilder
	id        attribute.KeyValue
	store     *symbolize.Store // nil until Start
}

func newSymbolizeProcessor(set processor.Settings, cfg *Config, next xconsumer.Profiles) (*symbolizeProcessor, error) {
	telemetry, err := metadata.NewTelemetryBuilder(set.TelemetrySettings)
	return &symbolizeProcessor{
		cfg: cfg, set: set, next: next, telemetry: telemetry, id: attribute.String("processor", set.ID.String()),
	}, err
}

// Capabilities says that payloads are changed.
func (p *symbolizeProcessor) Capabilities() consumer.Capabilities {
	return consumer.Capabilities{MutatesData: true}
}

// Start opens the cache.
func (p *symbolizeProcessor) Start(ctx context.Context, host component.Host) error {
	client, err := p.cfg.Debuginfod.HTTP.ToClient(ctx, host.GetExtensions(), p.set.TelemetrySettings)
	if err != nil {
		return err
	}
	p.store, err = symbolize.NewStore(symbolize.Options{
		Directories: p.cfg.Directories,
		Servers:     p.cfg.Debuginfod.URLs,
		Client:      client,
		Cache:       p.cfg.Cache.Directory,
		CacheSize:   int64(p.cfg.Cache.MaxSize),
		MaxFileSize: int64(p.cfg.MaxFileSize),
		MaxMemory:   int64(p.cfg.MaxMemory),
		Built:       p.built,
	})
	return err
}

// Shutdown ends all searches.
func (p *symbolizeProcessor) Shutdown(context.Context) error {
	if p.store != nil {
		p.store.Close()
	}
	p.telemetry.Shutdown()
	return nil
}

// ConsumeProfiles symbolizes a payload and passes it on.
func (p *symbolizeProcessor) ConsumeProfiles(ctx context.Context, pd pprofile.Profiles) error {
	waiting, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	outcomes := symbolize.Profiles(waiting, p.store, pd, p.cfg.Demangle)
	cancel()
	for outcome, n := range outcomes {
		p.add(ctx, p.telemetry.ProcessorSymbolizeLocations, n, attribute.String("outcome", string(outcome)))
	}
	return p.next.ConsumeProfiles(ctx, pd)
}

func (p *symbolizeProcessor) add(ctx context.Context, counter metric.Int64Counter, n int, what attribute.KeyValue) {
	counter.Add(ctx, int64(n), metric.WithAttributeSet(attribute.NewSet(p.id, what)))
}

// built counts a search that has ended, and logs what is wrong with a file.
func (p *symbolizeProcessor) built(buildID string, err error) {
	result := "failed"
	_, incomplete := errors.AsType[*symbolize.IncompleteError](err)
	switch {
	case incomplete:
		result = "incomplete"
		p.set.Logger.Warn("Debug information is incomplete; functions are those of the symbol table, without lines",
			zap.String("build_id", buildID), zap.Error(err))
	case err == nil:
		result = "found"
	case errors.Is(err, symbolize.ErrNotFound):
		result = "not_found"
	default:
		fields := []zap.Field{zap.String("build_id", buildID), zap.Error(err)}
		if caught, ok := errors.AsType[*panics.Error](err); ok {
			fields = append(fields, zap.ByteString("stack", caught.Stack))
		}
		p.set.Logger.Warn("Symbols could not be read; locations of the file stay without functions", fields...)
	}
	p.add(context.Background(), p.telemetry.ProcessorSymbolizeFiles, 1, attribute.String("result", result))
}

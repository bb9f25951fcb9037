// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package profilesfileexporter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/exporterhelper/xexporterhelper"
	"go.opentelemetry.io/collector/pdata/pprofile"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/segment"
)

// fileExporter makes requests of profiles and hands their records to a segment.Set,
// which it owns and ticks.
type fileExporter struct {
	config    *Config
	options   segment.Options
	logger    *zap.Logger
	telemetry *telemetry
	marshaler recordMarshaler

	// openSet is segment.OpenSet, but for tests.
	openSet func(path string, options segment.Options, set segment.SetOptions) (*segment.Set, error)

	set     *segment.Set // nil before start and after a start that failed
	stop    chan struct{}
	tickers sync.WaitGroup
}

func newFileExporter(config *Config, set exporter.Settings) (*fileExporter, error) {
	telemetry, err := newTelemetry(set)
	if err != nil {
		return nil, err
	}
	e := &fileExporter{
		config: config, options: config.segmentOptions(), logger: set.Logger, telemetry: telemetry,
		marshaler: marshalerOf(config.Format), openSet: segment.OpenSet,
	}
	e.options.Appended = e.tellAppended
	e.options.Finished = e.tellFinished
	e.options.Repaired = e.tellRepaired
	e.options.Trouble = e.tellTrouble
	return e, nil
}

// start makes the directory if it is missing, and repairs what an earlier run
// left there.
func (e *fileExporter) start(context.Context, component.Host) error {
	options := e.config.setOptions()
	options.Removed = e.tellRemoved
	set, err := e.openSet(e.config.Directory, e.options, options)
	if err != nil {
		return fmt.Errorf("open directory %q: %w", e.config.Directory, err)
	}
	e.set = set
	e.stop = make(chan struct{})
	e.tickers.Go(func() { e.every(set.TickInterval(), set.Tick) })
	e.tickers.Go(func() { e.every(segment.KeepInterval, set.Keep) })
	return nil
}

// every does what is due when nothing is written, until stop is closed.
func (e *fileExporter) every(interval time.Duration, do func()) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-e.stop:
			return
		case <-ticker.C:
			do()
		}
	}
}

// shutdown finishes the files. With an error, the next start will.
func (e *fileExporter) shutdown(context.Context) error {
	if e.set == nil {
		return nil
	}
	select {
	case <-e.stop:
		return nil // it was called before
	default:
		close(e.stop)
	}
	e.tickers.Wait()
	err := e.set.Close()
	e.telemetry.Shutdown()
	return err
}

// request makes the records of one payload. An error is final, and of all of it.
func (e *fileExporter) request(_ context.Context, pd pprofile.Profiles) (xexporterhelper.Request, error) {
	r := &request{}
	err := e.convert(r, pd)
	if err == nil && len(r.left) == 0 {
		err = r.refused.err("groups")
	}
	if err != nil {
		e.count(reasonConvert)
		return nil, err
	}
	// No queue takes it ever, but the error of a full one says to come again.
	if queue := e.config.SendingQueue; queue.HasValue() && int64(r.size) > queue.Get().QueueSize {
		e.count(reasonTooLarge)
		return nil, fmt.Errorf("records of %d bytes are more than sending_queue::queue_size, which is %d", r.size, queue.Get().QueueSize)
	}
	if e.config.SendingQueue.HasValue() && !e.config.SendingQueue.Get().WaitForResult {
		e.tellRefused(r) // the caller is answered now, and the queue may store what is left only
	}
	return r, nil
}

// convert adds the records of pd to the request, and to its refusals what is none. An
// error is of all of pd.
func (e *fileExporter) convert(r *request, pd pprofile.Profiles) error {
	explain := func(profiles int, err error) error {
		return fmt.Errorf("convert %d profiles to %s: %w", profiles, e.config.Format, err)
	}
	profiles := pd.ProfileCount()
	err := groupsOf(pd, e.config.GroupBy, func(g group) error {
		profiles := g.profiles.ProfileCount()
		err := e.marshaler.marshal(g.profiles, func(record []byte, count segment.Count) { r.add(g.names, record, count) })
		if err != nil {
			err = explain(profiles, err)
			if len(g.names) > 0 {
				err = fmt.Errorf("group %s: %w", strings.Join(g.names, "/"), err)
			}
			r.refused.add(reasonConvert, err)
		}
		return nil
	})
	if err != nil {
		return explain(profiles, err)
	}
	return nil
}

// consume writes what is left of a request. What the disk refuses stays, and may be
// tried again; what cannot be a record, or has no directory to go to, may not.
func (e *fileExporter) consume(ctx context.Context, req xexporterhelper.Request) error {
	if e.set == nil {
		return errors.New("exporter is not started")
	}
	if err := ctx.Err(); err != nil {
		// Nobody waits: who has gone comes again, and has it written then.
		return fmt.Errorf("not written, the caller has gone: %w", err)
	}
	r := req.(*request)
	var first error
	left := r.left[:0]
	for _, record := range r.left {
		err := e.set.Append(record.group, record.bytes, record.count)
		if err == nil {
			continue
		}
		if _, invalid := errors.AsType[*segment.InvalidRecordError](err); invalid || errors.Is(err, segment.ErrNotDirectory) {
			r.refused.add(reasonOf(err), err)
			continue
		}
		e.count(reasonOf(err))
		if first == nil {
			first = err
		}
		left = append(left, record)
	}
	all := len(r.left)
	clear(r.left[len(left):])
	r.left = left
	if len(left) == 0 {
		// While something is left the whole payload may come again.
		e.tellRefused(r)
	}
	switch {
	case len(left) > 1:
		return fmt.Errorf("%d of %d records, the first of them: %w", len(left), all, first)
	case len(left) == 1:
		return first
	case r.refused.count > 0:
		return consumererror.NewPermanent(r.refused.err("records or groups"))
	default:
		return nil
	}
}

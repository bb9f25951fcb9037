// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/consumer/consumererror"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/difference"
)

// scraper scrapes the targets of a remote section, from start to stop. Each kind
// of profile of each target has a goroutine of its own, so that none waits for
// another.
type scraper struct {
	config    RemoteConfig
	jobs      []*scrapeJob
	intake    *ingest.Ingester
	settings  component.TelemetrySettings
	telemetry *telemetry

	// makeClient makes the client that start uses.
	makeClient func(ctx context.Context, host component.Host) (*http.Client, error)

	fetcher fetcher
	cancel  context.CancelFunc
	running sync.WaitGroup
}

// scrapeJob is one URL that is scraped over and over.
type scrapeJob struct {
	url        *url.URL
	resource   pcommon.Map
	kind       scrapeKind
	series     *difference.Series
	logger     *zap.Logger
	attributes []attribute.KeyValue // target and kind, of its metrics

	up     atomic.Int64 // 1 and 0, or healthUnknown
	failed string       // outcome that was last warned of
}

const healthUnknown = -1

func newScraper(config RemoteConfig, resourceAttributes map[string]string, in *ingest.Ingester, settings component.TelemetrySettings, telemetry *telemetry) (*scraper, error) {
	s := &scraper{config: config, intake: in, settings: settings, telemetry: telemetry}
	s.makeClient = s.configuredClient
	if config.HTTP.Endpoint != "" {
		at, err := parseTarget(config.HTTP.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("endpoint: %w", err)
		}
		kind := kindOfPath(at.Path)
		if at.Query().Has(secondsParameter) {
			kind.temporality = ingest.Always(ingest.TemporalityDelta) // of any kind: what happened meanwhile
			kind.sinceLast = false
		}
		s.addJob(at, at, kind, at.Host, resourceAttributes, nil)
	}
	targets := make([]*url.URL, 0, len(config.Targets))
	for i, target := range config.Targets {
		at, err := parseTarget(target.Endpoint)
		if err != nil {
			return nil, fmt.Errorf("targets::%d::endpoint: %w", i, err)
		}
		if strings.Trim(at.Path, "/") == "" {
			at.Path = defaultPprofPath
		}
		targets = append(targets, at)
	}
	for i, target := range config.Targets {
		at := targets[i]
		for _, name := range config.kindsOf(target) {
			kind := scrapeKinds[name]
			s.addJob(at, at.JoinPath(kind.path), kind, instanceOf(at, targets), resourceAttributes, target.ResourceAttributes)
		}
	}
	return s, nil
}

// instanceOf is the service.instance.id of a target: its host and port, and where
// other targets have the same, where it is below them.
func instanceOf(at *url.URL, all []*url.URL) string {
	for _, other := range all {
		if strings.EqualFold(at.Host, other.Host) && locationOf(at) != locationOf(other) {
			return locationOf(at)
		}
	}
	return at.Host
}

func (s *scraper) addJob(target, from *url.URL, kind scrapeKind, instance string, common, own map[string]string) {
	if query := from.Query(); kind.lasting && !query.Has(secondsParameter) {
		query.Set(secondsParameter, strconv.Itoa(int(s.config.cpuDuration()/time.Second)))
		withSeconds := *from
		withSeconds.RawQuery = query.Encode()
		from = &withSeconds
	}
	resource := pcommon.NewMap()
	attributes := map[string]string{ingest.AttributeServiceInstanceID: instance}
	maps.Copy(attributes, common)
	maps.Copy(attributes, own)
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		resource.PutStr(name, attributes[name])
	}
	job := &scrapeJob{
		url:      from,
		resource: resource,
		kind:     kind,
		series:   kind.series(s.config.Delta),
		logger:   s.settings.Logger.With(zap.String("target", targetName(target)), zap.String("profile", kind.profileType)),
		attributes: []attribute.KeyValue{
			attribute.String("target", targetName(target)),
			attribute.String("profile.type", kind.profileType),
		},
	}
	job.up.Store(healthUnknown)
	s.jobs = append(s.jobs, job)
}

func (s *scraper) configuredClient(ctx context.Context, host component.Host) (*http.Client, error) {
	config := s.config.HTTP
	config.Timeout = 0 // each scrape has a context that ends by then
	settings := s.settings
	settings.TracerProvider = noop.NewTracerProvider() // spans would hold the query
	return config.ToClient(ctx, host.GetExtensions(), settings)
}

// start begins to scrape: each profile first at its own moment within the interval.
func (s *scraper) start(ctx context.Context, host component.Host) error {
	client, err := s.makeClient(ctx, host)
	if err != nil {
		return fmt.Errorf("remote: %w", err)
	}
	client.CheckRedirect = stayOnHost
	s.fetcher = fetcher{
		client:    client,
		limit:     int(s.config.MaxDecompressedSize),
		arriving:  ingest.NewInFlight(int64(s.config.MaxInFlight), s.config.HTTP.Timeout),
		workingOn: ingest.NewInFlight(int64(s.config.MaxInFlight), s.config.HTTP.Timeout),
	}
	if err := s.telemetry.RegisterReceiverPprofTargetUpCallback(s.observeHealth); err != nil {
		return fmt.Errorf("remote: %w", err)
	}
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, job := range s.jobs {
		s.running.Go(func() { s.run(ctx, job) })
	}
	return nil
}

// stop ends the scrapes that are under way, and drops what they had not finished.
func (s *scraper) stop() {
	if s.cancel == nil { // not started
		return
	}
	s.cancel()
	s.running.Wait()
	s.fetcher.client.CloseIdleConnections()
}

func (s *scraper) observeHealth(_ context.Context, observer metric.Int64Observer) error {
	for _, job := range s.jobs {
		if up := job.up.Load(); up != healthUnknown {
			observer.Observe(up, s.telemetry.with(job.attributes...))
		}
	}
	return nil
}

// offset is the moment within the interval at which a URL is scraped: always the
// same one, and spread evenly.
func offset(from *url.URL, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(from.String()))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(interval))
}

func (s *scraper) run(ctx context.Context, job *scrapeJob) {
	first := time.NewTimer(offset(job.url, s.config.CollectionInterval))
	defer first.Stop()
	select {
	case <-ctx.Done():
		return
	case <-first.C:
	}
	ticker := time.NewTicker(s.config.CollectionInterval)
	defer ticker.Stop()
	for {
		s.collect(ctx, job)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// collect scrapes once, and tells how it went.
func (s *scraper) collect(ctx context.Context, job *scrapeJob) {
	start := time.Now()
	took, err := s.scrape(ctx, job)
	if ctx.Err() != nil {
		return
	}
	outcome := outcomeOf(err)
	s.telemetry.ReceiverPprofScrapes.Add(ctx, 1, s.telemetry.with(
		append(slices.Clone(job.attributes), attribute.String("outcome", outcome))...))
	s.telemetry.ReceiverPprofScrapeDuration.Record(ctx, took.Sub(start).Seconds(), s.telemetry.with(
		attribute.String("profile.type", job.kind.profileType), attribute.String("outcome", outcome)))
	up := int64(0)
	if outcome == outcomeSuccess || outcome == outcomeRefused {
		up = 1
	}
	job.up.Store(up)

	switch {
	case outcome == outcomeSuccess && job.failed != "":
		job.logger.Info("scraping works again")
		job.failed = ""
	case outcome == outcomeSuccess:
	case outcome == job.failed:
		job.logger.Debug("scraping failed again", zap.String("outcome", outcome), zap.Error(err))
	default:
		job.logger.Warn("scraping failed; the same outcome is not warned of again", zap.String("outcome", outcome), zap.Error(err))
		job.failed = outcome
	}
}

// scrape gets a profile and hands it on. It returns when the target was done with.
func (s *scraper) scrape(ctx context.Context, job *scrapeJob) (fetched time.Time, err error) {
	defer func() {
		if fault := recover(); fault != nil {
			fetched, err = time.Now(), failed(outcomePanic, "panic: %v", fault)
		}
	}()
	held := s.fetcher.workingOn.Reserve()
	defer held.Release()
	within, cancel := context.WithTimeout(ctx, s.config.HTTP.Timeout)
	defer cancel()
	payload, err := s.fetcher.fetch(within, job.url, held)
	fetched = time.Now()
	if err != nil {
		if outcomeOf(err) != outcomeUnreachable {
			job.series.Lost(fetched)
		}
		return fetched, err
	}
	if memory := job.series.Memory(len(payload)); memory > 0 {
		if err := held.Resize(within, memory); err != nil {
			job.series.Lost(fetched)
			return fetched, err
		}
	}
	return fetched, s.handOn(ctx, job, payload, fetched)
}

// handOn gives the pipeline what a scrape brought. A difference that the pipeline
// cannot take now is in the next one; all else is lost with an error.
func (s *scraper) handOn(ctx context.Context, job *scrapeJob, payload []byte, at time.Time) error {
	step, err := job.series.Next(payload, at)
	if err != nil {
		job.series.Lost(at)
		return err
	}
	if step.Restarted {
		job.logger.Debug("the target is another process than before, differences begin anew")
	}
	end := job.series.Accept
	var errs []error
	for _, part := range step.Parts {
		err := s.intake.Ingest(ctx, ingest.Payload{
			Data:        part.Payload,
			Resource:    job.resource,
			ProfileType: job.kind.profileType,
			Temporality: job.kind.temporalityOf(part),
			TimeRange:   ingest.TimeRange{Start: pcommon.NewTimestampFromTime(at)},
		}, nil)
		errs = append(errs, err)
		var pipeline *ingest.PipelineError
		if part.Difference && errors.As(err, &pipeline) && !consumererror.IsPermanent(pipeline) {
			end = job.series.Defer
		}
	}
	end(step)
	return errors.Join(errs...)
}

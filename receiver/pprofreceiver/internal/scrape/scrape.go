// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package scrape fetches pprof profiles over HTTP: the remote section of the receiver.
//
// Each profile type of each target is scraped independently of the others. Values that a
// target counts since the start of its process become deltas between two scrapes.
package scrape

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace/noop"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/component/httpguard"
	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/attrkey"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
)

// Scraper scrapes targets from Start to Shutdown.
type Scraper struct {
	// NewClient makes the HTTP client that Start uses. Tests replace it.
	NewClient func(ctx context.Context, host component.Host) (*http.Client, error)

	config   Config
	settings section.Settings
	ingester *ingest.Ingester
	jobs     []*job

	client *http.Client

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// job is one URL that is scraped repeatedly, in a goroutine of its own.
type job struct {
	url        *url.URL
	resource   pcommon.Map
	target     string // name in logs and metrics
	of         profileType
	cumulative bool // the scraper computes deltas
	logger     *zap.Logger
	attributes []attribute.KeyValue // of metrics: target and profile type

	up           atomic.Int64 // 1 and 0, or healthUnknown
	lastReported string       // outcome that was last logged as a warning

	baseline *baseline // nil before the first scrape
}

const healthUnknown = -1

// New returns a Scraper of a valid configuration that passes profiles to the ingester.
func New(cfg Config, set section.Settings, ingester *ingest.Ingester) *Scraper {
	s := &Scraper{config: cfg, settings: set, ingester: ingester}
	s.NewClient = s.newClient
	var checks config.Checks // they have no error
	for _, from := range s.config.sources(&checks) {
		s.jobs = append(s.jobs, s.newJob(from))
	}
	return s
}

func (s *Scraper) newJob(from source) *job {
	at, name := *from.url, targetName(from.target)
	if from.needsSeconds() {
		query := at.Query()
		query.Set(secondsParameter, strconv.Itoa(int(from.of.duration(&s.config)/time.Second)))
		at.RawQuery = query.Encode()
	}
	j := &job{
		url:        &at,
		resource:   ingest.NewResource(map[string]string{ingest.AttributeServiceInstanceID: from.instance}, s.settings.ResourceAttributes, from.attributes),
		target:     name,
		of:         from.of,
		cumulative: s.config.Delta && !from.of.sinceLast && from.of.isCumulative(),
		logger:     s.settings.Telemetry.Logger.With(zap.String("target", name), zap.String("profile", from.of.profileType)),
		attributes: []attribute.KeyValue{attribute.String("target", name), attribute.String(attrkey.ProfileType, from.of.profileType)},
	}
	j.up.Store(healthUnknown)
	return j
}

func (s *Scraper) newClient(ctx context.Context, host component.Host) (*http.Client, error) {
	config := s.config.HTTP
	config.Timeout = 0 // each scrape has a context with it
	settings := s.settings.Telemetry
	settings.TracerProvider = noop.NewTracerProvider() // spans would hold the query
	return config.ToClient(ctx, host.GetExtensions(), settings)
}

// Start starts to scrape, each profile first at its own time within the interval.
func (s *Scraper) Start(ctx context.Context, host component.Host) (err error) {
	if s.client, err = s.NewClient(ctx, host); err != nil {
		return err
	}
	httpguard.StayOnHost(s.client)
	if err := s.settings.Metrics.RegisterReceiverPprofTargetUpCallback(s.observeHealth); err != nil {
		return err
	}
	var profiles []string
	for _, job := range s.jobs {
		profiles = append(profiles, job.of.profileType)
	}
	slices.Sort(profiles)
	s.settings.Telemetry.Logger.Info("Started scraping", zap.Int("targets", max(1, len(s.config.Targets))), zap.Strings("profiles", slices.Compact(profiles)),
		zap.Stringer("collection_interval", s.config.CollectionInterval))
	ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	for _, job := range s.jobs {
		s.running.Go(func() { s.run(ctx, job) })
	}
	return nil
}

// Shutdown cancels running scrapes and discards their unfinished profiles.
func (s *Scraper) Shutdown(context.Context) error {
	if s.cancel == nil { // not started
		return nil
	}
	s.cancel()
	s.running.Wait()
	for _, job := range s.jobs {
		job.forget(s.settings.InFlight)
	}
	s.client.CloseIdleConnections()
	return nil
}

func (s *Scraper) observeHealth(_ context.Context, observer metric.Int64Observer) error {
	for _, job := range s.jobs {
		if up := job.up.Load(); up != healthUnknown {
			observer.Observe(up, s.settings.Metrics.Attributes(job.attributes...))
		}
	}
	return nil
}

// offset is the time within the interval at which a URL is scraped: always the same,
// and evenly spread over URLs.
func offset(from *url.URL, interval time.Duration) time.Duration {
	sum := sha256.Sum256([]byte(from.String()))
	return time.Duration(binary.BigEndian.Uint64(sum[:]) % uint64(interval))
}

func (s *Scraper) run(ctx context.Context, job *job) {
	select {
	case <-ctx.Done():
		return
	case <-time.After(offset(job.url, s.config.CollectionInterval)):
	}
	section.Repeat(ctx, s.config.CollectionInterval, job.logger, func(ctx context.Context) { s.scrapeAndReport(ctx, job) })
}

// scrapeAndReport scrapes once, and logs and measures the outcome.
func (s *Scraper) scrapeAndReport(ctx context.Context, job *job) {
	start := time.Now()
	fetched, err := s.scrape(ctx, job)
	if ctx.Err() != nil {
		return
	}
	if errors.Is(err, errAbsent) {
		job.logger.Debug("Skipped a profile that the target does not have")
		job.up.Store(healthUnknown)
		return
	}
	metrics, outcome := s.settings.Metrics, outcomeOf(err)
	metrics.ReceiverPprofScrapes.Add(ctx, 1, metrics.Attributes(append(slices.Clone(job.attributes), attribute.String("outcome", outcome))...))
	metrics.ReceiverPprofScrapeDuration.Record(ctx, fetched.Sub(start).Seconds(), metrics.Attributes(
		attribute.String(attrkey.ProfileType, job.of.profileType), attribute.String("outcome", outcome)))
	up := int64(0)
	if outcome == outcomeSuccess || outcome == ingest.OutcomeRejected {
		up = 1
	}
	job.up.Store(up)

	switch {
	case outcome == outcomeSuccess && job.lastReported != "":
		job.logger.Info("Scrape succeeded again")
		job.lastReported = ""
	case outcome == outcomeSuccess:
	case outcome == job.lastReported:
		job.logger.Debug("Scrape failed", zap.String("outcome", outcome), zap.Error(err))
	default:
		job.logger.Warn("Scrape failed; further identical failures are logged at debug level", zap.String("outcome", outcome), zap.Error(err))
		job.lastReported = outcome
	}
}

// scrape fetches a profile and ingests it. It returns the time at which the target had
// answered.
func (s *Scraper) scrape(ctx context.Context, job *job) (fetched time.Time, err error) {
	fetched = time.Now() //nolint:wastedassign // if a panic comes before the answer
	defer ingest.Recover(job.logger, &err)
	lease := s.settings.InFlight.Lease(-1) // within timeout
	defer lease.Release()
	within, cancel := context.WithTimeout(ctx, s.config.HTTP.Timeout)
	defer cancel()
	body, err := s.fetch(within, job, lease)
	fetched = time.Now()
	if outcomeOf(err) == outcomeUnreachable {
		return fetched, err
	}
	if err != nil {
		job.lost(fetched)
		return fetched, err
	}
	d := deltaScrape{Scraper: s, job: job, lease: lease, body: body, at: fetched}
	return fetched, d.ingest(ctx, within)
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

// Package self profiles the collector's own process: the self section of the receiver.
package self

import (
	"bytes"
	"context"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest/budget"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/section"
)

// profileTypes are the profile types that the collector can collect of itself. All but
// cpu are profiles of runtime/pprof of the same name.
var profileTypes = []string{ingest.ProfileTypeAllocs, ingest.ProfileTypeBlock, ingest.ProfileTypeCPU,
	ingest.ProfileTypeGoroutine, ingest.ProfileTypeGoroutineLeak, ingest.ProfileTypeHeap, ingest.ProfileTypeMutex}

// MaxProfile bounds a profile of the process itself, in bytes.
const MaxProfile = 256 * config.MiB

// Profiler profiles the process at an interval, from Start to Shutdown.
type Profiler struct {
	config   Config
	resource pcommon.Map
	ingester *ingest.Ingester
	inFlight *budget.Budget
	logger   *zap.Logger

	cancel        context.CancelFunc
	running       sync.WaitGroup
	mutexFraction int // of the process, before Start
}

// New returns a Profiler that passes profiles to the ingester. ResourceAttributes override those of the Collector.
func New(config Config, set section.Settings, ingester *ingest.Ingester) *Profiler {
	resource := pcommon.NewMap()
	set.Telemetry.Resource.Attributes().CopyTo(resource)
	ingest.PutStrings(resource, set.ResourceAttributes)
	config.Profiles = slices.DeleteFunc(slices.Clone(config.Profiles), func(profileType string) bool {
		return profileType == ingest.ProfileTypeGoroutineLeak && pprof.Lookup(profileType) == nil // not in this build
	})
	return &Profiler{config: config, resource: resource, ingester: ingester, inFlight: set.InFlight, logger: set.Telemetry.Logger}
}

// Start starts the first collection immediately.
func (p *Profiler) Start(ctx context.Context, _ component.Host) error {
	p.logger.Info("Started profiling the Collector", zap.Strings("profiles", p.config.Profiles), zap.Stringer("collection_interval", p.config.CollectionInterval))
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if fraction := p.config.MutexProfileFraction; fraction > 0 {
		p.mutexFraction = runtime.SetMutexProfileFraction(fraction)
	}
	if fraction := p.config.BlockProfileFraction; fraction > 0 {
		runtime.SetBlockProfileRate(fraction)
	}
	p.running.Go(func() { section.Repeat(ctx, p.config.CollectionInterval, p.logger, p.collectAll) })
	return nil
}

// Shutdown cancels a collection, discards its unfinished profile, and undoes the settings of the runtime.
func (p *Profiler) Shutdown(context.Context) error {
	if p.cancel == nil { // not started
		return nil
	}
	p.cancel()
	p.running.Wait()
	if p.config.MutexProfileFraction > 0 {
		runtime.SetMutexProfileFraction(p.mutexFraction)
	}
	if p.config.BlockProfileFraction > 0 {
		runtime.SetBlockProfileRate(0) // the runtime cannot tell the earlier one
	}
	p.cancel = nil
	return nil
}

func (p *Profiler) collectAll(ctx context.Context) {
	for _, profileType := range p.config.Profiles {
		err := p.collect(ctx, profileType)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.logger.Warn("Dropped a self profile", zap.String("profile", profileType), zap.Error(err))
		}
	}
}

func (p *Profiler) collect(ctx context.Context, profileType string) (err error) {
	defer ingest.Recover(p.logger, &err, zap.String("profile", profileType))
	var profile bytes.Buffer
	if profileType == ingest.ProfileTypeCPU {
		err = profileCPU(ctx, p.config.cpuDuration(), &profile)
	} else {
		err = pprof.Lookup(profileType).WriteTo(&profile, 0)
	}
	if err != nil {
		return err
	}
	temporality := ingest.GoTemporality(profileType, false)
	if profileType == ingest.ProfileTypeAllocs {
		temporality = ingest.HeapTemporality
	}
	lease := p.inFlight.Lease(-1)
	defer lease.Release()
	if err := lease.TakeBody(ctx, int64(profile.Cap())); err != nil {
		return err
	}
	prepared, err := p.ingester.TranslateWithin(ctx, lease, ingest.Payload{
		Data: profile.Bytes(), Resource: p.resource, ProfileType: profileType, Temporality: temporality,
	})
	if err != nil {
		return err
	}
	setFileHash(prepared.Profiles.Dictionary())
	profile = bytes.Buffer{}
	lease.ShrinkBody(0)
	return p.ingester.Pass(ctx, prepared)
}

// cpuProfiler is held by the receiver that takes a CPU profile: Go has one CPU profiler
// for the process. Others wait.
var cpuProfiler = make(chan struct{}, 1)

func profileCPU(ctx context.Context, duration time.Duration, to *bytes.Buffer) error {
	select {
	case cpuProfiler <- struct{}{}:
		defer func() { <-cpuProfiler }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if err := pprof.StartCPUProfile(to); err != nil {
		return err
	}
	select {
	case <-time.After(duration):
	case <-ctx.Done():
	}
	pprof.StopCPUProfile()
	return ctx.Err()
}

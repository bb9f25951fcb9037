// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/pprof"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.uber.org/zap"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// selfKind is a kind of profile that the collector can take of itself.
type selfKind struct {
	take        func(ctx context.Context, config *SelfConfig) ([]byte, error)
	temporality ingest.TemporalityFunc
	// lasting kinds take time, and come after those that do not.
	lasting bool
}

var selfKinds = map[string]selfKind{
	ingest.ProfileTypeCPU:       {take: takeCPU, temporality: ingest.Always(ingest.TemporalityDelta), lasting: true},
	ingest.ProfileTypeHeap:      {take: takeSnapshot(ingest.ProfileTypeHeap), temporality: ingest.HeapTemporality},
	ingest.ProfileTypeAllocs:    {take: takeSnapshot(ingest.ProfileTypeAllocs), temporality: ingest.HeapTemporality},
	ingest.ProfileTypeGoroutine: {take: takeSnapshot(ingest.ProfileTypeGoroutine), temporality: ingest.Always(ingest.TemporalityInstant)},
	ingest.ProfileTypeMutex:     {take: takeSnapshot(ingest.ProfileTypeMutex), temporality: ingest.Always(ingest.TemporalityCumulative)},
	ingest.ProfileTypeBlock:     {take: takeSnapshot(ingest.ProfileTypeBlock), temporality: ingest.Always(ingest.TemporalityCumulative)},
}

func selfKindNames() []string { return slices.Sorted(maps.Keys(selfKinds)) }

// maxSelfProfile bounds a profile of the process itself, in bytes.
const maxSelfProfile = 256 << 20

// selfProfiler profiles the process at an interval, from start to stop.
type selfProfiler struct {
	config   SelfConfig
	kinds    []string // snapshots first
	resource pcommon.Map
	intake   *ingest.Ingester
	logger   *zap.Logger

	cancel       context.CancelFunc
	running      sync.WaitGroup
	releaseRates func()
}

// newSelfProfiler makes a profiler whose profiles are on the collector's own
// resource, with resourceAttributes over it.
func newSelfProfiler(config SelfConfig, collector pcommon.Resource, resourceAttributes map[string]string, in *ingest.Ingester, logger *zap.Logger) *selfProfiler {
	resource := pcommon.NewMap()
	collector.Attributes().CopyTo(resource)
	ingest.PutStrings(resource, resourceAttributes)
	kinds := slices.Clone(config.Profiles)
	slices.SortStableFunc(kinds, func(a, b string) int {
		switch {
		case selfKinds[a].lasting == selfKinds[b].lasting:
			return 0
		case selfKinds[a].lasting:
			return 1
		}
		return -1
	})
	return &selfProfiler{config: config, kinds: kinds, resource: resource, intake: in, logger: logger}
}

// start begins the first collection at once.
func (p *selfProfiler) start(ctx context.Context) {
	ctx, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	releaseMutex := mutexRate.hold(p.config.MutexProfileFraction)
	releaseBlock := blockRate.hold(p.config.BlockProfileFraction)
	p.releaseRates = func() { releaseMutex(); releaseBlock() }
	p.running.Go(func() {
		ticker := time.NewTicker(p.config.CollectionInterval)
		defer ticker.Stop()
		for {
			p.collect(ctx)
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	})
}

// stop ends a collection that is under way, and drops what it had not finished.
func (p *selfProfiler) stop() {
	if p.cancel == nil { // not started
		return
	}
	p.cancel()
	p.running.Wait()
	p.releaseRates()
	p.cancel = nil
}

func (p *selfProfiler) collect(ctx context.Context) {
	for _, name := range p.kinds {
		err := p.collectOne(ctx, name)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			p.logger.Warn("a profile of the collector itself is lost", zap.String("profile", name), zap.Error(err))
		}
	}
}

func (p *selfProfiler) collectOne(ctx context.Context, name string) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = fmt.Errorf("panic: %v", fault)
		}
	}()
	kind := selfKinds[name]
	taken, err := kind.take(ctx, &p.config)
	if err != nil {
		return err
	}
	payload, err := pproftranslator.Decompress(taken, maxSelfProfile)
	if err != nil {
		return err
	}
	return p.intake.Ingest(ctx, ingest.Payload{Data: payload, Resource: p.resource, ProfileType: name, Temporality: kind.temporality}, nil)
}

// cpuProfiler is held by the receiver of this process whose CPU profile is being
// taken: Go has one CPU profiler a process. Others wait their turn.
var cpuProfiler = make(chan struct{}, 1)

func takeCPU(ctx context.Context, config *SelfConfig) ([]byte, error) {
	select {
	case cpuProfiler <- struct{}{}:
		defer func() { <-cpuProfiler }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var taken bytes.Buffer
	if err := pprof.StartCPUProfile(&taken); err != nil {
		return nil, err
	}
	timer := time.NewTimer(config.cpuDuration())
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	pprof.StopCPUProfile()
	return taken.Bytes(), ctx.Err()
}

// takeSnapshot returns a function that takes the profile of this name, as
// runtime/pprof knows it.
func takeSnapshot(name string) func(context.Context, *SelfConfig) ([]byte, error) {
	return func(context.Context, *SelfConfig) ([]byte, error) {
		profile := pprof.Lookup(name)
		if profile == nil {
			return nil, errors.New("unknown to runtime/pprof")
		}
		var taken bytes.Buffer
		if err := profile.WriteTo(&taken, 0); err != nil {
			return nil, err
		}
		return taken.Bytes(), nil
	}
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/collector/component"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// details are messages of the Collector at info and warn that say nothing to the people who run
// it: the steps of each start and stop, and dumps of structs.
var details = map[string]bool{
	component.StabilityLevelDevelopment.LogMessage(): true,
	"Internal trace telemetry disabled":              true,
	"Using percentage memory limiter":                true,

	"Starting extensions...":                              true,
	"Extension is starting...":                            true,
	"Extension started.":                                  true,
	"Stopping extensions...":                              true,
	"Starting health_check extension":                     true,
	"Health Check state change":                           true,
	"Starting zPages extension":                           true,
	"Registered Host's zPages":                            true,
	"zPages span processor registration is not available": true, // tracing is off

	"discarding event received after shutdown": true, // of health_check

	"finished compaction": true,
	"New queue metadata key not found, attempting to load legacy format.": true,
	"Initializing new persistent queue":                                   true,
	"Successfully migrated to consolidated metadata format":               true,
}

// parts are parts of further ones. The exporter logs that its target is away, gRPC does so for each attempt to connect.
var parts = []string{"Feature gate enabled but using legacy config format.", "grpc: addrConn.createTransport failed to connect"}

// An exporter with neither queue nor retries gives the errors of its target to the one before, which retries. exporterhelper logs each
// as an error, and advises what the shipped configurations rule out.
const (
	rejecting = "Exporting failed. Rejecting data."
	advice    = " Try enabling "
	// repeatAfter is the shortest time between two such errors of a component.
	repeatAfter = time.Minute
)

// quietCore leaves details out, unless the level is debug, repeats rejections once a minute with a count, and removes advice.
type quietCore struct {
	zapcore.Core
	rejections *rejections // of the component
}

// rejections are those of one component.
type rejections struct {
	mu     sync.Mutex
	count  int64 // since one was logged
	logged time.Time
}

// next returns how many rejections a message stands for, 0 if it is not logged.
func (r *rejections) next(now time.Time) (count int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.count++
	if now.Sub(r.logged) < repeatAfter {
		return 0
	}
	count, r.count, r.logged = r.count, 0, now
	return count
}

func quiet(core zapcore.Core) zapcore.Core { return quietCore{core, &rejections{}} }

func (c quietCore) With(fields []zapcore.Field) zapcore.Core {
	return quietCore{c.Core.With(fields), &rejections{}}
}

func (c quietCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	isDetail := details[entry.Message] || slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(entry.Message, part) })
	if isDetail && !c.Enabled(zapcore.DebugLevel) {
		return checked
	}
	if strings.HasPrefix(entry.Message, "Exporting failed.") {
		entry.Message, _, _ = strings.Cut(entry.Message, advice)
	}
	if entry.Message != rejecting || c.Enabled(zapcore.DebugLevel) {
		return c.Core.Check(entry, checked)
	}
	count := c.rejections.next(entry.Time)
	if count == 0 {
		return checked
	}
	entry.Message = "Exporting failed; the sender of the profiles gets an error"
	return c.Core.With([]zapcore.Field{zap.Int64("count", count)}).Check(entry, checked)
}

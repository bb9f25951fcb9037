// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go.opentelemetry.io/collector/component"
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

	"finished compaction": true,
	"New queue metadata key not found, attempting to load legacy format.": true,
	"Initializing new persistent queue":                                   true,
	"Successfully migrated to consolidated metadata format":               true,
}

// quietCore leaves details out, unless the level is debug.
type quietCore struct{ zapcore.Core }

func quiet(core zapcore.Core) zapcore.Core { return quietCore{core} }

func (c quietCore) With(fields []zapcore.Field) zapcore.Core { return quietCore{c.Core.With(fields)} }

func (c quietCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if details[entry.Message] && !c.Enabled(zapcore.DebugLevel) {
		return checked
	}
	return c.Core.Check(entry, checked)
}

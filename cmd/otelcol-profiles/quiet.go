// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

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

// quietCore logs details at debug.
type quietCore struct{ zapcore.Core }

func quiet(core zapcore.Core) zapcore.Core { return quietCore{core} }

func (c quietCore) With(fields []zapcore.Field) zapcore.Core { return quietCore{c.Core.With(fields)} }

func (c quietCore) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if details[entry.Message] && !c.Enabled(zapcore.DebugLevel) || !c.Enabled(entry.Level) {
		return checked
	}
	return checked.AddCore(entry, c)
}

func (c quietCore) Write(entry zapcore.Entry, fields []zapcore.Field) error {
	switch {
	case details[entry.Message]:
		entry.Level = zapcore.DebugLevel
	case strings.HasPrefix(entry.Message, "Exporting failed. Rejecting data.") && mentions(fields, "request is cancelled or timed out"):
		// The caller has stopped or does not wait any more: it got an error, and keeps the data.
		entry.Level, entry.Stack = zapcore.WarnLevel, ""
		entry.Message = "Stopped an export that its caller canceled"
	case strings.HasPrefix(entry.Message, "Exporting failed. Dropping data.") && mentions(fields, "interrupted due to shutdown"):
		// The Collector logs an error, also if a queue in storage keeps the data.
		entry.Level, entry.Stack = zapcore.WarnLevel, ""
		entry.Message = "Stopped while an export was retried; only a queue with storage keeps the data"
	}
	return c.Core.Write(entry, fields)
}

// mentions reports whether the error of a log line has a text.
func mentions(fields []zapcore.Field, text string) bool {
	for _, f := range fields {
		if err, ok := f.Interface.(error); ok && strings.Contains(err.Error(), text) {
			return true
		}
	}
	return false
}

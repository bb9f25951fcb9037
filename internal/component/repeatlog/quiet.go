// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package repeatlog

import (
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// repeated are the messages that exporterhelper logs for each attempt and each payload. What it says when it drops
// data stays.
var repeated = map[string]bool{
	"Exporting failed. Will retry the request after interval.": true,
	"Exporting failed. Rejecting data.":                        true,
}

// Quiet returns the logger that an exporter with a Reporter gives to exporterhelper. At levels above debug, it has no
// messages of attempts that fail.
func Quiet(logger *zap.Logger) *zap.Logger {
	return logger.WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return quiet{core} }))
}

type quiet struct{ zapcore.Core }

func (q quiet) With(fields []zapcore.Field) zapcore.Core { return quiet{q.Core.With(fields)} }

func (q quiet) Check(entry zapcore.Entry, checked *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if repeated[entry.Message] && !q.Enabled(zapcore.DebugLevel) {
		return checked
	}
	return q.Core.Check(entry, checked)
}

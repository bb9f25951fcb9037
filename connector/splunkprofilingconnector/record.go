// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package splunkprofilingconnector

import (
	"errors"
	"fmt"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/dictionary"
)

// Attributes of records, and their values.
const (
	scopeName           = "otel.profiling"
	attributeSourceType = "com.splunk.sourcetype"
	attributeFormat     = "profiling.data.format"
	attributeType       = "profiling.data.type"
	attributeSource     = "profiling.instrumentation.source"
	attributeAllocated  = "memory.allocated"

	formatPprof    = "pprof-gzip-base64"
	formatText     = "text"
	typeCPU        = "cpu"
	typeAllocation = "allocation"
)

// errUnsupported means that a record has a form that the connector does not know.
var errUnsupported = errors.New("unsupported")

// isProfiling reports whether a record holds profiles.
func isProfiling(scope pcommon.InstrumentationScope, record plog.LogRecord) bool {
	return scope.Name() == scopeName || dictionary.TextOf(record.Attributes(), attributeSourceType) == scopeName
}

// integer is the value of a whole number, 0 if there is none.
func integer(attributes pcommon.Map, key string) int64 {
	if v, ok := attributes.Get(key); ok && v.Type() == pcommon.ValueTypeInt {
		return v.Int()
	}
	return 0
}

// form describes the body of a record by its attributes. Records of equal forms that
// are text share a profile.
type form struct {
	text       bool
	allocation bool
	period     bool   // a sample has one
	source     string // continuous or snapshot, "" if it is unknown
}

func formOf(record plog.LogRecord) (form, error) {
	attributes := record.Attributes()
	f := form{source: dictionary.TextOf(attributes, attributeSource)}
	switch format := dictionary.TextOf(attributes, attributeFormat); format {
	case formatPprof:
	case formatText, "":
		f.text, f.period = true, integer(attributes, labelPeriod) > 0
	default:
		return f, fmt.Errorf("%w: %s is %.80q: must be %s or %s", errUnsupported, attributeFormat, format, formatPprof, formatText)
	}
	switch dataType := dictionary.TextOf(attributes, attributeType); dataType {
	case typeCPU:
	case typeAllocation:
		f.allocation = true
	case "": // agents that send text may state the bytes only
		_, f.allocation = attributes.Get(attributeAllocated)
	default:
		return f, fmt.Errorf("%w: %s is %.80q: must be %s or %s", errUnsupported, attributeType, dataType, typeCPU, typeAllocation)
	}
	if record.Body().Type() != pcommon.ValueTypeStr {
		return f, fmt.Errorf("the body is %v: must be a string", record.Body().Type())
	}
	return f, nil
}

// payload returns a payload of this form without its data. Splunk's agents sample all
// threads, also those that wait: their "cpu" is wall time.
func (f form) payload(resource pcommon.Map) ingest.Payload {
	p := ingest.Payload{Resource: resource, ProfileType: ingest.ProfileTypeWall}
	if f.allocation {
		p.ProfileType = "alloc" // of a JVM
	}
	if f.source != "" {
		p.ProfileAttributes = func(string) []ingest.Attribute {
			return []ingest.Attribute{{Key: attributeSource, Value: f.source}}
		}
	}
	return p
}

// timeOf is when a record's samples were taken, or when it was observed.
func timeOf(record plog.LogRecord) pcommon.Timestamp {
	if at := record.Timestamp(); at > 0 {
		return at
	}
	return record.ObservedTimestamp()
}

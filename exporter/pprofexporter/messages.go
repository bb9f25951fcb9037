// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofexporter

import (
	"github.com/google/uuid"
	"google.golang.org/protobuf/encoding/protowire"
)

// pushRequest returns a push.v1.PushRequest of Pyroscope with one series of one profile:
//
//	PushRequest      {series = 1}
//	RawProfileSeries {labels = 1, samples = 2}
//	LabelPair        {name = 1, value = 2}
//	RawSample        {raw_profile = 1, ID = 2}
func pushRequest(s *series) []byte {
	series := labelMessages(s.labels)
	sample := appendField(appendField(nil, 1, s.pprof), 2, []byte(uuid.NewString()))
	return appendField(nil, 1, appendField(series, 2, sample))
}

// writeRawRequest returns a parca.profilestore.v1alpha1.WriteRawRequest with one series of one profile. Its field normalized
// stays false, as addresses of pprof are those in memory.
//
//	WriteRawRequest  {tenant = 1, series = 2, normalized = 3}
//	RawProfileSeries {labels = 1, samples = 2}
//	LabelSet         {labels = 1}
//	Label            {name = 1, value = 2}
//	RawSample        {raw_profile = 1}
func writeRawRequest(s *series) []byte {
	series := appendField(nil, 1, labelMessages(s.labels))
	return appendField(nil, 2, appendField(series, 2, appendField(nil, 1, s.pprof)))
}

// labelMessages returns labels as field 1 of a message.
func labelMessages(labels []label) (message []byte) {
	for _, l := range labels {
		message = appendField(message, 1, appendField(appendField(nil, 1, []byte(l.name)), 2, []byte(l.value)))
	}
	return message
}

func appendField(to []byte, number protowire.Number, value []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(to, number, protowire.BytesType), value)
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pyroscope

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
	"github.com/otelcol-profiles/otelcol-profiles/receiver/pprofreceiver/internal/httpserver"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// rawSeries is a RawProfileSeries of Pyroscope's push.v1: labels and the profiles that
// they apply to.
type rawSeries struct {
	labels  []label
	samples [][]byte
}

// Fields of push.v1.PushRequest, RawProfileSeries and RawSample, and of
// types.v1.LabelPair.
const (
	pushRequestSeries   = 1
	seriesLabels        = 1
	seriesSamples       = 2
	rawSampleRawProfile = 1
	labelPairName       = 1
	labelPairValue      = 2
)

// counts are those of a PushRequest so far.
type counts struct {
	series, samples int
	description     int // bytes of all labels
}

// add adds to one of the counts.
func add(count *int, more, limit int, what string) error {
	if *count += more; *count > limit {
		return &pproftranslator.LimitError{What: what, Limit: int64(limit)}
	}
	return nil
}

func (n *counts) addSeries() error { return add(&n.series, 1, httpserver.MaxProfiles, "series") }

func (n *counts) addSamples(more int) error {
	return add(&n.samples, more, httpserver.MaxProfiles, "samples")
}

// readPushRequest reads a PushRequest. It checks each entry before it allocates memory
// for it; Pyroscope's generated types would not. The profiles are parts of message.
func readPushRequest(message []byte) (all []rawSeries, err error) {
	var n counts
	c := wire.New(message)
	for c.Next() {
		if c.Type != wire.BytesType || c.Field != pushRequestSeries {
			continue
		}
		if err := n.addSeries(); err != nil {
			return nil, err
		}
		series, err := n.readSeries(c.Message())
		if err != nil {
			return nil, fmt.Errorf("series[%d]: %w", len(all), err)
		}
		all = append(all, series)
	}
	return all, wireError(c)
}

func (n *counts) readSeries(c wire.Cursor) (series rawSeries, err error) {
	for c.Next() {
		if c.Type != wire.BytesType {
			continue
		}
		switch c.Field {
		case seriesLabels:
			if err := httpserver.CheckCount("labels", len(series.labels)+1); err != nil {
				return series, err
			}
			l, err := n.readLabel(c.Message())
			if err != nil {
				return series, err
			}
			series.labels = append(series.labels, l)
		case seriesSamples:
			if err := n.addSamples(1); err != nil {
				return series, err
			}
			var profile []byte
			sample := c.Message()
			for sample.Next() {
				if sample.Type == wire.BytesType && sample.Field == rawSampleRawProfile {
					profile = sample.Bytes()
				}
			}
			if err := wireError(sample); err != nil {
				return series, err
			}
			series.samples = append(series.samples, profile)
		}
	}
	return series, wireError(c)
}

// readLabel checks the size of all labels before it copies this one.
func (n *counts) readLabel(c wire.Cursor) (label, error) {
	var name, value []byte
	for c.Next() {
		switch {
		case c.Type == wire.BytesType && c.Field == labelPairName:
			name = c.Bytes()
		case c.Type == wire.BytesType && c.Field == labelPairValue:
			value = c.Bytes()
		}
	}
	if err := wireError(c); err != nil {
		return label{}, err
	}
	if err := httpserver.CheckLength("labels", name, value); err != nil {
		return label{}, err
	}
	if err := add(&n.description, len(name)+len(value), httpserver.MaxDescription, "size in bytes of all labels"); err != nil {
		return label{}, err
	}
	return label{string(name), string(value)}, nil
}

func wireError(c wire.Cursor) error {
	if c.Err != nil {
		return fmt.Errorf("not a PushRequest: %w", c.Err)
	}
	return nil
}

const (
	// maxJSONEntries bounds the braces and commas of a PushRequest in JSON. Each entry
	// has at least one, and takes more memory than text.
	maxJSONEntries = 64 << 10

	// entryMemory is the memory of an entry without its text, in bytes, including the
	// growth of its list.
	entryMemory = 192
)

func jsonEntries(message []byte) int {
	return bytes.Count(message, []byte("{")) + bytes.Count(message, []byte(","))
}

// memoryOfJSON is the most that readPushRequestJSON allocates, in bytes. A string with
// escapes is copied twice.
func memoryOfJSON(message []byte) int64 {
	copies := 1
	if bytes.IndexByte(message, '\\') >= 0 {
		copies = 2
	}
	return int64(copies*len(message)) + entryMemory*int64(min(jsonEntries(message), maxJSONEntries))
}

// readPushRequestJSON reads the JSON form of a PushRequest.
func readPushRequestJSON(message []byte) ([]rawSeries, error) {
	if n := jsonEntries(message); n > maxJSONEntries {
		return nil, &pproftranslator.LimitError{What: "braces and commas", Limit: maxJSONEntries, Got: int64(n)}
	}
	var request struct {
		Series []struct {
			Labels []struct {
				Name  labelText `json:"name"`
				Value labelText `json:"value"`
			} `json:"labels"`
			Samples []struct {
				RawProfile base64Bytes `json:"rawProfile"`
				ProtoName  base64Bytes `json:"raw_profile"` // protobuf's JSON allows both
			} `json:"samples"`
		} `json:"series"`
	}
	if err := json.Unmarshal(message, &request); err != nil {
		if limit, tooLong := errors.AsType[*pproftranslator.LimitError](err); tooLong {
			return nil, limit
		}
		if errors.Is(err, errBase64) {
			return nil, httpserver.Malformed("not a PushRequest in JSON: %v", errBase64)
		}
		return nil, httpserver.Malformed("not a PushRequest in JSON: %s", httpserver.JSONError(err))
	}
	var n counts
	all := make([]rawSeries, 0, min(len(request.Series), httpserver.MaxProfiles))
	for _, from := range request.Series {
		if err := errors.Join(n.addSeries(), n.addSamples(len(from.Samples))); err != nil {
			return nil, err
		}
		var series rawSeries
		for _, l := range from.Labels {
			series.labels = append(series.labels, label{string(l.Name), string(l.Value)})
		}
		for _, sample := range from.Samples {
			profile := sample.RawProfile
			if profile == nil {
				profile = sample.ProtoName
			}
			series.samples = append(series.samples, profile)
		}
		all = append(all, series)
	}
	return all, nil
}

// labelText is the name or value of a label, whose length is checked before it is
// copied.
type labelText string

func (t *labelText) UnmarshalText(text []byte) error {
	if len(text) > httpserver.MaxAttributeLength {
		return &pproftranslator.LimitError{What: "labels: size in bytes of a name or a value", Limit: httpserver.MaxAttributeLength, Got: int64(len(text))}
	}
	*t = labelText(text)
	return nil
}

var errBase64 = errors.New("a profile is not base64")

// base64Bytes are bytes in protobuf's JSON: in either alphabet of base64, with or
// without padding.
type base64Bytes []byte

func (b *base64Bytes) UnmarshalText(text []byte) error {
	text = bytes.TrimRight(text, "=")
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	decoded := make([]byte, encoding.DecodedLen(len(text)))
	n, err := encoding.Decode(decoded, text)
	if err != nil {
		return errBase64
	}
	*b = decoded[:n:n]
	return nil
}

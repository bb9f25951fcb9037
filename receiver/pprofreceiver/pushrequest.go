// Copyright The OpenTelemetry Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// pushedSeries is a RawProfileSeries of Pyroscope's push.v1: profiles with the same
// labels, as they came.
type pushedSeries struct {
	labels  []label
	samples [][]byte
}

// pushedCount bounds what a PushRequest holds.
type pushedCount struct{ series, samples, described int }

// addLabel counts a label before it is copied.
func (n *pushedCount) addLabel(name, value []byte) error {
	if err := tooLongAttribute("labels", name, value); err != nil {
		return err
	}
	if n.described += len(name) + len(value); n.described > maxDescription {
		return &pproftranslator.LimitError{What: "size in bytes of all labels", Limit: maxDescription}
	}
	return nil
}

func (n *pushedCount) addSeries() error {
	if n.series++; n.series > maxAttachments {
		return &pproftranslator.LimitError{What: "series", Limit: maxAttachments}
	}
	return nil
}

func (n *pushedCount) addSamples(more int) error {
	if n.samples += more; n.samples > maxAttachments {
		return &pproftranslator.LimitError{What: "samples", Limit: maxAttachments}
	}
	return nil
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

// readPushRequest reads a PushRequest. The profiles are parts of message.
func readPushRequest(message []byte) (all []pushedSeries, err error) {
	var count pushedCount
	err = eachField(message, func(number protowire.Number, value []byte) error {
		if number != pushRequestSeries {
			return nil
		}
		if err := count.addSeries(); err != nil {
			return err
		}
		series, err := readRawSeries(value, &count)
		if err != nil {
			return fmt.Errorf("series[%d]: %w", len(all), err)
		}
		all = append(all, series)
		return nil
	})
	return all, err
}

func readRawSeries(message []byte, count *pushedCount) (series pushedSeries, err error) {
	err = eachField(message, func(number protowire.Number, value []byte) error {
		switch number {
		case seriesLabels:
			if err := tooManyAttributes("labels", len(series.labels)+1); err != nil {
				return err
			}
			var name, text []byte
			err := eachField(value, func(number protowire.Number, field []byte) error {
				switch number {
				case labelPairName:
					name = field
				case labelPairValue:
					text = field
				}
				return nil
			})
			if err != nil {
				return err
			}
			if err := count.addLabel(name, text); err != nil {
				return err
			}
			series.labels = append(series.labels, label{string(name), string(text)})
			return nil
		case seriesSamples:
			if err := count.addSamples(1); err != nil {
				return err
			}
			var profile []byte
			err := eachField(value, func(number protowire.Number, raw []byte) error {
				if number == rawSampleRawProfile {
					profile = raw
				}
				return nil
			})
			series.samples = append(series.samples, profile)
			return err
		}
		return nil
	})
	return series, err
}

// eachField calls read for each field of a message that has bytes for a value, and
// passes over the others.
func eachField(message []byte, read func(number protowire.Number, value []byte) error) error {
	for len(message) > 0 {
		number, wire, n := protowire.ConsumeTag(message)
		if n < 0 {
			return errTruncatedMessage
		}
		message = message[n:]
		if wire != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, wire, message); n < 0 {
				return errTruncatedMessage
			}
			message = message[n:]
			continue
		}
		value, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return errTruncatedMessage
		}
		if err := read(number, value); err != nil {
			return err
		}
		message = message[n:]
	}
	return nil
}

// base64Bytes are bytes as protobuf's JSON has them: in either alphabet of base64,
// padded or not.
type base64Bytes []byte

func (b *base64Bytes) UnmarshalJSON(quoted []byte) error {
	var text string
	if err := json.Unmarshal(quoted, &text); err != nil {
		return err
	}
	alphabet := base64.RawStdEncoding
	if bytes.ContainsAny(quoted, "-_") {
		alphabet = base64.RawURLEncoding
	}
	decoded, err := alphabet.DecodeString(string(bytes.TrimRight([]byte(text), "=")))
	*b = decoded
	return err
}

// maxPushedJSON bounds how many braces and commas a PushRequest in JSON has: an
// entry has at least one, and takes more memory than text.
const maxPushedJSON = 64 << 10

// readPushRequestJSON is readPushRequest for the JSON form of the message.
func readPushRequestJSON(message []byte) ([]pushedSeries, error) {
	if n := bytes.Count(message, []byte("{")) + bytes.Count(message, []byte(",")); n > maxPushedJSON {
		return nil, &pproftranslator.LimitError{What: "braces and commas", Limit: maxPushedJSON, Got: int64(n)}
	}
	var request struct {
		Series []struct {
			Labels []struct {
				Name  string `json:"name"`
				Value string `json:"value"`
			} `json:"labels"`
			Samples []struct {
				RawProfile base64Bytes `json:"rawProfile"`
				ProtoName  base64Bytes `json:"raw_profile"` // protobuf's JSON takes both
			} `json:"samples"`
		} `json:"series"`
	}
	if err := json.Unmarshal(message, &request); err != nil {
		return nil, badRequest("not a PushRequest in JSON: " + jsonError(err))
	}
	var count pushedCount
	all := make([]pushedSeries, 0, min(len(request.Series), maxAttachments))
	for _, from := range request.Series {
		if err := count.addSeries(); err != nil {
			return nil, err
		}
		if err := count.addSamples(len(from.Samples)); err != nil {
			return nil, err
		}
		var series pushedSeries
		for _, l := range from.Labels {
			series.labels = append(series.labels, label{l.Name, l.Value})
		}
		for _, sample := range from.Samples {
			raw := sample.RawProfile
			if raw == nil {
				raw = sample.ProtoName
			}
			series.samples = append(series.samples, raw)
		}
		all = append(all, series)
	}
	return all, nil
}

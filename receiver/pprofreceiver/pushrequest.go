// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package pprofreceiver

import (
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

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"errors"
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/translator/pproftranslator"
)

// PushPath is the path of the unary call Push of Pyroscope's push.v1.PusherService, in the Connect protocol
// (https://connectrpc.com/docs/protocol). The library writes its errors. Requests are read here: the library and generated
// messages hold a protobuf three times, allocate for entries before anyone counts them, and take ten times the size of JSON
// whose last string is malformed.
const PushPath = "/push.v1.PusherService/Push"

func readPush(r *Request) (push Push, err error) {
	read, memory := readPushRequest, memoryOfLabels
	switch r.MediaType {
	case mediaTypeConnectProto:
	case mediaTypeJSON:
		read, memory = readPushRequestJSON, memoryOfJSON
	default:
		return push, unsupported("Content-Type: must be %s or %s, as in unary calls of the Connect protocol", mediaTypeConnectProto, mediaTypeJSON)
	}
	if version := r.Header.Get("Connect-Protocol-Version"); version != "" && version != "1" {
		return push, malformed("Connect-Protocol-Version: must be 1")
	}
	message, err := r.Message()
	if err != nil {
		return push, err
	}
	if err := r.Reserve(memory(message)); err != nil {
		return push, err
	}
	all, err := read(message)
	if err == nil {
		push.Profiles, err = profilesOf(all, r.ResourceAttributes)
	}
	if err != nil {
		return push, fmt.Errorf("body: %w", err)
	}
	return push, nil
}

// profilesOf translates labels. resourceAttributes are those that labels override.
func profilesOf(all []rawSeries, resourceAttributes map[string]string) (profiles []Profile, err error) {
	for i, raw := range all {
		series, err := newSeries(fmt.Sprintf("series[%d].labels", i), raw.Labels)
		if err != nil {
			return nil, err
		}
		profileType := profileTypeOf(series.name)
		payload := ingest.Payload{
			Resource:        ingest.NewResource(resourceAttributes, series.resource),
			ScopeAttributes: series.scope,
			ProfileType:     profileType,
			Temporality:     ingest.GoTemporality(profileType, series.deltas),

			FunctionsOfLocations: series.resource[labelSpy] == spyDotnet,
		}
		for j, sample := range raw.Samples {
			name := fmt.Sprintf("series[%d].samples[%d]", i, j)
			payload.Data = sample.RawProfile
			if payload.Data == nil {
				payload.Data = sample.ProtoName
			}
			profiles = append(profiles, Profile{Name: name, Payload: payload})
		}
	}
	return profiles, nil
}

// profileTypeOf returns the profile type that Pyroscope calls name.
func profileTypeOf(name string) string {
	switch name {
	case "process_cpu":
		return ingest.ProfileTypeCPU
	case "memory":
		return ingest.ProfileTypeHeap
	case "goroutines":
		return ingest.ProfileTypeGoroutine
	}
	return name
}

// rawSeries is a RawProfileSeries of Pyroscope's push.v1: labels and the profiles that
// they apply to.
type rawSeries struct {
	Labels  []label     `json:"labels"`
	Samples []rawSample `json:"samples"`
}

// rawSample is a RawSample of push.v1: a profile.
type rawSample struct {
	RawProfile []byte `json:"rawProfile"`
	// ProtoName is the same under the name of the definition, which clients may write in JSON, too.
	ProtoName []byte `json:"raw_profile"`
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

// checkEntries checks the numbers of series and profiles.
func checkEntries(all []rawSeries) error {
	samples := 0
	for i := range all {
		samples += len(all[i].Samples)
	}
	return errors.Join(checkCount("series", len(all)), checkCount("samples", samples))
}

// readPushRequest reads a PushRequest. It checks each entry before it
// allocates memory for it; Pyroscope's generated types would not. The profiles are parts
// of message.
func readPushRequest(message []byte) (all []rawSeries, err error) {
	err = eachField(message, pushRequestSeries, func(_ uint64, content []byte) error {
		series, err := readSeries(content)
		if err != nil {
			return fmt.Errorf("series[%d]: %w", len(all), err)
		}
		all = append(all, series)
		return checkEntries(all)
	})
	return all, err
}

func readSeries(message []byte) (series rawSeries, err error) {
	err = eachField(message, seriesSamples, func(field uint64, content []byte) error {
		var values [3][]byte
		err := eachField(content, labelPairValue, func(field uint64, value []byte) error {
			values[field] = value
			return nil
		})
		if field == seriesLabels {
			series.Labels = append(series.Labels, label{string(values[labelPairName]), string(values[labelPairValue])})
		} else {
			series.Samples = append(series.Samples, rawSample{RawProfile: values[rawSampleRawProfile]})
		}
		return errors.Join(err, checkCount("labels", len(series.Labels)), checkCount("samples", len(series.Samples)))
	})
	return series, err
}

// eachField calls read with the fields from 1 to the last known one, all of which are bytes. Fields of another type,
// for example those of a pprof, would be lost silently.
func eachField(message []byte, last uint64, read func(field uint64, content []byte) error) error {
	c := wire.New(message)
	for c.Next() {
		if c.Field == 0 || c.Field > last {
			continue
		}
		if c.Type != wire.BytesType {
			return fmt.Errorf("not a PushRequest: field %d has the wire type %d: must be %d", c.Field, c.Type, wire.BytesType)
		}
		if err := read(c.Field, c.Bytes()); err != nil {
			return err
		}
	}
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
	entryMemory = 256
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

// memoryOfLabels is how much readPushRequest copies of message at most, in bytes: its labels.
func memoryOfLabels(message []byte) (bytes int64) {
	for c := wire.New(message); c.Next(); {
		if c.Field != pushRequestSeries || c.Type != wire.BytesType {
			continue
		}
		for series := c.Message(); series.Next(); {
			if series.Field == seriesLabels && series.Type == wire.BytesType {
				bytes += int64(series.Stop - series.Start)
			}
		}
	}
	return bytes
}

// readPushRequestJSON reads the JSON form of a PushRequest.
func readPushRequestJSON(message []byte) ([]rawSeries, error) {
	if n := jsonEntries(message); n > maxJSONEntries {
		return nil, &pproftranslator.LimitError{What: "braces and commas", Limit: maxJSONEntries, Got: int64(n)}
	}
	var request struct {
		Series []rawSeries `json:"series"`
	}
	if err := decodeJSON(message, &request); err != nil {
		return nil, malformed("not a PushRequest in JSON: %v", err)
	}
	return request.Series, checkEntries(request.Series)
}

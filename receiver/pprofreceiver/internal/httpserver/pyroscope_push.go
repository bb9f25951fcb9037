// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"fmt"

	"github.com/otelcol-profiles/otelcol-profiles/internal/ingest"
)

// PushPath is the path of the unary call Push of Pyroscope's push.v1.PusherService, in the Connect protocol
// (https://connectrpc.com/docs/protocol).
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
		}
		for j, sample := range raw.Samples {
			name := fmt.Sprintf("series[%d].samples[%d]", i, j)
			payload.Data = sample.RawProfile
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

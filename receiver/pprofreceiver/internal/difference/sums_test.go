// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"
)

// sums is a profile by written-out stacks and labels, with the values of some
// sample types, summed; those that are all 0 left out.
func sums(p *profile.Profile, types ...string) map[string][]int64 {
	var columns []int
	for i, sampleType := range p.SampleType {
		if slices.Contains(types, sampleType.Type) {
			columns = append(columns, i)
		}
	}
	found := map[string][]int64{}
	for _, sample := range p.Sample {
		var key strings.Builder
		for _, location := range sample.Location {
			fmt.Fprintf(&key, "%x", location.Address)
			if location.Mapping != nil {
				fmt.Fprintf(&key, " of %s %s %x", location.Mapping.File, location.Mapping.BuildID, location.Mapping.Start)
			}
			for _, line := range location.Line {
				fmt.Fprintf(&key, " %q %q:%d:%d", line.Function.Name, line.Function.Filename, line.Line, line.Column)
			}
			key.WriteByte('\n')
		}
		fmt.Fprint(&key, sample.Label, sample.NumLabel, sample.NumUnit)
		values := found[key.String()]
		if values == nil {
			values = make([]int64, len(columns))
		}
		for i, column := range columns {
			values[i] += sample.Value[column]
		}
		found[key.String()] = values
	}
	maps.DeleteFunc(found, func(_ string, values []int64) bool {
		return !slices.ContainsFunc(values, func(n int64) bool { return n != 0 })
	})
	return found
}

// minus is what a has more than b.
func minus(a, b map[string][]int64) map[string][]int64 {
	difference := map[string][]int64{}
	for key, values := range a {
		values = slices.Clone(values)
		for i := range b[key] {
			values[i] -= b[key][i]
		}
		if slices.ContainsFunc(values, func(n int64) bool { return n != 0 }) {
			difference[key] = values
		}
	}
	return difference
}

func parsed(t *testing.T, payload []byte) *profile.Profile {
	t.Helper()
	p, err := profile.ParseData(payload)
	require.NoError(t, err)
	require.NoError(t, p.CheckValid())
	return p
}

func plain(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	var buf bytes.Buffer
	require.NoError(t, p.WriteUncompressed(&buf))
	return buf.Bytes()
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiles/wire"
	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

func TestJSONMeterCountsObjects(t *testing.T) {
	const message = `{"a\"n,{":[1,{},null]}`
	const want = len(message) + 3*128 + 2*16
	for _, step := range []int{1, 3, len(message)} {
		var m wire.JSONMeter
		for at := 0; at < len(message); at += step {
			_, err := m.Write([]byte(message[at:min(at+step, len(message))]))
			require.NoError(t, err)
		}
		assert.Equal(t, int64(want), m.Size, "%d bytes at a time", step)
		m.Limit = m.Size + 100
		_, err := m.Write([]byte(`{`))
		require.ErrorIs(t, err, wire.ErrLimit)
	}
}

func TestJSONMeterFindsHalfOfTheMemory(t *testing.T) {
	inProfile := func(s string) string {
		return `{"resourceProfiles":[{"scopeProfiles":[{"profiles":[{` + s + `}]}]}]}`
	}
	inResource := func(s string) string { return `{"resourceProfiles":[{"resource":{` + s + `}}]}` }
	inTables := func(s string) string { return `{"dictionary":{` + s + `}}` }
	decoded := 0
	for _, list := range []string{
		`{"resourceProfiles":[%s]}`,
		`{"resourceProfiles":[{"scopeProfiles":[%s]}]}`,
		`{"resourceProfiles":[{"scopeProfiles":[{"profiles":[%s]}]}]}`,
		`{"resourceProfiles":[{"scopeProfiles":[{"scope":{"attributes":[%s]}}]}]}`,
		inResource(`"attributes":[%s]`),
		inResource(`"entityRefs":[%s]`),
		inResource(`"entityRefs":[{"idKeys":[%s]}]`),
		inResource(`"attributes":[{"value":{"arrayValue":{"values":[%s]}}}]`),
		inResource(`"attributes":[{"value":{"kvlistValue":{"values":[%s]}}}]`),
		inProfile(`"attributeIndices":[%s]`),
		inProfile(`"samples":[%s]`),
		inProfile(`"samples":[{"values":[%s]}]`),
		inProfile(`"samples":[{"timestampsUnixNano":[%s]}]`),
		inProfile(`"samples":[{"attributeIndices":[%s]}]`),
		inTables(`"mappingTable":[%s]`),
		inTables(`"locationTable":[%s]`),
		inTables(`"locationTable":[{"lines":[%s]}]`),
		inTables(`"functionTable":[%s]`),
		inTables(`"linkTable":[%s]`),
		inTables(`"stringTable":[%s]`),
		inTables(`"attributeTable":[%s]`),
		inTables(`"stackTable":[%s]`),
		inTables(`"stackTable":[{"locationIndices":[%s]}]`),
	} {
		for _, element := range []string{
			`{}`, `null`, `1`, `""`, `"1"`, `{"lines":[null]}`, `{"value":{"intValue":1}}`, `{"intValue":1}`, `{"boolValue":true}`,
			`{"arrayValue":null}`, `{"idKeys":[""` + strings.Repeat(`,""`, 128) + `]}`, // a slice of 256, half of it empty
		} {
			message := fmt.Appendf(nil, list, strings.Repeat(element+",", 1100)+element)
			var m wire.JSONMeter
			_, err := m.Write(message)
			require.NoError(t, err)
			before := profiletest.Heap()
			pd, err := (&pprofile.JSONUnmarshaler{}).UnmarshalProfiles(message)
			if err != nil {
				continue // it is not an element of this list
			}
			taken := profiletest.Heap() - before
			runtime.KeepAlive(pd)
			runtime.KeepAlive(message)
			decoded++
			assert.LessOrEqual(t, float64(taken)/float64(m.Size), 2.0, "%s in %s", element, list)
		}
	}
	require.Greater(t, decoded, 140)
}

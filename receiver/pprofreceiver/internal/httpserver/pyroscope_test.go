// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package httpserver

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Entries are bounded before there is memory for them.
func TestPushRequestChecksEntriesBeforeAllocating_R3(t *testing.T) {
	for name, message := range map[string][]byte{
		"series":  bytes.Repeat([]byte{0x0a, 0x00}, 1<<20),
		"samples": profiletest.PushRequest(bytes.Repeat([]byte{0x12, 0x00}, 1<<20)),
		"labels":  profiletest.PushRequest(bytes.Repeat([]byte{0x0a, 0x00}, 1<<20)),
	} {
		var err error
		allocated := profiletest.AllocatedBy(func() { _, err = readPushRequest(message) })
		require.ErrorContains(t, err, "limit of 256", name)
		profiletest.Injected(t, fmt.Sprintf("1 requests of %d KiB of tiny entries", len(message)>>10))
		assert.Less(t, allocated, uint64(1<<20), name)
	}
}

// Labels are counted before they are copied, whatever their series holds.
func TestMemoryOfLabels_R3(t *testing.T) {
	message := profiletest.PushRequest(profiletest.RawSeries([]byte("profile"), "name", "value"), profiletest.RawSeries([]byte("profile"), "n", "v"))
	const fields = 2 * 2 * 2 // tags and lengths
	assert.EqualValues(t, len("name"+"value"+"n"+"v")+fields, memoryOfLabels(message))
	profiletest.Injected(t, "2 requests with labels")
}

// The same for JSON: what is allocated is what is reserved before.
func TestPushRequestJSONAllocatesWhatIsReserved_R3(t *testing.T) {
	profile := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{0xfb, 0xef}, 4<<20))
	long := strings.Repeat("a", 6*MaxAttributeLength)
	for name, message := range map[string]string{
		"profile":            `{"series":[{"samples":[{"rawProfile":"` + profile + `"}]}]}`,
		"escaped profile":    `{"series":[{"samples":[{"rawProfile":"` + strings.ReplaceAll(profile[:1<<20], "/", `\/`) + `\u002b` + profile[:3] + `"}]}]}`,
		"profile, cut short": `{"series":[{"samples":[{"rawProfile":"` + profile[:1<<20] + `*"}]}]}`,
		"labels":             `{"series":[{"labels":[` + strings.Repeat(`{"name":"`+long+`"},`, 20) + `{}]}]}`,
		"escaped labels":     `{"series":[{"labels":[` + strings.Repeat(`{"value":"`+strings.Repeat(`\u0061`, MaxAttributeLength)+`"},`, 20) + `{}]}]}`,
		"a long label":       `{"series":[{"labels":[{"name":"` + strings.Repeat(`\u0061`, 1<<20) + `"}]}]}`,
		"series":             `{"series":[` + strings.Repeat(`{},`, 30000) + `{}]}`,
		"samples":            `{"series":[{"samples":[` + strings.Repeat(`{},`, 30000) + `{}]}]}`,
		"names":              `{"series":[{"labels":[` + strings.Repeat(`{},`, 30000) + `{}]}]}`,
		"notes":              `{"series":[{"annotations":[` + strings.Repeat(`{"key":"`+long+`"},`, 20) + `{}]}]}`,
	} {
		body := []byte(message)
		allocated := profiletest.AllocatedBy(func() { _, _ = readPushRequestJSON(body) })
		profiletest.Injected(t, "1 requests in JSON")
		most := memoryOfJSON(body) + 64<<10
		if name == "escaped labels" { // each is copied twice, of which one is garbage at once
			most += int64(len(body))
		}
		assert.LessOrEqual(t, int64(allocated), most, name)
	}
}

func TestParsePyroscopeTime(t *testing.T) {
	for text, want := range map[string]int64{
		"":                    0,
		"0":                   0,
		"12":                  12_000_000_000,
		"1700000000":          1_700_000_000_000_000_000,
		"1700000000123":       1_700_000_000_123_000_000,
		"1700000000123456":    1_700_000_000_123_456_000,
		"1700000000123456789": 1_700_000_000_123_456_789,
	} {
		got, err := parsePyroscopeTime(text)
		require.NoError(t, err, text)
		assert.EqualValues(t, want, got, text)
	}
	for _, text := range []string{"17000000000", "170000000012", "17000000001234", "9999999999999999999", "+170000000", "1e9", "17000000001234567890"} {
		_, err := parsePyroscopeTime(text)
		require.ErrorContains(t, err, "13 digits", text)
	}
}

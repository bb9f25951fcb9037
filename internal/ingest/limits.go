// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/otelcol-profiles/otelcol-profiles/internal/config"
)

// MaxPayload is the largest payload in bytes that the translator accepts.
const MaxPayload = 4*config.GiB - 1

// minInFlight is the least for max_in_flight: profiles of a few hundred KiB fit.
const minInFlight = 4 * config.MiB

// DefaultMaxInFlight is the default of the key max_in_flight.
func DefaultMaxInFlight() config.Size { return max(config.MemoryLimit()/4, minInFlight) }

// CheckMaxInFlight checks the key max_in_flight.
func CheckMaxInFlight(checks *config.Checks, size config.Size) {
	checks.Memory("max_in_flight", size, minInFlight, config.TiB)
}

// CheckMaxDecompressedSize checks the key max_decompressed_size.
func CheckMaxDecompressedSize(checks *config.Checks, size config.Size) {
	checks.That(size > 0 && size <= MaxPayload, "max_decompressed_size", size, "above 0 and at most %v", MaxPayload)
}

// CheckResourceAttributes checks a key resource_attributes.
func CheckResourceAttributes(checks *config.Checks, key string, attributes map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		checks.That(name != "" && utf8.ValidString(name) && utf8.ValidString(attributes[name]), key, name, "a name that is not empty, with a value, both in UTF-8")
	}
}

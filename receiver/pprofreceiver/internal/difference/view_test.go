// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Labels are a set, but the values of one are not: what the translator tells apart,
// differences tell apart.
func TestOrderOfLabels(t *testing.T) {
	labels := func(pairs ...string) identity {
		var sample []byte
		strings := []byte{0x32, 0} // string_table[0]
		for i, text := range pairs {
			strings = append(append(strings, 0x32, byte(len(text))), text...)
			if i%2 == 1 {
				sample = append(sample, 0x1a, 4, 8, byte(i), 16, byte(i+1))
			}
		}
		payload := append(append([]byte{0x12, byte(len(sample))}, sample...), strings...)
		view, err := viewPprof(payload)
		require.NoError(t, err)
		return view.samples[0]
	}
	assert.Equal(t, labels("a", "1", "b", "2"), labels("b", "2", "a", "1"))
	assert.Equal(t, labels("a", "1", "b", "2", "a", "3"), labels("a", "1", "a", "3", "b", "2"))
	assert.NotEqual(t, labels("a", "1", "a", "2"), labels("a", "2", "a", "1"))
	assert.NotEqual(t, labels("a", "1"), labels("a", "1", "a", "1"))
	assert.NotEqual(t, labels("a", "1"), labels("1", "a"))
}

// Every prefix and every flipped bit: an error or a profile, and never a panic.
func TestHostileProfilesToCompare(t *testing.T) {
	good := plain(t, profiletest.HeapPprof(1, 100, 1, 100))
	s := heapSeries()
	s.advance(t, good, time.Now())
	for n := range good {
		_, _ = s.Next(good[:n], time.Now())
		for bit := range 8 {
			flipped := bytes.Clone(good)
			flipped[n] ^= 1 << bit
			_, _ = s.Next(flipped, time.Now())
		}
	}
}

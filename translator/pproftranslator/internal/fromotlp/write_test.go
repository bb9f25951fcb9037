// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package fromotlp

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// Write leaves the profile as it was, and without zeros writes what google/pprof does.
func TestWriteDoesNotChangeTheProfile(t *testing.T) {
	r := rand.New(rand.NewPCG(profiletest.Seed(t), 5))
	zeros := 0
	for range profiletest.Rounds(t, 200, 5000) {
		p := profiletest.GeneratePprof(r)
		var plain, written bytes.Buffer
		require.NoError(t, p.WriteUncompressed(&plain))
		require.NoError(t, Write(&written, p))
		if slices.ContainsFunc(p.Sample, hasEmptyLabel) {
			zeros++
		} else {
			require.Equal(t, plain.Bytes(), written.Bytes())
		}
		again := profiletest.Pprof(t, p)
		require.Equal(t, plain.Bytes(), again)
	}
	require.NotZero(t, zeros)
}

func hasEmptyLabel(s *profile.Sample) bool {
	for _, texts := range s.Label {
		if slices.Contains(texts, "") {
			return true
		}
	}
	for key, numbers := range s.NumLabel {
		for i, n := range numbers {
			if n == 0 && (s.NumUnit[key] == nil || s.NumUnit[key][i] == "") {
				return true
			}
		}
	}
	return false
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package dictionary

import (
	"testing"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest"
)

// A dictionary alone is marshalled to its tables, behind a tag and a length.
func TestSizesOf(t *testing.T) {
	for seed := range uint64(profiletest.Rounds(t, 100, 3000)) {
		pd := pprofile.NewProfiles()
		profiletest.GenerateProfiles(profiletest.NewRand(seed)).Dictionary().CopyTo(pd.Dictionary())
		size := SizesOf(pd.Dictionary())
		require.Equalf(t, (&pprofile.ProtoMarshaler{}).ProfilesSize(pd), sizeOfRun(size.Total().Bytes), "seed %d", seed)
		require.Equal(t, pd.Dictionary().StackTable().Len(), size.Stack.Entries)
	}
}

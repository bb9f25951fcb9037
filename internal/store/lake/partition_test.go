// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package lake

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/otelcol-profiles/otelcol-profiles/internal/profiletest/payloadtest"
	"github.com/otelcol-profiles/otelcol-profiles/internal/store/layout"
)

// deepStacks returns a payload of stacks that nothing else has: their names do not fit into dictionaries.
func deepStacks(n, depth, id int) pprofile.Profiles {
	pd := payloadtest.ManyStacks(n, byte(id))
	dict := pd.Dictionary()
	dict.FunctionTable().AppendEmpty()
	for i := 1; i <= n; i++ {
		dict.StringTable().Append(fmt.Sprintf("github.com/example/service/internal/package%d.(*Type).Method%d", id, i))
		dict.FunctionTable().AppendEmpty().SetNameStrindex(int32(dict.StringTable().Len() - 1))
		dict.LocationTable().At(i).Lines().AppendEmpty().SetFunctionIndex(int32(i))
		for k := 1; k < depth; k++ {
			dict.StackTable().At(i).LocationIndices().Append(int32(1 + (i*k)%n))
		}
	}
	return pd
}

// TestAPartitionStaysWithinItsMemory: what it holds does not grow with what was added.
func TestAPartitionStaysWithinItsMemory(t *testing.T) {
	const limit, slack = 16 << 20, 8 << 20
	live := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := live()
	p, err := Create(Options{Root: t.TempDir(), OpenDir: layout.OpenDir, Group: "service.name=checkout", Day: time.Unix(0, 0), Stem: "14_0123456789ab", MaxMemory: limit / 4})
	require.NoError(t, err)
	most := int64(0)
	for i := range 20 {
		require.NoError(t, p.Add(deepStacks(2000, 40, i)))
		most = max(most, live()-before)
	}
	written, err := p.Commit()
	require.NoError(t, err)
	p.Abort()
	assert.EqualValues(t, 40_000, written.Samples)
	assert.Less(t, most, int64(limit/4+slack), "bytes, of %d that were written", written.Bytes)
	t.Logf("%d KiB at most, %d bytes written", most>>10, written.Bytes)
}

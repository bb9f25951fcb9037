// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestLargeRecordsLeaveLittleMemoryBehind(t *testing.T) {
	record := make([]byte, maxPooled+1) // the buffers of a smaller one are kept
	_, err := rand.NewChaCha8([32]byte{}).Read(record)
	require.NoError(t, err)
	encoders := runtime.GOMAXPROCS(0)
	retained := func(record []byte) int {
		for range encoders { // they take turns
			e, err := encode(Format{Content: OTLPProto, Compression: Zstd}, record)
			require.NoError(t, err)
			e.release()
		}
		runtime.GC()
		runtime.GC() // a pool keeps its content for one cycle
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return int(memory.HeapAlloc)
	}
	before := retained(record[:1])
	assert.Less(t, retained(record)-before, encoders*3<<20)
}

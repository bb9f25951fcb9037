// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package recordfile

import (
	"encoding/binary"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/otelcol-profiles/otelcol-profiles/internal/wire"
)

func TestLargeRecordsLeaveLittleMemoryBehind(t *testing.T) {
	random := randomBytes(maxPooled + 1) // the buffers of a smaller record are kept
	record := append(binary.AppendUvarint([]byte{1<<3 | wire.BytesType}, uint64(len(random))), random...)
	turns := runtime.GOMAXPROCS(0)
	retained := func(record []byte) int {
		for range turns { // they take turns
			e := encoders.Get().(*encoder)
			_, err := e.encode(Format{Content: OTLPProto, Compression: Zstd}, record)
			require.NoError(t, err)
			e.release()
		}
		runtime.GC()
		runtime.GC() // a pool keeps its content for one cycle
		var memory runtime.MemStats
		runtime.ReadMemStats(&memory)
		return int(memory.HeapAlloc)
	}
	before := retained([]byte{1<<3 | wire.BytesType, 0})
	assert.Less(t, retained(record)-before, turns*3<<20)
}

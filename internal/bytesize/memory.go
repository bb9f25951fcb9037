// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package bytesize

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// MemoryLimit is the memory that this process may use: the least of GOMEMLIMIT,
// the limit of its cgroup, and the physical memory, as far as each is known.
func MemoryLimit() Size {
	limit := uint64(debug.SetMemoryLimit(-1))
	for _, source := range []memlimit.Provider{memlimit.FromCgroup, memlimit.FromSystem} {
		if found, err := source(); err == nil && found > 0 {
			limit = min(limit, found)
		}
	}
	return Size(min(limit, math.MaxInt64))
}

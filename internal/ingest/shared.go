// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"sync"
	"weak"
)

// inFlight are the limits of SharedInFlight by size. A limit is there for as long as a
// receiver holds it.
var (
	inFlightMu sync.Mutex
	inFlight   = map[int64]weak.Pointer[InFlight]{}
)

// SharedInFlight returns the limit of this many bytes that all receivers of the process
// share. Without it, each receiver that receiver_creator starts would have a share of
// the memory of its own.
func SharedInFlight(size int64) *InFlight {
	inFlightMu.Lock()
	defer inFlightMu.Unlock()
	if shared := inFlight[size].Value(); shared != nil {
		return shared
	}
	shared := NewInFlight(size)
	inFlight[size] = weak.Make(shared)
	return shared
}

// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package self

import (
	"runtime"
	"slices"
	"sync"
)

// profileRate is a setting of the runtime, which applies to the whole process. While
// receivers hold it, it is the smallest of their values; then it has its old value.
type profileRate struct {
	set func(rate int) (before int)

	mu     sync.Mutex
	held   []int
	before int
}

var (
	mutexRate = profileRate{set: runtime.SetMutexProfileFraction}

	// blockRate goes back to 0: the runtime has no way to read its old value.
	blockRate = profileRate{set: func(rate int) int {
		runtime.SetBlockProfileRate(rate)
		return 0
	}}
)

// hold sets a rate until release is called, once. A rate of 0 changes nothing.
func (r *profileRate) hold(rate int) (release func()) {
	if rate == 0 {
		return func() {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held = append(r.held, rate)
	before := r.set(slices.Min(r.held))
	if len(r.held) == 1 {
		r.before = before
	}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		at := slices.Index(r.held, rate)
		r.held = slices.Delete(r.held, at, at+1)
		if len(r.held) == 0 {
			r.set(r.before)
			return
		}
		r.set(slices.Min(r.held))
	}
}

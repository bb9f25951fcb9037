// Copyright The otelcol-profiles Authors
// SPDX-License-Identifier: Apache-2.0

package labels

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
)

const (
	// maxWork is how many steps the regular expressions of a request may take. A step is an instruction for a byte of a value, which takes
	// 10 ns at most, and a tenth of that in most expressions.
	maxWork = 1 << 27
	// valueWork is how many bytes a value counts as in addition to its own.
	valueWork = 16
	// maxKept is how many bytes of values a Matcher keeps, of which it knows whether they match.
	maxKept = 4 << 20
)

var errWork = fmt.Errorf("regular expressions would take too long for the values of these labels: the instructions of the expressions times "+
	"the bytes of the values must be at most %d; select less, by service, type or time, or use a shorter expression", maxWork)

// work is what the regular expressions of a request may still take.
type work struct {
	left   atomic.Int64
	exceed context.CancelCauseFunc
}

type workKey struct{}

// LimitWork returns a context for a request. It ends when the request's regular expressions would take too much work; then WorkError
// says so. The caller calls end when the request is done.
func LimitWork(ctx context.Context) (limited context.Context, end func()) {
	w := &work{}
	w.left.Store(maxWork)
	ctx, w.exceed = context.WithCancelCause(ctx)
	return context.WithValue(ctx, workKey{}, w), func() { w.exceed(nil) }
}

// WorkError returns the error of a context that has ended for too much work, or else nil.
func WorkError(ctx context.Context) error {
	if cause := context.Cause(ctx); errors.Is(cause, errWork) {
		return cause
	}
	return nil
}

// take reports whether the context allows to match a text. If it does not, it ends.
func (p *Pattern) take(ctx context.Context, text string) bool {
	w, limited := ctx.Value(workKey{}).(*work)
	if !limited || w.left.Add(-int64(p.Instructions)*int64(len(text)+valueWork)) >= 0 {
		return true
	}
	w.exceed(errWork)
	return false
}

// kept are values of which a Matcher knows whether they match: most values are in many records. It is safe for concurrent use.
type kept struct {
	mu      sync.Mutex
	matches map[string]bool
	size    int // bytes
}

func (k *kept) find(value string) (matches, known bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	matches, known = k.matches[value]
	return matches, known
}

func (k *kept) add(value string, matches bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	size := len(value) + valueWork
	if k.size+size > maxKept {
		return
	}
	k.size += size
	if k.matches == nil {
		k.matches = map[string]bool{}
	}
	k.matches[value] = matches
}
